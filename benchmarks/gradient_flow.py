"""How far back gradients reach: the norm of d loss(t) / d h(s) over the distance t - s, for each kind of model.

    python benchmarks/gradient_flow.py [--json FILE] [--svg FILE]
    python benchmarks/gradient_flow.py --run rnn=runs/rnn gru=runs/gru ... [--json FILE] [--svg FILE]

Without --run the models have random parameters and read random tokens of a vocabulary of 1,000. The recurrent ones have
one layer of 128 units; the simple recurrent network is measured with several scales of its matrix U. The Transformer is
that of configs/multi30k.py. With --run each trained model is measured beside its own random start, on pairs of its
validation text that have at least --length tokens on each side, cut to --length. `state_gradients.py` says what h(s)
and loss(t) are.

The sentence pair counts as one sequence: the distance of two tokens is the number of tokens from one to the other, in
the order in which the model reads them. The numbers are geometric means over all pairs of tokens with the same
distance. The bounds are those of Pascanu et al. 2013 for a decoder of simple recurrent units. For one layer of such
units a second table tells how many of them are saturated: the derivative of tanh is below 0.01.
"""

import argparse
import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import programs
import report
import state_gradients
from line_styles import STYLES
from without_residuals import WithoutResidualsConfig

from transformer_jax import registry, runs
from transformer_jax.config import Config, flags
from transformer_jax.data import corpus
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import FIRST_PIECE
from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.initialization import init_params
from transformer_jax.training.task import task_of

VOCABULARY, HIDDEN = 1000, 128  # of the models with random parameters
SCALES = (0.5, 1, 2, 4)  # of U
SHOWN = (1, 2, 4, 8, 16, 32)  # the distances in the table
SIDES = ("target", "source")
LIMITS = (1e-12, 1e9)  # of the picture, at most
OF_STEPS, OF_MATRIX = "bound of its steps", "bound of |U|"
SATURATED = 0.01  # the derivative of tanh


class Measured(NamedTuple):
  """A model to measure.

  Attributes:
    name: its name in the table.
    model, params: the model.
    pairs: the sentence pairs, tokens `[pairs, 2, length]`.
  """

  name: str
  model: nn.Module
  params: Params
  pairs: np.ndarray


def main() -> None:
  args = parse()
  use_compilation_cache()
  models = trained_models(args) if args.run else random_models(args)
  curves, saturation = {}, []
  for model in models:
    report.progress(model.name)
    curves |= measure(model)
    saturation += saturation_rows(model)
  rows = [row(name, side, curve) for (name, side), curve in curves.items()]
  points = [{"model": name, "states": side, "norms": curve} for (name, side), curve in curves.items()]
  if saturation:
    print(report.table(saturation) + "\n")
  report.finish("gradient_flow", rows, args.json, points=points, saturation=saturation)
  if args.svg:  # last, as a changed picture would make the commit of the results a dirty one
    picture(curves).savefig(args.svg, metadata={"Date": None})


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="How far back gradients reach.", allow_abbrev=False)
  add = parser.add_argument
  add("--run", nargs="+", default=[], metavar="NAME=FOLDER", help="trained models (default: random ones)")
  add("--length", type=int, default=24, metavar="N", help="tokens of a source and of a target (default 24)")
  add("--pairs", type=int, default=8, metavar="N", help="sentence pairs (default 8)")
  add("--seed", type=int, default=1, metavar="N", help="of random parameters and tokens (default 1)")
  add("--svg", metavar="FILE", help="where a picture goes")
  report.add_arguments(parser, with_peers=False)
  args = parser.parse_args()
  if not all("=" in run for run in args.run):
    parser.error("--run takes NAME=FOLDER, as in --run rnn=runs/rnn")
  return args


# The models.


