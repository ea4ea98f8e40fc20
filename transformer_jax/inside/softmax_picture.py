"""A picture of §3.2.1's reason for the scale: without 1 / sqrt(d_k) the softmax saturates as d_k grows."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transformer_jax.inside import charts
from transformer_jax.model.attention import attention_weights

KEYS = 8  # that a query looks at
_NAMES = {True: "with the scale", False: "without"}
_FILLS = {True: charts.PALE, False: "white"}
_HATCHES = {True: "", False: "////"}


class Weights(NamedTuple):
  """The weights of random queries and keys of one width.

  Attributes:
    d_k: the width of a query and a key; their numbers are independent, with mean 0 and variance 1.
    scaled: softmax(q k / sqrt(d_k)), `[queries, KEYS]` float32.
    unscaled: softmax(q k), of the same queries and keys.
  """

  d_k: int
  scaled: np.ndarray
  unscaled: np.ndarray


def weights(d_k: int, queries: int, seed: int = 0) -> Weights:
  """The weights of `queries` random queries, each over `KEYS` random keys of its own."""
  generator = np.random.default_rng(seed)
  query, key = (generator.normal(size=(queries, n, 1, d_k)).astype(np.float32) for n in (1, KEYS))
  everything = np.ones((1, KEYS), bool)

  def of_one(query: jax.Array, key: jax.Array) -> jax.Array:
    return attention_weights(query, key, jnp.asarray(everything))[0, 0]

  of_all = jax.jit(jax.vmap(of_one))
  both = (np.asarray(of_all((query * factor).astype(np.float32), key)) for factor in (1.0, d_k**0.5))
  return Weights(d_k, *both)


def draw(widths: Sequence[int], queries: int = 1000, seed: int = 0) -> Figure:
  """The distribution of the largest weight for each d_k, and the weights of a typical query.

  Args:
    widths: several d_k.
    queries: the number of random queries.
    seed: the seed of the random numbers.
  """
  every = [weights(d_k, queries, seed) for d_k in widths]
  figure, axes = charts.chart(3.0 + 1.15 * len(widths), len(widths) + 1, 2, height_ratios=[2.4, *[1] * len(widths)])
  _distributions(charts.merged(axes, np.s_[0, :]), every)
  for row, each in zip(axes[1:], every, strict=True):
    _example(row, each, first=each is every[0], last=each is every[-1])
  return figure


def _distributions(axis: Axes, every: Sequence[Weights]) -> None:
  """A box for each width, with the scale and without."""
  for offset, scaled in ((-0.2, True), (0.2, False)):
    largest = [(each.scaled if scaled else each.unscaled).max(axis=1) for each in every]
    boxes = axis.boxplot(
      largest,
      positions=np.arange(len(every)) + offset,
      widths=0.3,
      whis=(5, 95),
      showfliers=False,
      patch_artist=True,
      boxprops={"facecolor": _FILLS[scaled], "hatch": _HATCHES[scaled]},
      medianprops={"color": "black", "lw": 2},
    )
    boxes["boxes"][0].set_label(_NAMES[scaled])
  axis.set_xticks(range(len(every)), [f"$d_k$ = {each.d_k}" for each in every])
  axis.set(ylim=(0, 1.3), yticks=[0, 0.2, 0.4, 0.6, 0.8, 1], ylabel="largest weight", xlim=(-0.6, len(every) - 0.4))
  charts.title(axis, f"the largest of {KEYS} weights: 5%, 25%, 50%, 75%, 95% of {len(every[0].scaled):,} queries")
  charts.legend(axis, loc="upper left", ncols=2, handlelength=1.5)


def _example(axes: Sequence[Axes], each: Weights, *, first: bool, last: bool) -> None:
  """The weights of a query whose largest weight without the scale is the median."""
  largest = each.unscaled.max(axis=1)
  query = np.argsort(largest, kind="stable")[len(largest) // 2]
  for axis, scaled in zip(axes, (True, False), strict=True):
    values = (each.scaled if scaled else each.unscaled)[query]
    axis.bar(range(1, KEYS + 1), values, color=_FILLS[scaled], hatch=_HATCHES[scaled], edgecolor="black", lw=0.8)
    axis.set(ylim=(0, 1.05), yticks=[0, 0.5, 1], xticks=range(1, KEYS + 1), xlabel="key" if last else "")
    axis.text(0.99, 0.93, f"$d_k$ = {each.d_k}", transform=axis.transAxes, ha="right", va="top", fontsize=charts.SIZE)
    if first:
      charts.title(axis, f"a typical query, {_NAMES[scaled]}")
    if scaled:
      axis.set_ylabel("weight")
