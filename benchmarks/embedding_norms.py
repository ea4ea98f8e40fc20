"""The norms of embeddings beside those of positions (§3.4, §3.5), at the random start and after training.

    python benchmarks/embedding_norms.py --workdir RUN [--text SOURCE,TARGET] [--json FILE]

A layer reads sqrt(d_model) E[token] + PE(position). The program gives the mean norms of both terms, for a run of the
Transformer and for its random start. The mean over pieces counts each piece that occurs in the text once, the mean over
tokens as often as it occurs. EOS ends each sentence. The text is the run's validation text, or the one of --text, in
the form of `config.data.train`.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import programs
import report

from transformer_jax import registry, runs
from transformer_jax.config import Config
from transformer_jax.data import corpus
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import BOS, EOS
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.initialization import init_params
from transformer_jax.training.task import task_of

SIDES = ("source", "target")


def main() -> None:
  parser = argparse.ArgumentParser(description="The norms of embeddings and of positions.", allow_abbrev=False)
  parser.add_argument("--workdir", required=True, metavar="RUN", help="a run folder of the Transformer")
  parser.add_argument("--text", metavar="TEXT", help="as config.data.train (default: the run's validation text)")
  report.add_arguments(parser, with_peers=False)
  args = parser.parse_args()
  config, params, tokenizer, step = runs.open(args.workdir).model("translate")
  if not isinstance(config.model, ModelConfig):
    raise InputError(f"{args.workdir} has a {registry.name_of(config.model)} model, which adds no positions")
  sentences = tokens_of(config, tokenizer, args.text or config.data.validation)
  start = jax.jit(lambda: init_params(config, task_of(config.model)))()
  states = {"random": start, f"step {step}": devices.on_first_device(params)}
  rows = [row for name, state in states.items() for row in rows_of(name, config.model, state, sentences)]
  report.finish("embedding_norms", rows, args.json, d_model=config.model.d_model)


def tokens_of(config: Config, tokenizer: Tokenizer, which: str) -> dict[str, list[list[int]]]:
  """The tokens of each sentence as the model reads them: sources with EOS, targets behind BOS."""
  pairs = list(corpus.open_corpus(config.data, which))
  return {
    "source": [[*tokenizer.source.encode(source), EOS] for source, _ in pairs],
    "target": [[BOS, *tokenizer.target.encode(target)] for _, target in pairs],
  }


def rows_of(
  name: str, config: ModelConfig, params: Params, sentences: dict[str, list[list[int]]]
) -> Iterator[dict[str, Any]]:
  """A row of the table for each side."""
  for side in SIDES:
    tokens = np.concatenate(sentences[side])
    positions = np.concatenate([np.arange(len(sentence)) for sentence in sentences[side]])
    pieces, counts = np.unique(tokens, return_counts=True)
    embedded, added = norms(config, params, side, pieces, positions)
    yield {
      "parameters": name,
      "side": side,
      "pieces": len(pieces),
      "tokens": len(tokens),
      "embedding, mean over pieces": f"{np.mean(embedded):.2f}",
      "over tokens": f"{np.average(embedded, weights=counts):.2f}",
      "position": f"{np.mean(added):.2f}",
    }


def norms(
  config: ModelConfig, params: Params, side: str, pieces: np.ndarray, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """The norms of sqrt(d_model) E[piece], `[pieces]`, and of PE(position), `[positions]`."""

  def terms(model: Any) -> tuple[jax.Array, jax.Array]:
    own = side == "source" and not config.share_embeddings
    embedding = model.own_source_embedding if own else model.target_embedding
    encoding = model.source_positions if side == "source" else model.target_positions
    return embedding(pieces), encoding(positions)

  found = registry.module(config).apply({"params": params}, method=terms)
  embedded, added = (np.linalg.norm(np.asarray(x, np.float64), axis=-1) for x in found)
  return embedded, added


if __name__ == "__main__":
  programs.run(main)
