"""A picture of what is lost without each head, by matplotlib."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from transformer_jax.inside import charts
from transformer_jax.inside.heads import Head


def bleu_lost(heads: Sequence[Head]) -> Figure:
  """A grid for each kind of attention, a cell for each head, with the BLEU that is lost without it.

  The more is lost, the darker the cell. A negative number is BLEU that is gained; its cell is white.
  """
  kinds = list(dict.fromkeys(head.kind for head in heads))
  layers = {kind: max(head.layer for head in heads if head.kind == kind) for kind in kinds}
  most = max(head.head for head in heads)
  # One grid above another: the width of a page holds the 16 heads of the paper's big model.
  height = 0.32 * sum(layers.values()) + 0.6 * len(kinds) + 0.5
  figure = Figure(figsize=(max(2.6, 0.42 * most + 1.2), height), layout="constrained")
  darkest = max(0.1, *(head.bleu_lost for head in heads))
  axes = figure.subplots(len(kinds), 1, squeeze=False, height_ratios=[*layers.values()])[:, 0]
  for axis, kind in zip(axes, kinds, strict=True):
    grid = np.zeros((layers[kind], most))
    for head in heads:
      if head.kind == kind:
        grid[head.layer - 1, head.head - 1] = head.bleu_lost
    axis.imshow(grid, cmap=charts.MAP, vmin=0, vmax=darkest, aspect="auto")
    for (row, column), value in np.ndenumerate(grid):
      colour = "white" if value > 0.62 * darkest else "black"  # the one with more contrast
      text = f"{round(value, 1) + 0.0:.1f}"  # 0.0 and not -0.0
      axis.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    axis.set_xticks(range(most), range(1, most + 1), fontsize=8)
    axis.set_yticks(range(layers[kind]), range(1, layers[kind] + 1), fontsize=8)
    axis.set_ylabel(f"{kind}\nlayer", fontsize=9)
    axis.tick_params(length=0)
  axes[-1].set_xlabel("head", fontsize=9)
  figure.suptitle("BLEU lost without the head", fontsize=10)
  return figure
