"""The README's picture: a translation, and where the decoder looks while it writes it.

  python docs/pictures/attention.py --workdir runs/numbers --output docs/pictures/attention.svg "forty-two"

A cell is the weight of attention over the encoder's output (§3.2.3), in the mean
over the heads of one layer, when the translation is given token by token.
"""

import argparse

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from transformer_jax import Translator


def named(tokens: tuple[str, ...]) -> list[str]:
  """The tokens with visible spaces; the last one is the end of the sentence."""
  return [*(token.replace(" ", "␣") for token in tokens[:-1]), "end"]


def draw(source: list[str], target: list[str], weights: np.ndarray, path: str) -> None:
  matplotlib.rcParams["svg.hashsalt"] = "transformer_jax"  # the same file from the same numbers
  figure, axis = plt.subplots(figsize=(0.32 * len(source) + 1.5, 0.26 * len(target) + 1), layout="constrained")
  axis.pcolormesh(weights, cmap="Blues", vmin=0, vmax=1, edgecolors="#e0e0e0", linewidth=0.5)
  places = np.arange(max(len(source), len(target))) + 0.5
  axis.set_xticks(places[: len(source)], source, rotation=45, ha="left")
  axis.set_yticks(places[: len(target)], target)
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
  found = translator.attention(args.sentence)
  print("".join(found.target[:-1]).strip())
  weights = found.weights["cross"][args.layer].mean(axis=0)
  draw(named(found.source), named(found.target), weights, args.output)


if __name__ == "__main__":
  main()
