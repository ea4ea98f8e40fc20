"""A picture of the learning rate of §5.3, eq. 3, for several numbers of warmup steps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transformer_jax.inside import charts
from transformer_jax.training.schedule import inverse_square_root

_POINTS = 600


class Rates(NamedTuple):
  """The learning rates with one number of warmup steps.

  Attributes:
    warmup: the number of warmup steps.
    steps: steps, counted from 1 as in the paper; `warmup` is one of them.
    rates: the learning rate at each of them.
    peak: the rate at step `warmup`.
  """

  warmup: int
  steps: np.ndarray
  rates: np.ndarray
  peak: float


def rates(d_model: int, warmups: Sequence[int], last: int, peak: float | None = None) -> list[Rates]:
  """The learning rates up to step `last`, for each number of warmup steps; with `peak` scaled to it at step `warmup`.

  lrate = d_model^-0.5 min(step^-0.5, step warmup^-1.5), or peak min((warmup / step)^0.5, step / warmup)
  """
  found = []
  for warmup in warmups:
    highest = (d_model * warmup) ** -0.5 if peak is None else peak
    even = np.linspace(1, last, min(_POINTS, last)).round()
    steps = np.unique([*even, *([warmup] if warmup <= last else [])]).astype(np.int64)
    schedule = inverse_square_root(d_model, warmup, highest)
    found.append(Rates(warmup, steps, np.asarray(schedule(steps - 1)), highest))  # optax counts from 0
  return found


def draw(d_model: int, warmups: Sequence[int], last: int, peak: float | None = None) -> Figure:
  """A line for each number of warmup steps, with a point at its peak.

  Args:
    d_model: the model's width.
    warmups: numbers of warmup steps; the first is drawn thick.
    last: the last step.
    peak: the rate at the end of each warmup; None is that of eq. 3.
  """
  figure, [[axis]] = charts.chart(3.4)
  every = rates(d_model, sorted(set(warmups)), last, peak)
  for number, each in enumerate(every):
    own = " (the config)" if each.warmup == warmups[0] else ""
    label = f"warmup {each.warmup:,}{own}: peak {each.peak:.3g}"
    thick = {"lw": 2.4, "zorder": 2.5} if each.warmup == warmups[0] else {"lw": 1.3}
    marker = {"marker": charts.MARKERS[number % 8], "ms": 5, "markevery": each.steps == each.warmup}
    axis.plot(each.steps, each.rates, label=label, **charts.style(number), **thick, **marker)
  highest = max(each.rates.max() for each in every)
  axis.set(xlabel="step", ylabel="learning rate", xlim=(0, last), ylim=(0, 1.08 * highest))
  axis.xaxis.set_major_formatter("{x:,.0f}")
  axis.ticklabel_format(axis="y", scilimits=(0, 0))
  axis.yaxis.get_offset_text().set_fontsize(charts.SIZE)
  charts.legend(axis, loc="best")  # where no line is
  _formula(axis, d_model, peak)
  return figure


def _formula(axis: Axes, d_model: int, peak: float | None) -> None:
  """Writes the equation above, on the right of the power of ten."""
  if peak is None:
    text = f"lrate = {d_model}$^{{-0.5}}$ min(step$^{{-0.5}}$, step warmup$^{{-1.5}}$)"
  else:
    text = f"lrate = {peak:.3g} min((warmup / step)$^{{0.5}}$, step / warmup)"
  axis.set_title(text, fontsize=9, loc="right")
