"""Pictures of attention by matplotlib: a grid of all heads, a matrix, and lines between tokens."""

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from transformer_jax.decoding.attention import CROSS, DECODER, ENCODER, Attention
from transformer_jax.inside.attention import Choice, visible
from transformer_jax.inside.charts import COLOURS, MAP

_LARGEST = 40.0  # inches of a picture of many tokens, which is then drawn smaller
_FAINTEST = 0.005  # a line with a smaller weight could not be seen
# The axes of each kind.
_QUERIES = {ENCODER: "source", DECODER: "read so far", CROSS: "written"}
_KEYS = {ENCODER: "source", DECODER: "read so far", CROSS: "source"}
# Black, which letters have too, is left to the seventh head.
_COLOURS = (*COLOURS[:3], *COLOURS[4:7], COLOURS[3], *COLOURS[7:])
_DASHES = ("-", "--", ":")  # of the first eight heads, the next eight, and so on

_LEGEND: Any = {
  "loc": "outside upper center",
  "title": "head",
  "fontsize": 9,
  "title_fontsize": 9,
  "frameon": False,
}


def grid(attention: Attention, kind: str) -> Figure:
  """All heads of a kind: a row for each layer, a column for each head. Black is 1, white is 0."""
  weights = attention.weights[kind]
  layers, heads, query, key = weights.shape
  width, height = (1.7 * size / max(query, key) + 0.25 for size in (max(key, query / 3), max(query, key / 3)))
  figure = Figure(figsize=(max(3.0, width * heads + 0.8), height * layers + 0.9), layout="constrained")
  axes = figure.subplots(layers, heads, squeeze=False)
  for (layer, head), axis in np.ndenumerate(axes):
    axis.imshow(weights[layer, head], cmap=MAP, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axis.set(xticks=[], yticks=[])
    if layer == 0:
      axis.set_title(f"head {head + 1}", fontsize=9)
    if head == 0:
      axis.set_ylabel(f"layer {layer + 1}", fontsize=9)
  figure.supxlabel(f"{_KEYS[kind]}    (black is 1, white is 0)", fontsize=9)
  figure.supylabel(_QUERIES[kind], fontsize=9)
  return figure


def matrix(attention: Attention, choice: Choice) -> Figure:
  """The weights of a head, or the mean of a layer's heads, with the tokens of both axes."""
  query, key = (visible(tokens) for tokens in attention.axes(choice.kind))
  weights = attention.weights[choice.kind][choice.layer]
  weights = weights.mean(axis=0) if choice.head is None else weights[choice.head]
  width, height = 0.28 * len(key), 0.26 * len(query)
  scale = min(1.0, _LARGEST / max(width, height))
  figure = Figure(figsize=(max(2.6, scale * width + 1.8), scale * height + 1.6), layout="constrained")
  axis = figure.subplots()
  axis.pcolormesh(weights, cmap=MAP, vmin=0, vmax=1, edgecolors="#e4e4e4", linewidth=0.5)
  axis.set_xticks(np.arange(len(key)) + 0.5, key, rotation=90, parse_math=False)
  axis.set_yticks(np.arange(len(query)) + 0.5, query, parse_math=False)
  axis.invert_yaxis()
  axis.xaxis.tick_top()
  axis.tick_params(length=0, labelsize=10 * scale)
  axis.set_xlabel(
    f"{_KEYS[choice.kind]}\n{_named(attention, choice._replace(word=None))}\nblack is 1, white is 0", fontsize=9
  )
  axis.set_ylabel(_QUERIES[choice.kind], fontsize=9)
  return figure


def lines(attention: Attention, choice: Choice) -> Figure:
  """Lines from tokens that look, above, to the tokens that they look at, below, as in the paper's Figures 3 to 5.

  The stronger a line, the larger its weight. For one word and all heads each head has a colour, from the ninth on with
  dashes, and each token below has a bar for each head. For all words and all heads the weights are the mean of the
  heads.
  """
  query, key = (visible(tokens) for tokens in attention.axes(choice.kind))
  weights = attention.weights[choice.kind][choice.layer]
  if choice.head is not None:
    weights = weights[choice.head : choice.head + 1]
  elif choice.word is None:
    weights = weights.mean(axis=0, keepdims=True)
  words = range(len(query)) if choice.word is None else [choice.word]
  width = min(_LARGEST, 0.36 * max(len(query), len(key)) + 1.0)
  figure = Figure(figsize=(max(3.2, width), 4.8), layout="constrained")
  axis = figure.subplots()
  for place, head in enumerate(weights):
    colour, dashes = _COLOURS[place % len(_COLOURS)], _DASHES[place // len(_COLOURS) % len(_DASHES)]
    ends = [(q, k) for q in words for k in range(len(key)) if head[q, k] >= _FAINTEST]
    strengths = [min(1.0, float(head[end])) for end in ends]
    # The heads' lines do not hide each other, and stay near their tokens.
    beside = min(0.08, 0.7 / len(weights)) * (place - (len(weights) - 1) / 2)
    between = [[(q + beside, 1.0), (k + beside, 0.0)] for q, k in ends]
    if between:  # among many tokens each weight may be too small
      axis.add_collection(LineCollection(between, colors=colour, linewidths=2.2, linestyles=dashes, alpha=strengths))
    if len(weights) > 1:
      _bars(axis, head[words[0]], place, len(weights), colour)
      axis.plot([], [], color=colour, lw=2.2, ls=dashes, label=f"{place + 1}")  # for the legend alone
  _labels(axis, query, 1.02, "bottom", choice.word)
  _labels(axis, key, -0.02 if len(weights) == 1 else -0.11, "top", None)
  axis.set(xlim=(-0.7, max(len(query), len(key)) - 0.3), ylim=(-0.1, 1.0))
  axis.axis("off")
  if len(weights) > 1:
    length = 1 if len(weights) <= len(_COLOURS) else 2.5  # to see the dashes
    figure.legend(**_LEGEND, ncols=min(4, len(weights)), handlelength=length)
  sides = f"above: {_QUERIES[choice.kind]}; below: {_KEYS[choice.kind]}"
  figure.supxlabel(f"{sides}\n{_named(attention, choice)}", fontsize=9)
  return figure


def _labels(axis: Axes, tokens: list[str], height: float, side: Literal["bottom", "top"], bold: int | None) -> None:
  for i, text in enumerate(tokens):
    weight = "bold" if i == bold else "normal"
    axis.text(i, height, text, rotation=90, ha="center", va=side, weight=weight, parse_math=False)


def _bars(axis: Axes, weights: np.ndarray, place: int, count: int, colour: str) -> None:
  """A small square for a head at each token that is looked at."""
  size = 0.07 / count
  for k, weight in enumerate(weights):
    corner = k - 0.35, -0.02 - (place + 1) * size
    axis.add_patch(Rectangle(corner, 0.7, size, color=colour, alpha=float(np.clip(weight, 0, 1)), linewidth=0))


def _named(attention: Attention, choice: Choice) -> str:
  head = 0 if len(attention.weights[choice.kind][choice.layer]) == 1 else choice.head
  if head is not None:
    return f"layer {choice.layer + 1}, head {head + 1}"
  return f"layer {choice.layer + 1}, {'mean of the heads' if choice.word is None else 'a colour for each head'}"


def pictures(attention: Attention, choice: Choice) -> dict[str, Figure]:
  """All figures by their names: a grid for each kind, the matrix of cross-attention, the lines of `choice`."""
  found = {f"heads-{kind}": grid(attention, kind) for kind in attention.weights}
  if CROSS in attention.weights:
    other = choice if choice.kind == CROSS else Choice(CROSS, len(attention.weights[CROSS]) - 1)
    found["cross"] = matrix(attention, other)
  return found | {"lines": lines(attention, choice)}
