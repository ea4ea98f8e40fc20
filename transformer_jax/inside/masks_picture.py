"""A picture of the masks of a packed row (§3.2.3): padding, segments, causal, window, and what attention gets."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from transformer_jax.data import packing
from transformer_jax.inside import charts
from transformer_jax.model import masking
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

_MOST_NUMBERS = 9  # tokens whose names have a number, too
_PAD = "·"
_COLOURS = ListedColormap(["white", "#9a9a9a"])


class Mask(NamedTuple):
  """A mask.

  Attributes:
    name: its name.
    meaning: which key a query may look at.
    allowed: `[query, key]` booleans.
    query, key: the names of the tokens.
  """

  name: str
  meaning: str
  allowed: np.ndarray
  query: list[str]
  key: list[str]


def masks(lengths: Sequence[tuple[int, int]], row_length: int, window: int) -> list[Mask]:
  """The masks of the row in which sentence pairs are packed.

  Args:
    lengths: the tokens of the source and of the target of each pair, with EOS.
    row_length: the tokens of each side of the row.
    window: the radius of restricted self-attention.

  Raises:
    InputError: the pairs do not fit into one row.
  """
  # Best fit decreasing places the longest pair first; here the order of the pairs does not matter.
  pairs = [([EOS] * source, [EOS] * target) for source, target in lengths]
  most = max(sum(source for source, _ in lengths), sum(target for _, target in lengths))
  if most > row_length:
    raise InputError(
      f"the pairs have {most} tokens on one side, but the row has {row_length}: give a longer row, or fewer tokens"
    )
  [[row]] = packing.pack(pairs, row_length)
  source, target = row[packing.SOURCE_SEGMENTS], row[packing.TARGET_SEGMENTS]
  reads, writes = _names(source), _names(target)
  rows = [
    ("padding", "real tokens only", writes, writes),
    ("segments", "of the same sentence", writes, writes),
    ("causal", "itself and those before", writes, writes),
    (f"window {window}", f"at most {window} apart (§4)", writes, writes),
    ("encoder", "segments (source)", reads, reads),
    ("decoder", "segments and causal", writes, writes),
    ("with window", "segments, causal, window", writes, writes),
    ("cross", "target at its source", writes, reads),
  ]
  found = _arrays(source, target, window)
  return [
    Mask(name, meaning, np.asarray(mask), query, key)
    for (name, meaning, query, key), mask in zip(rows, found, strict=True)
  ]


@functools.partial(jax.jit, static_argnames="window")
def _arrays(source: jax.Array, target: jax.Array, window: int) -> list[jax.Array]:
  """The masks from the segments of both sides of a row."""
  segments, causal = masking.segment_mask(target, target), masking.causal_mask(len(target))
  near = masking.window_mask(len(target), len(target), window)
  return [
    masking.padding_mask(target > 0, target > 0),
    segments,
    causal,
    near,
    masking.segment_mask(source, source),
    masking.combine(causal, segments),
    masking.combine(causal, segments, near),
    masking.segment_mask(target, source),
  ]


def _names(segments: np.ndarray) -> list[str]:
  """A letter for the sentence and, if there is room, the place in it: a1, a2, b1 and so on; padding is a dot."""
  numbered, place = len(segments) <= _MOST_NUMBERS, 0
  found: list[str] = []
  for before, segment in zip([0, *segments[:-1]], segments, strict=True):
    place = place + 1 if segment == before else 1
    found.append(f"{chr(ord('a') + segment - 1)}{place if numbered else ''}" if segment else _PAD)
  return found


def draw(every: Sequence[Mask]) -> Figure:
  """A panel for each mask; a filled cell is a key at which the query may look.

  Args:
    every: the result of `masks`.
  """
  figure, axes = charts.chart(4.7, 2, 4)
  for axis, mask in zip(axes.ravel(), every, strict=True):
    _panel(axis, mask)
  for axis, label in zip(axes[:, 0], ("the parts, for a target", "the masks of attention"), strict=True):
    axis.set_ylabel(label, fontsize=9)
  figure.supxlabel("rows: queries, columns: keys; grey: the query may look at the key", fontsize=9)
  return figure


def _panel(axis: Axes, mask: Mask) -> None:
  rows, columns = mask.allowed.shape
  axis.pcolormesh(mask.allowed, cmap=_COLOURS, vmin=0, vmax=1, edgecolors="#dddddd", linewidth=0.5)
  axis.invert_yaxis()
  axis.set_aspect("equal")
  charts.frame(axis)
  axis.xaxis.tick_top()
  axis.set_xticks(np.arange(columns) + 0.5, mask.key, fontsize=8)
  axis.set_yticks(np.arange(rows) + 0.5, mask.query, fontsize=8)
  axis.set_title(mask.name, fontsize=9, fontweight="bold")
  axis.set_xlabel(mask.meaning, fontsize=8)