def random_models(args: argparse.Namespace) -> Iterator[Measured]:
  """The models with random parameters; the tokens are drawn uniformly."""
  generator = np.random.default_rng(args.seed)
  pairs = generator.integers(FIRST_PIECE, VOCABULARY, size=(args.pairs, 2, args.length))
  for name, config in random_configs().items():
    for scale in SCALES if name == "rnn" else (1,):
      params = scaled(random_params(config, args.seed), scale)
      yield Measured(f"rnn, {scale:g} U" if name == "rnn" else name, registry.module(config.model), params, pairs)


def random_configs() -> dict[str, Config]:
  """The experiments, by the model's name in the table."""

  def with_model(config: Config, **changes: Any) -> Config:
    return dataclasses.replace(config, model=dataclasses.replace(config.model, vocab_size=VOCABULARY, **changes))

  stacks = {"rnn": "rnn", "gru": "gru", "lstm": "plain"}
  transformer = with_model(flags.read_config("multi30k:plain", {}))
  return {
    **{
      name: with_model(flags.read_config(f"rnn:{kind}", {}), num_layers=1, hidden_size=HIDDEN)
      for name, kind in stacks.items()
    },
    "bahdanau": with_model(flags.read_config("rnn:bahdanau", {}), hidden_size=HIDDEN),
    "transformer": transformer,
    "without residuals": dataclasses.replace(transformer, model=WithoutResidualsConfig(**vars(transformer.model))),
  }


def trained_models(args: argparse.Namespace) -> Iterator[Measured]:
  """Each run's model with random parameters, and trained."""
  for name, folder in (run.split("=", 1) for run in args.run):
    config, params, tokenizer, _ = runs.open(folder).model("translate")
    text = corpus.open_corpus(config.data, config.data.validation)
    encoded = ([tokenizer.source.encode(source), tokenizer.target.encode(target)] for source, target in text)
    long = (pair for pair in encoded if min(map(len, pair)) >= args.length)
    pairs = np.array([[side[: args.length] for side in pair] for pair in itertools.islice(long, args.pairs)])
    if len(pairs) < args.pairs:
      raise InputError(
        f"{text.name} has {len(pairs)} pairs of at least {args.length} tokens on each side: "
        f"lower --length, or --pairs, which is {args.pairs}"
      )
    model = registry.module(config.model)
    yield Measured(f"{name}, random", model, random_params(config, config.train.seed), pairs)
    yield Measured(f"{name}, trained", model, params, pairs)


def random_params(config: Config, seed: int) -> Params:
  seeded = dataclasses.replace(config, train=dataclasses.replace(config.train, seed=seed))
  return jax.jit(lambda: init_params(seeded, task_of(config.model)))()


def scaled(params: Params, scale: float) -> Params:
  """The parameters with another scale of each matrix that multiplies a state of a simple recurrent network."""
  if scale == 1:
    return params

  def of(path: Any, x: jax.Array) -> jax.Array:
    return x * scale if path[-1].key == "recurrent" else x

  return jax.tree_util.tree_map_with_path(of, params)


# The measurement.


def measure(measured: Measured) -> dict[tuple[str, str], list[float]]:
  """(name, side) -> the mean norm for each distance from 1, and the bounds under names of their own."""
  model, params = measured.model, measured.params
  found = [norms_by_side(model, params, *jnp.asarray(pair)) for pair in measured.pairs]
  distance = distances(model.config, measured.pairs.shape[2])
  return {
    (f"{measured.name}{which}", side): by_distance(distance[side], np.stack([one[which, side] for one in found]))
    for which, side in found[0]
  }


def norms_by_side(
  model: nn.Module, params: Params, source: jax.Array, target: jax.Array
) -> dict[tuple[str, str], np.ndarray]:
  """("" or which bound, side) -> `[target, states]`, for one sentence pair."""
  norms = state_gradients.norms(model, params, source, target)
  found = {("", "target"): np.asarray(norms.target), ("", "source"): np.asarray(norms.source)}
  if state_gradients.has_bound(model):
    bound = state_gradients.bound(model, params, source, target)
    found[f", {OF_STEPS}", "target"] = bound.of_steps
    if bound.of_matrix is not None:
      found[f", {OF_MATRIX}", "target"] = bound.of_matrix
  return found


