"""Exposure bias: the loss by position where a model reads the reference, and where it reads its own output.

    python benchmarks/exposure_bias.py --workdir RUN [RUN ...] [--text SOURCE,TARGET] [--json FILE] [--svg FILE]

Training reads the reference (teacher forcing), translation reads what the model has said so far. The loss is
-log P(y_t of the reference) both times. The model's own output is the most probable token at each position, where EOS
is not allowed before the reference ends, so that both sides have the same positions. "Same so far" is the share of
tokens before which the model has said exactly the reference; for them the losses are the same. An own output that says
the same in other words or another order has a high loss, too. So the difference is an upper bound on the harm of the
model's own mistakes. The text is the run's validation text, or the one of --text, in the form of `config.data.train`.
Any model that translates can be measured.
"""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import programs
import report
from line_styles import STYLES

from transformer_jax import registry, runs
from transformer_jax.data import corpus
from transformer_jax.decoding import buckets
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import EOS, PAD
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError

FIRST = (1, 2, 3, 5, 9, 17, 33)  # the first position of each group of the table
FEWEST = 100  # tokens of a position in the picture; a mean over fewer jumps from position to position
AT_ONCE = 32  # pairs computed together


class Losses(NamedTuple):
  """-log P of each token of the reference, `[pairs, positions]`; 0 at padding.

  Attributes:
    reference: where the model reads the reference.
    own: where it reads its own output.
    same: whether its own output has been the reference so far, so that both losses are the same one.
  """

  reference: np.ndarray
  own: np.ndarray
  same: np.ndarray


def main() -> None:
  args = parse()
  rows, points = [], []
  for workdir in args.workdir:
    report.progress(workdir)
    config, params, tokenizer, step = runs.open(workdir).model("translate")
    sources, targets, left_out = tokens_of(config, tokenizer, args)
    found = losses(registry.module(config.model), devices.on_first_device(params), sources, targets)
    real = targets != PAD
    rows += [{"run": workdir, "step": str(step), **row} for row in grouped(found, real)]
    points.append({"run": workdir, "step": step, "left_out": left_out, **by_position(found, real)})
  report.finish("exposure_bias", rows, args.json, points=points)
  if args.svg:  # last, as a changed picture would make the commit of the results a dirty one
    picture(points).savefig(args.svg, metadata={"Date": None})


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Loss by position, fed the reference and its own.", allow_abbrev=False)
  add = parser.add_argument
  add("--workdir", nargs="+", required=True, metavar="RUN", help="run folders of models that translate")
  add("--text", default="", metavar="TEXT", help="named as config.data.train is (default: the validation text)")
  add("--most", type=int, default=40, metavar="N", help="tokens of a side; longer pairs are left out (default 40)")
  add("--pairs", type=int, default=1000, metavar="N", help="the first N pairs of the text (default 1000)")
  add("--svg", metavar="FILE", help="where a picture goes")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def tokens_of(config: Any, tokenizer: Any, args: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, int]:
  """Sources and targets with EOS, padded to `[pairs, most]`, and the number of pairs that were left out."""
  text = corpus.open_corpus(config.data, args.text or config.data.validation)
  tokenizers = tokenizer.source, tokenizer.target
  pairs = [
    [[*each.encode(side), EOS] for each, side in zip(tokenizers, pair, strict=True)]
    for pair in itertools.islice(text, args.pairs)
  ]
  fitting = [pair for pair in pairs if max(map(len, pair)) <= args.most]
  if not fitting:
    raise InputError(f"{text.name} has no pair of at most {args.most} tokens on each side: raise --most")
  sources, targets = (buckets.pad(side, len(fitting), args.most, PAD) for side in zip(*fitting, strict=True))
  return sources, targets, len(pairs) - len(fitting)


def losses(model: nn.Module, params: Params, sources: np.ndarray, targets: np.ndarray) -> Losses:
  """The losses of pairs `[pairs, length]` with EOS, padded with PAD."""

  @jax.jit
  def some(params: Params, sources: jax.Array, targets: jax.Array) -> Losses:
    def of_pair(source: jax.Array, target: jax.Array) -> Losses:
      forced, _ = read(model, params, source, target, own=False)
      return Losses(forced, *read(model, params, source, target, own=True))

    return jax.vmap(of_pair)(sources, targets)

  parts = []
  for start in range(0, len(sources), AT_ONCE):
    report.progress(f"pair {start + 1} of {len(sources)}")
    chosen = np.arange(start, start + AT_ONCE) % len(sources)  # always as many, for one compilation
    part = jax.tree.map(np.asarray, some(params, sources[chosen], targets[chosen]))
    parts.append(jax.tree.map(lambda x, start=start: x[: len(sources) - start], part))
  return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)


