"""Pictures of training: numbers of the log over updates, for several runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import report

Metrics = Sequence[Mapping[str, Any]]  # the lines of a run's `metrics.jsonl`


class Panel(NamedTuple):
  """A chart of one number.

  Attributes:
    curves: the name of each curve, and the metrics of its runs, which are lines of one look.
    label: the number in words.
    name: the number in the log.
    split: the text that it is of.
  """

  curves: Mapping[str, Sequence[Metrics]]
  label: str
  name: str
  split: str = "validation"


def draw(panels: Sequence[Panel], path: Path) -> None:
  """Writes the panels side by side as SVG."""
  figure(panels).savefig(path, metadata={"Date": None})


def figure(panels: Sequence[Panel]) -> Any:
  """The panels side by side; the first curve of each has one look, the second another, and so on."""
  from transformer_jax.inside import charts  # imports Matplotlib

  report.pyplot()  # so that the same numbers give the same file
  made, [axes] = charts.chart(2.6, 1, len(panels))
  for axis, panel in zip(axes, panels, strict=True):
    for place, (name, runs) in enumerate(panel.curves.items()):
      for number, metrics in enumerate(runs):
        points = [line for line in metrics if line["split"] == panel.split and panel.name in line]
        marker = "o" if len(points) < 5 else None  # otherwise it is a line that ends soon
        label = None if number else name
        x, y = ([line[key] for line in points] for key in ("step", panel.name))
        axis.plot(x, y, **charts.style(place), marker=marker, ms=4, lw=1.2, label=label)
    axis.set(xlabel="updates", ylabel=panel.label)
    axis.grid(alpha=0.3)
    if panel.name == "perplexity":
      logarithmic(axis)
  for axis, panel in zip(axes, panels, strict=True):
    if panel.curves.keys() != panels[0].curves.keys() or axis is axes[0]:
      charts.legend(axis)
  return made


def logarithmic(axis: Any) -> None:
  """Gives the y axis a logarithmic scale with plain numbers."""
  from matplotlib.ticker import LogLocator, ScalarFormatter

  axis.set_yscale("log")
  axis.minorticks_off()
  axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
  axis.yaxis.set_major_formatter(ScalarFormatter())