def saturation_rows(measured: Measured) -> list[dict[str, Any]]:
  """How far tanh is saturated in the encoder and in the decoder; empty for other models than one layer of it."""
  model, params = measured.model, measured.params
  if not state_gradients.has_bound(model) or getattr(model.config, "num_layers", 1) > 1:
    return []
  slopes = [state_gradients.slopes(model, params, *jnp.asarray(pair)) for pair in measured.pairs]
  rows = []
  for side in ("encoder", "decoder"):
    every = np.concatenate([getattr(one, side) for one in slopes])
    share = float(np.mean(every < SATURATED))
    rows.append({"model": measured.name, "states of": side, "mean tanh'": float(np.mean(every)), "saturated": share})
  return rows


def distances(config: AnyModelConfig, length: int) -> Mapping[str, np.ndarray]:
  """t - s of each loss and state, `[target, states]`; below 1 the loss does not depend on what the state passes on."""
  t, s = np.arange(length)[:, None], np.arange(length)
  tokens_behind = s + 1 if getattr(config, "reverse_source", False) else length - s
  return {"target": t - s, "source": t + tokens_behind}


def by_distance(distance: np.ndarray, norms: np.ndarray) -> list[float]:
  """The geometric means over the norms of each distance from 1: `[target, states]`, `[pairs, target, states]`."""
  with np.errstate(divide="ignore"):  # the mean of 0 and other numbers is 0
    logs = np.log(norms, dtype=np.float64)
  return [float(np.exp(np.mean(logs[:, distance == d]))) for d in range(1, distance.max() + 1)]


def row(name: str, side: str, curve: list[float]) -> dict[str, Any]:
  """The model's row of the table."""
  shown = {f"t - s = {d}": f"{curve[d - 1]:.1e}" if curve[d - 1] else "0" for d in SHOWN if d <= len(curve)}
  return {"model": name, "states of": side, **shown}


def picture(curves: Mapping[tuple[str, str], list[float]]) -> Any:
  """The norms over the distance, for the states of the target left and for those of the source right.

  A panel names the lines that lie below it as a whole.
  """
  plt = report.pyplot()
  figure, axes = plt.subplots(1, 2, figsize=(7, 4.6), sharey=True, layout="constrained")
  names = [name for name, side in curves if side == "source"]
  styles = dict(zip(names, itertools.cycle(STYLES), strict=False))
  for (name, side), curve in curves.items():
    axis = axes[SIDES.index(side)]
    which = name.rpartition(", ")[2]
    style = styles.get(name) or {"color": "0.4", "linewidth": 1, "linestyle": "--" if which == OF_STEPS else ":"}
    label = name if name in styles else f"rnn, {which}"
    axis.semilogy(range(1, len(curve) + 1), curve, label=label, **style)
  numbers = [number for curve in curves.values() for number in curve if number]
  bottom, top = max(LIMITS[0], min(numbers) / 2), min(LIMITS[1], 2 * max(numbers))
  for axis, side in zip(axes, SIDES, strict=True):
    axis.set(xlabel=f"t - s, with s a token of the {side}", ylim=(bottom, top))
    axis.grid(alpha=0.3)
    if hidden := [name for (name, other), curve in curves.items() if other == side and max(curve) < bottom]:
      axis.text(0.03, 0.02, "\n".join(["below the picture:", *hidden]), transform=axis.transAxes, fontsize="small")
  axes[0].set(ylabel="norm of d loss(t) / d h(s)")
  handles, labels = axes[0].get_legend_handles_labels()
  lines = dict(zip(labels, handles, strict=True))  # the bounds of all networks are one entry
  figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=3, fontsize="small")
  return figure


if __name__ == "__main__":
  programs.run(main)
