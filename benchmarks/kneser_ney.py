"""GPT against an n-gram model with the best smoothing before neural models: perplexity of the last tenth of a text.

    python benchmarks/kneser_ney.py --text war_and_peace.txt.xz --workdir runs/war_and_peace --json FILE

Both learn from the first nine tenths of the text's lines, with the same tokens, and both are scored on each token of
the rest. GPT sees at least half of `config.data.row_length` tokens before it, the n-gram model of order n sees n - 1.
Flags `--config.KEY=VALUE` are those of train.py. The text that Project Gutenberg adds to a book is left out. The same
command resumes a stopped run, and `--config.train.steps` may end it earlier.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import children
import jax
import jax.numpy as jnp
import numpy as np
import programs
import report
from ngram import KneserNey

from transformer_jax import registry, runs
from transformer_jax.data import blocks
from transformer_jax.data.text import lines_of
from transformer_jax.runtime import devices
from transformer_jax.runtime.process import use_huge_pages
from transformer_jax.tasks.causal import output

ORDERS = range(1, 8)
AT_ONCE = 16  # rows computed together


def split(text: Path, folder: Path) -> dict[str, Path]:
  """Writes the first nine tenths of the lines, and the rest, each into a file."""
  lines = list(lines_of(text))
  starts = [i for i, line in enumerate(lines) if line.startswith("*** START OF")]
  ends = [i for i, line in enumerate(lines) if line.startswith("*** END OF")]
  lines = lines[starts[0] + 1 if starts else 0 : ends[0] if ends else None]
  border = len(lines) * 9 // 10
  folder.mkdir(parents=True, exist_ok=True)
  paths = {"train": folder / "train.txt", "test": folder / "test.txt"}
  for path, part in zip(paths.values(), (lines[:border], lines[border:]), strict=True):
    path.write_bytes("".join(f"{line}\n" for line in part).encode())
  return paths


def tokens_of(config: Any, tokenizer: Any, path: Path) -> np.ndarray:
  """All tokens of a text in their order."""
  rows = blocks.packed_rows(config, str(path), tokenizer).rows
  return np.asarray(rows[:, blocks.TOKENS][rows[:, blocks.SEGMENTS] > 0]).astype(np.int64)


def gpt_perplexity(config: Any, params: Any, tokens: np.ndarray) -> float:
  """exp of the mean of -log P; each token, except the first ones, has at least half a row of tokens before it."""
  length, model = config.data.row_length, registry.module(config.model)
  half = length // 2
  count = max(0, -(-(len(tokens) - length) // half)) + 1
  padded = np.pad(tokens, (0, half * (count - 1) + length - len(tokens)))
  real = np.arange(len(padded)) < len(tokens)
  places = half * np.arange(count)[:, None] + np.arange(length)  # [rows, length]
  rows = np.stack([padded[places], real[places]], axis=1)
  scored = real[places] & ((np.arange(length) >= length - half) | (np.arange(count)[:, None] == 0))

  @jax.jit
  @jax.vmap
  def log_likelihood(row: jax.Array, scored: jax.Array) -> jax.Array:
    logits: Any = model.apply({"params": params}, output(model, params, row, None), method="logits")
    of_token = jnp.take_along_axis(jax.nn.log_softmax(logits), row[blocks.TOKENS][:, None], axis=1)[:, 0]
    return jnp.sum(jnp.where(scored, of_token, 0))

  total = 0.0
  for start in range(0, count, AT_ONCE):
    some = slice(max(0, min(start, count - AT_ONCE)), start + AT_ONCE)
    fresh = scored[some] & (np.arange(count)[some] >= start)[:, None]
    total += np.sum(np.asarray(log_likelihood(rows[some], fresh)), dtype=np.float64)
  assert np.sum(scored) == len(tokens)
  return float(np.exp(-total / len(tokens)))


def measure(workdir: Path, paths: dict[str, Path]) -> dict[str, Any]:
  """Both perplexities of a trained run, as JSON values."""
  config, params, tokenizer, step = runs.open(workdir).model("generate")
  train, test = (tokens_of(config, tokenizer, paths[name]) for name in ("train", "test"))
  params = devices.on_first_device(params)
  gpt = gpt_perplexity(config, params, test)
  start = time.monotonic()
  ngrams = {order: KneserNey(train, tokenizer.vocab_size, order).perplexity(test) for order in ORDERS}
  training = [line for line in runs.open(workdir).metrics if line["split"] == "train"]
  return {
    "vocabulary": tokenizer.vocab_size,
    "train_tokens": len(train),
    "test_tokens": len(test),
    "perplexity": {"gpt": gpt} | {f"kneser_ney_{order}": value for order, value in ngrams.items()},
    "gpt": {
      "parameters": sum(leaf.size for leaf in jax.tree.leaves(params)),
      "step": step,
      "epochs": sum(line["target_tokens"] for line in training) / len(train),
      "training_seconds": sum(line["seconds"] for line in training),
    },
    "kneser_ney_seconds": time.monotonic() - start,
  }


def table(found: dict[str, Any]) -> str:
  """The comparison in Markdown."""
  perplexity = found["perplexity"].items()
  return report.table([{"model": name.replace("_", " "), "perplexity a piece": f"{n:.2f}"} for name, n in perplexity])


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--text", required=True, type=Path, help="plain, .gz or .xz")
  parser.add_argument("--workdir", required=True, type=Path)
  parser.add_argument("--config", default=str(children.ROOT / "configs" / "gpt.py"))
  parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
  args, flags = parser.parse_known_args()
  children.end_children()
  paths = split(args.text, args.workdir / "text")
  # There is no validation: the held-out text must not choose anything.
  texts = [f"--config.data.train={paths['train']}", "--config.data.validation="]
  children.train([f"--config={args.config}", f"--workdir={args.workdir}", *flags, *texts])
  found = {**report.context(), "text": args.text.name, "flags": flags} | measure(args.workdir, paths)
  print(table(found))
  if args.json:
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
  use_huge_pages()
  programs.run(main)
