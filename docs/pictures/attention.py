"""Pictures of the docs: a translation, and where the decoder looks while it writes it.

  python docs/pictures/attention.py --workdir runs/numbers --output docs/pictures/attention.svg "forty-two"

A cell is the weight of attention over the encoder's output (§3.2.3), in the mean over the heads of the last layer, when
the translation is given token by token. Several runs stand side by side; --target gives all of them one translation.
"""

import argparse
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from transformer_jax import Translator, registry
from transformer_jax.decoding.attention import Attention
from transformer_jax.runtime.errors import InputError, RunError


def named(tokens: tuple[str, ...]) -> list[str]:
  """The tokens with visible spaces; the last one is the end of the sentence."""
  return [*(token.replace(" ", "␣") for token in tokens[:-1]), "end"]


def draw(axis: Axes, found: Attention) -> None:
  source, target = named(found.source), named(found.target)
  weights = found.weights["cross"][-1].mean(axis=0)
  axis.pcolormesh(weights, cmap="Blues", vmin=0, vmax=1, edgecolors="#e0e0e0", linewidth=0.5)
  places = np.arange(max(len(source), len(target))) + 0.5
  axis.set_xticks(places[: len(source)], source, rotation=45, ha="left")
  axis.set_yticks(places[: len(target)], target)
  axis.invert_yaxis()
  axis.xaxis.tick_top()
  axis.tick_params(length=0)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--workdir", required=True, action="append", help="a run folder; may be given several times")
  parser.add_argument("--output", required=True)
  parser.add_argument("--target", help="the translation (default: the model's own)")
  parser.add_argument("sentence")
  args = parser.parse_args()
  matplotlib.rcParams["svg.hashsalt"] = "transformer_jax"  # the same file from the same numbers
  translators = [Translator.load(workdir) for workdir in args.workdir]
  found = [translator.attention(args.sentence, args.target) for translator in translators]
  width, height = (sum(len(one.source) for one in found), max(len(one.target) for one in found))
  size = (0.32 * width + 1.5 * len(found), 0.26 * height + 1)
  figure, axes = plt.subplots(1, len(found), figsize=size, layout="constrained", squeeze=False)
  for axis, one, translator in zip(axes[0], found, translators, strict=True):
    print("".join(one.target[:-1]).strip())
    draw(axis, one)
    if len(found) > 1:
      axis.set_xlabel(registry.name_of(translator.config.model))
  figure.savefig(Path(args.output), metadata={"Date": None})


if __name__ == "__main__":
  try:
    main()
  except (InputError, RunError) as error:
    sys.exit(f"attention.py: error: {error}")
