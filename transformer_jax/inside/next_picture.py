"""A picture of the probabilities of the next token, as bars."""

import textwrap

import numpy as np
from matplotlib.figure import Figure

from transformer_jax.decoding.next_token import NextToken
from transformer_jax.inside import charts
from transformer_jax.inside.attention import columns, visible

_CHARACTERS, _LINES = 82, 3  # in a line above the bars, and lines


def draw(found: NextToken, most: int) -> Figure:
  """A bar for each of the most probable tokens, the largest above, and a hatched one for all others together.

  Args:
    found: the probabilities.
    most: the number of tokens that have a bar of their own.
  """
  best = found.best(most)
  rest = max(0.0, 1 - sum(probability for _, probability in best))
  others = len(found.texts) - len(best)
  heading = [*_shown("reads", found.source), *_shown("has written" if found.source else "reads", found.read)]
  figure, [[axis]] = charts.chart(0.75 + 0.16 * len(heading) + 0.21 * (len(best) + 1))
  values = [*(probability for _, probability in best), rest]
  names = [*visible(tuple(piece for piece, _ in best)), f"{others:,} others"]
  bars = axis.barh(range(len(values)), values, color=charts.PALE, edgecolor="black", lw=0.8, height=0.72)
  bars[-1].set(hatch="////", facecolor="white")
  for place, value in enumerate(values):
    text = f" {value:.3f}" if value >= 0.0005 else " below 0.001"
    axis.text(value, place, text, va="center", fontsize=charts.SIZE)
  axis.set_yticks(range(len(names)), names, parse_math=False)
  axis.invert_yaxis()
  axis.tick_params(axis="y", length=0)
  axis.set(xlim=(0, 1.14 * max(values)), xlabel="probability of the next token")
  axis.set_xticks(_ticks(max(values)))
  figure.suptitle("\n".join(heading), x=0.01, ha="left", fontsize=9, parse_math=False)
  return figure


def _shown(what: str, tokens: tuple[str, ...]) -> list[str]:
  """The tokens in lines, with a sign for each space; the middle of a long text is left out."""
  if not tokens:
    return []
  text = f"{what}: {' '.join(visible(tokens))}"
  lines = textwrap.wrap(text, _CHARACTERS // 2 if columns(text) > len(text) else _CHARACTERS)
  return lines if len(lines) <= _LINES else [lines[0], "…", lines[-1]]


def _ticks(largest: float) -> list[float]:
  step = next(step for step in (0.2, 0.1, 0.05, 0.02, 0.01, 0.0) if step <= largest / 3)
  return [round(float(x), 4) for x in np.arange(0, largest + step / 2, step)] if step else [0]
