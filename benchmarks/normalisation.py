"""Batch normalisation beside layer normalisation on packed rows: what one value depends on (docs/normalisation.md).

    python benchmarks/normalisation.py [--json FILE] [--svg FILE]

The values are those that enter the lowest layer of a Transformer at its random start, sqrt(d_model) E + PE: two packed
rows of 12 tokens with 8 numbers each. The first row begins with a sentence of 5 tokens. The program changes what is
around this sentence and measures the root-mean-square of the change of its normalised values, which are of size 1.
Flax's `LayerNorm` and `BatchNorm` normalise; `BatchNorm` does so in training mode, by the mean and the variance of each
of the 8 numbers over all tokens of the batch, with or without the padding.
"""

import argparse
from collections.abc import Callable, Mapping

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import programs
import report

from transformer_jax.data.segments import segment_positions
from transformer_jax.model.positional_encoding import sinusoids
from transformer_jax.model.special_tokens import PAD

D_MODEL, LENGTH, VOCABULARY, SEED = 8, 12, 50, 1
SENTENCE = [7, 12, 31, 9, 3]  # the one that is looked at; it is the first of the first row
ROW = [[SENTENCE, [22, 5, 40, 3]], [[17, 6, 3], [28, 33, 14, 10, 3]]]  # the batch: rows of sentences
# What is changed -> the batch with it.
CHANGES = {
  "nothing": ROW,
  "the other sentence of its row": [[SENTENCE, [45, 8, 19, 3]], ROW[1]],
  "no other sentence in its row: padding": [[SENTENCE], ROW[1]],
  "another row in the batch": [ROW[0], [[41, 2, 26, 38, 3], [11, 3]]],
  "no other row in the batch": [ROW[0]],
  "its own last token (the other tokens)": [[[*SENTENCE[:-1], 48], ROW[0][1]], ROW[1]],
}
Norm = Callable[[jax.Array, jax.Array], jax.Array]  # (values [rows, length, model], real [rows, length]) -> values


def layer_norm(x: jax.Array, real: jax.Array) -> jax.Array:
  return nn.LayerNorm(epsilon=1e-6, use_bias=False, use_scale=False).apply({}, x)  # pyright: ignore[reportReturnType]


def batch_norm(x: jax.Array, real: jax.Array | None) -> jax.Array:
  """`[rows, length, model]`; only tokens where `real` is true count for the statistics, or all if it is None."""
  norm = nn.BatchNorm(use_running_average=False, epsilon=1e-6, use_bias=False, use_scale=False)
  mask = None if real is None else real[..., None]
  # Training mode updates these running statistics, and does not read them.
  running = {"mean": jnp.zeros(D_MODEL), "var": jnp.ones(D_MODEL)}
  found, _ = norm.apply({"batch_stats": running}, x, mask=mask, mutable=["batch_stats"])
  return found  # pyright: ignore[reportReturnType]


NORMS: dict[str, Norm] = {
  "layer normalisation": layer_norm,
  "batch normalisation": lambda x, real: batch_norm(x, None),
  "batch normalisation without padding": batch_norm,
}


def main() -> None:
  parser = argparse.ArgumentParser(description="Batch and layer normalisation on packed rows.", allow_abbrev=False)
  parser.add_argument("--svg", metavar="FILE", help="where a picture goes")
  report.add_arguments(parser, with_peers=False)
  args = parser.parse_args()
  seen = {name: dependence(norm) for name, norm in NORMS.items()}
  rows = [
    {"changed": "numbers that one value depends on", **{name: str(int(np.sum(mask))) for name, mask in seen.items()}},
    *({"changed": name, **change(batch)} for name, batch in CHANGES.items()),
  ]
  report.finish("normalisation", rows, args.json)
  if args.svg:  # last, as a changed picture would make the commit of the results a dirty one
    draw({name: seen[name] for name in list(NORMS)[:2]}, args.svg)


def inputs(batch: list[list[list[int]]]) -> tuple[jax.Array, jax.Array]:
  """The values that enter the lowest layer, `[rows, length, model]`, and which tokens are real, `[rows, length]`."""
  tokens, segments = np.full((2, len(batch), LENGTH), PAD)
  for row, sentences in enumerate(batch):
    flat = [(token, number) for number, sentence in enumerate(sentences, 1) for token in sentence]
    tokens[row, : len(flat)], segments[row, : len(flat)] = zip(*flat, strict=True)
  table = jax.random.normal(jax.random.key(SEED), (VOCABULARY, D_MODEL))  # already times sqrt(d_model)
  positions = jax.vmap(segment_positions)(jnp.asarray(segments))
  return table[tokens] + sinusoids(positions, D_MODEL), jnp.asarray(segments > 0)


def change(batch: list[list[list[int]]]) -> dict[str, str]:
  """The root-mean-square of the change of the sentence's values by each normalisation."""
  same = [a == b for a, b in zip(batch[0][0], SENTENCE, strict=True)]
  found = {}
  for name, norm in NORMS.items():
    before, after = (norm(*inputs(rows))[0, : len(SENTENCE)][np.array(same)] for rows in (ROW, batch))
    found[name] = f"{np.sqrt(np.mean(np.square(after - before))):.2f}" if np.any(after != before) else "0"
  return found


def dependence(norm: Norm) -> np.ndarray:
  """The numbers of the batch on which the third number of the sentence's second token depends: bool, of their shape."""
  x, real = inputs(ROW)
  return np.asarray(jax.grad(lambda x: norm(x, real)[0, 1, 2])(x) != 0)


def draw(seen: Mapping[str, np.ndarray], path: str) -> None:
  """Draws the batch for each normalisation: a column for each token, and marked what one value depends on."""
  plt = report.pyplot()
  figure, axes = plt.subplots(len(seen), len(ROW), figsize=(7, 4.4), layout="constrained", squeeze=False)
  for line, (name, mask) in zip(axes, seen.items(), strict=True):
    for number, axis in enumerate(line):
      axis.imshow(mask[number].T, cmap="Blues", vmin=0, vmax=1.6, aspect="equal")
      axis.set(title=f"{name}, row {number + 1}", xlabel="token", ylabel="number", yticks=range(0, D_MODEL, 2))
      axis.set_xticks(range(LENGTH), labels(ROW[number], "ac"[number]), fontsize="small")
      axis.set_xticks(np.arange(LENGTH + 1) - 0.5, minor=True)
      axis.set_yticks(np.arange(D_MODEL + 1) - 0.5, minor=True)
      axis.grid(which="minor", color="0.8", linewidth=0.5)
      axis.tick_params(which="minor", length=0)
    line[0].plot(1, 2, "s", color="C3", markersize=6, markeredgecolor="white")  # the value itself
  figure.savefig(path, metadata={"Date": None})


def labels(sentences: list[list[int]], first: str) -> list[str]:
  """Names of a row's tokens, such as a1, a2 for sentence a and b1, b2 for the next one, and a dot for padding."""
  letters = [chr(ord(first) + i) for i in range(len(sentences))]
  pairs = zip(letters, sentences, strict=True)
  names = [f"{letter}{i}" for letter, sentence in pairs for i in range(1, len(sentence) + 1)]
  return [*names, *"·" * (LENGTH - len(names))]


if __name__ == "__main__":
  programs.run(main)
