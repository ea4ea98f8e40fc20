"""A picture of the sinusoids of §3.5: all numbers, some dimensions as waves, and the distances between positions."""

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transformer_jax.inside import charts
from transformer_jax.model.positional_encoding import sinusoids

_WAVES = 4
_FINE = 8  # points of a wave between two positions


def encoding(length: int, d_model: int) -> np.ndarray:
  """The positional encodings of the first positions: `[length, d_model]` float32."""
  return np.asarray(sinusoids(jnp.arange(length), d_model))


def distances(encoded: np.ndarray) -> np.ndarray:
  """The distance ||PE(pos) - PE(pos + k)|| for each offset k, at pos = 0: `[length, d_model]` -> `[length]`.

  All distances of one offset are equal, as PE(pos + k) is PE(pos), turned by an angle that depends on k alone.
  """
  return np.linalg.norm(encoded - encoded[0].astype(np.float64), axis=1)


def dimensions(length: int, d_model: int) -> list[int]:
  """Even dimensions: the first one and slower ones, of which the slowest makes about half a turn within `length`."""
  slowest = d_model / 2 * np.log(max(length, 4) / np.pi) / np.log(10_000)
  last = min(d_model / 2 - 1, max(_WAVES - 1, slowest))
  return list(dict.fromkeys(2 * round(float(i)) for i in np.linspace(0, last, _WAVES)))


def draw(length: int, d_model: int) -> Figure:
  """Heat maps of the sines and of the cosines, some dimensions as waves, and the distances by offset.

  Args:
    length: the number of positions.
    d_model: the width of an encoding.
  """
  encoded, chosen = encoding(length, d_model), dimensions(length, d_model)
  figure, axes = charts.chart(5.4, len(chosen) + 1, 2, height_ratios=[3, *[2.4 / len(chosen)] * len(chosen)])
  below = charts.merged(axes, np.s_[1:, 1])
  _heat_maps(figure, axes[0], encoded)
  _waves(list(axes[1:, 0]), chosen, length, d_model)
  _distances(below, distances(encoded), d_model)
  return figure


def _heat_maps(figure: Figure, axes: np.ndarray, encoded: np.ndarray) -> None:
  d_model, images = encoded.shape[1], []
  for first, (axis, name) in enumerate(zip(axes, ("even dimensions: sine", "odd dimensions: cosine"), strict=True)):
    options = {"cmap": charts.MAP, "vmin": -1, "vmax": 1, "aspect": "auto", "interpolation": "nearest"}
    images.append(axis.imshow(encoded[:, first::2], **options))
    charts.frame(axis)
    shown = [place for place in axis.get_xticks() if place == int(place) and 0 <= place < d_model // 2]
    axis.set_xticks(shown, [f"{2 * int(place) + first}" for place in shown])
    axis.set(xlabel=f"dimension, d_model = {d_model}", ylabel="position" if first == 0 else "")
    charts.title(axis, name)
  bar = figure.colorbar(images[0], ax=list(axes), pad=0.01, aspect=14, ticks=[-1, 0, 1])
  bar.ax.tick_params(labelsize=charts.SIZE)


def _waves(axes: list[Axes], chosen: list[int], length: int, d_model: int) -> None:
  places = np.linspace(0, length - 1, _FINE * (length - 1) + 1)
  parts = np.array_split(places, _FINE)  # most dimensions are not drawn
  waves = np.concatenate([np.asarray(sinusoids(jnp.asarray(part), d_model))[:, chosen] for part in parts])
  for number, (axis, dimension) in enumerate(zip(axes, chosen, strict=True)):
    axis.plot(places, waves[:, number], lw=1.2, **charts.style(number))
    axis.set(ylim=(-1.25, 1.25), yticks=[-1, 1], xlim=(0, length - 1))
    axis.text(1, 0.5, f" {dimension}", transform=axis.transAxes, va="center", fontsize=charts.SIZE)
    if axis is not axes[-1]:
      axis.set_xticklabels([])
  charts.title(axes[0], f"dimensions {', '.join(map(str, chosen))}")
  axes[-1].set_xlabel("position")


def _distances(axis: Axes, by_offset: np.ndarray, d_model: int) -> None:
  axis.plot(by_offset, color="black", lw=1.2)
  level = d_model**0.5
  axis.axhline(level, color=charts.GREY, lw=1, ls="--")
  label = {"ha": "right", "va": "bottom", "fontsize": charts.SIZE, "zorder": 3}  # above the curve, on white
  box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
  axis.text(len(by_offset) - 1, level, f"√d_model = {level:.1f}", bbox=box, **label)
  axis.set(
    xlim=(0, len(by_offset) - 1),
    ylim=(0, 1.15 * max(level, by_offset.max())),
    xlabel="offset k; the same for every pos",
  )
  charts.title(axis, "distance ||PE(pos + k) - PE(pos)||")