def read(model: Any, params: Params, source: jax.Array, target: jax.Array, *, own: bool) -> tuple[jax.Array, jax.Array]:
  """The losses of one pair, token by token, and whether all that was read is the reference: `[target]` each."""

  def call(method: str, *args: Any) -> Any:
    return model.apply({"params": params}, *args, method=method)

  valid, start = source != PAD, jnp.int32(model.config.start_token)
  memory = call("encode", source, jnp.arange(len(source)), masking.padding_mask(valid, valid))
  cache = call("init_cache", call("precompute_cross_attention", memory, valid), len(target), 1)

  def step(carry: Any, at: tuple[jax.Array, jax.Array]) -> Any:
    cache, before, same = carry
    position, token = at
    hidden, cache = call("decode_step", cache, position, jnp.zeros(1, jnp.int32), before[None])
    log_probs = jax.nn.log_softmax(call("logits", hidden)[0])
    said = jnp.argmax(log_probs.at[jnp.array([PAD, start, EOS])].set(-jnp.inf)).astype(jnp.int32)
    after = said if own else token
    return (cache, after, same & (after == token)), (-log_probs[token], same)

  places = jnp.arange(len(target)), target
  _, (found, same) = jax.lax.scan(step, (cache, start, jnp.bool_(True)), places)
  return jnp.where(target == PAD, 0, found), same


def grouped(found: Losses, real: np.ndarray) -> Iterator[dict[str, Any]]:
  """A row for each group of positions, with means over the tokens that are `real`, `[pairs, positions]`."""
  for first, after in zip(FIRST, (*FIRST[1:], real.shape[1] + 1), strict=True):
    part = slice(first - 1, after - 1)
    tokens = np.sum(real[:, part])
    if not tokens:
      continue
    forced, own = (np.sum(np.where(real, side, 0)[:, part], axis=1, dtype=np.float64) for side in found[:2])
    yield {
      "positions": str(first) if after == first + 1 else f"{first} to {after - 1}",
      "tokens": int(tokens),
      "same so far": f"{np.sum((found.same & real)[:, part]) / tokens:.0%}",
      "loss, reference": float(np.sum(forced) / tokens),
      "loss, own": float(np.sum(own) / tokens),
      "difference": float(np.sum(own - forced) / tokens),
      "standard error": standard_error(own - forced, np.sum(real[:, part], axis=1)),
    }


def standard_error(sums: np.ndarray, counts: np.ndarray) -> float:
  """That of the ratio sum(sums) / sum(counts) over independent pairs, `[pairs]` each."""
  ratio = np.sum(sums) / np.sum(counts)
  return float(np.sqrt(np.sum((sums - ratio * counts) ** 2)) / np.sum(counts))


def by_position(found: Losses, real: np.ndarray) -> dict[str, list[float]]:
  """The tokens of each position that has some, their mean losses and the share of `same`."""
  tokens = np.sum(real, axis=0)
  some = tokens > 0
  means = {
    name: (np.sum(np.where(real, side, 0), axis=0, dtype=np.float64)[some] / tokens[some]).tolist()
    for name, side in found._asdict().items()
  }
  return {"tokens": tokens[some].tolist(), **means}


def picture(points: list[dict[str, Any]]) -> Any:
  """The losses over the position, up to the first one that has fewer than `FEWEST` tokens.

  A line is solid where the model reads the reference, and dashed where it reads its own output.
  """
  plt = report.pyplot()
  figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
  for point, style in zip(points, STYLES, strict=False):
    drawn = sum(1 for _ in itertools.takewhile(lambda tokens: tokens >= FEWEST, point["tokens"]))
    for name, line in (("reference", "-"), ("own", "--")):
      label = f"{Path(point['run']).name}, reads {'the reference' if name == 'reference' else 'its own output'}"
      axis.plot(range(1, drawn + 1), point[name][:drawn], label=label, **{**style, "linestyle": line})
  axis.set(xlabel=f"position in the target, where it has {FEWEST} tokens or more", ylabel="loss in nats per token")
  axis.grid(alpha=0.3)
  axis.legend(fontsize="small")
  return figure


if __name__ == "__main__":
  programs.run(main)
