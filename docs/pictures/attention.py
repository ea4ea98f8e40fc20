"""The README's picture: a translation, and where the decoder looks while it writes it.

  python docs/pictures/attention.py --workdir runs/numbers --output docs/pictures/attention.svg "forty-two"

A cell is the weight of attention over the encoder's output (§3.2.3), in the mean
over the heads of one layer, when the translation is given token by token.
"""

import argparse
from typing import Any

import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from transformer_jax import Translator
from transformer_jax.data.tokenizer import BOS, EOS, Tokenizer
from transformer_jax.model.attention import attention_weights
from transformer_jax.model.transformer import Transformer


def cross_attention(translator: Translator, source: list[int], target: list[int], layer: int) -> np.ndarray:
  """`[heads, target, source]`, from the projections Q and K that the model computes."""
  tokens, shifted = jnp.array(source), jnp.array([BOS, *target[:-1]])
  masks = [jnp.ones((len(source), len(source)), bool), jnp.tri(len(target), dtype=bool)]
  cross = jnp.ones((len(target), len(source)), bool)
  _, seen = Transformer(translator.config.model).apply(
    {"params": translator.params},
    tokens,
    shifted,
    jnp.arange(len(source)),
    jnp.arange(len(target)),
    *masks,
    cross,
    capture_intermediates=lambda module, name: module.name in ("query", "key"),
    mutable=["intermediates"],
  )
  layers: Any = seen["intermediates"]["decoder"]
  projections = layers[f"layers_{layer}"]["cross_attention"]
  query, key = (projections[name]["__call__"][0] for name in ("query", "key"))
  return np.asarray(attention_weights(query, key, cross))


def spelled(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
  """Each token's text, with visible spaces; `decode` leaves out the first space, so each token is decoded twice."""
  twice = [tokenizer.decode([token, token]) for token in ids]
  return ["end" if token == EOS else text[len(text) // 2 :] for token, text in zip(ids, twice, strict=True)]


def draw(source: list[str], target: list[str], weights: np.ndarray, path: str) -> None:
  matplotlib.rcParams["svg.hashsalt"] = "transformer_jax"  # the same file from the same numbers
  figure, axis = plt.subplots(figsize=(0.32 * len(source) + 1.5, 0.26 * len(target) + 1), layout="constrained")
  axis.pcolormesh(weights, cmap="Blues", vmin=0, vmax=1, edgecolors="#e0e0e0", linewidth=0.5)
  places = np.arange(max(len(source), len(target))) + 0.5
  axis.set_xticks(places[: len(source)], [text.replace(" ", "␣") for text in source], rotation=45, ha="left")
  axis.set_yticks(places[: len(target)], [text.replace(" ", "␣") for text in target])
  axis.invert_yaxis()
  axis.xaxis.tick_top()
  axis.tick_params(length=0)
  figure.savefig(path, metadata={"Date": None})


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--workdir", required=True)
  parser.add_argument("--output", required=True)
  parser.add_argument("--layer", type=int, default=-1, help="of the decoder, from 0 (default: the last)")
  parser.add_argument("sentence")
  args = parser.parse_args()
  translator = Translator.load(args.workdir)
  tokenizer = Tokenizer.load(f"{args.workdir}/tokenizer.model")
  layer = range(translator.config.model.num_layers)[args.layer]
  [translation] = translator.translate([args.sentence])
  print(translation)
  source, target = ([*tokenizer.encode(text), EOS] for text in (args.sentence, translation))
  weights = cross_attention(translator, source, target, layer).mean(axis=0)
  draw(spelled(tokenizer, source), spelled(tokenizer, target), weights, args.output)


if __name__ == "__main__":
  main()
