"""The picture of `table1.py`: time over each size, on logarithmic axes."""

from typing import Any

import report


def draw(points: list[dict[str, Any]], compared: list[dict[str, Any]], path: str) -> None:
  """Draws forward and backward passes: one panel per sweep, and one for additive against dot-product attention."""
  figure, axes = report.pyplot().subplots(1, 4, figsize=(15, 4), layout="constrained")
  colours = {name: f"C{number}" for number, name in enumerate(dict.fromkeys(point["layer"] for point in points))}
  for axis, (sizes, label) in zip(axes, PANELS, strict=False):
    for name in colours:
      for size in sizes:
        line(axis, [point for point in points if (point["layer"], point["sweep"]) == (name, size)], colours[name])
    axis.set(xlabel=label, ylabel="ms, forward and backward")
  both = [row for row in compared if row["pass"] != "forward"]
  for name in ("dot-product", "additive"):
    axes[3].loglog([int(row["d_k"]) for row in both], [row[f"{name}, ms"] for row in both], marker=".", label=name)
  axes[3].set(xlabel="d_k, of one head over 256 positions")
  axes[3].legend(fontsize="small")
  for axis in axes:
    axis.set_xscale("log", base=2)
    axis.minorticks_off()
    axis.grid(alpha=0.3)
  figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize="small")
  figure.savefig(path, metadata={"Date": None})


PANELS = ((("n",), "n positions, d = 256"), (("d",), "d, n = 256"), (("k", "r"), "k (n = 512) or r (n = 2048)"))


def line(axis: Any, points: list[dict[str, Any]], colour: str) -> None:
  mine = [point for point in points if point["pass"] != "forward"]
  if mine:
    times = [1000 * report.median(point["seconds"]) for point in mine]
    axis.loglog([point["size"] for point in mine], times, marker=".", color=colour, label=mine[0]["layer"])
