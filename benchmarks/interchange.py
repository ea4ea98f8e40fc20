"""Exported models against the run that they come from: translations, scores, BLEU and size.

    python benchmarks/interchange.py --workdir RUN --source FILE.en --reference FILE.de [--formats NAME ...]

It needs the extras `benchmarks` and `parity`. Each format is written by `transformer-jax export` and translates the
source greedily and with the run's beam and length penalty. Sentences of one length go together, so that each has the
limit that it has here. PAD and BOS are not suppressed where that would change scores.

"equal" is the share of translations that are equal to ours. Another greedy translation is a "tie" if our model gives
its first other token a log-probability at most 1e-4 below the best. Another translation of a beam search is a tie if
our model's score of it is at most 1e-4 from ours. "limit" counts the other ones that have as many tokens as allowed, on
either side: here the last of them is EOS. Lines that neither explains are named. "score" is the largest difference of
the scores of equal translations. A run with a length penalty that the libraries do not have is refused.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import programs
import report
import text

from transformer_jax import registry, runs
from transformer_jax.config import Config, LengthPenalty
from transformer_jax.decoding.translation import Translation
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation import scores
from transformer_jax.interchange.export import export
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.runtime import devices

TIE = 1e-4


class Found(NamedTuple):
  """A translation: its tokens without EOS, and its score if the library gives one."""

  tokens: list[int]
  score: float | None


# (tokens of sources of one length with EOS, beam size, most tokens of a translation with EOS) -> translations
Decode = Callable[[list[list[int]], int, int], list[Found]]


def main() -> None:
  args = parse()
  run = runs.open(args.workdir)
  decode = run.config.decode
  if decode.penalty is not LengthPenalty.FAIRSEQ or decode.patience != 1:
    sys.exit("the run must have config.decode.penalty=fairseq and config.decode.patience=1, as the libraries do")
  sources, references = (text.lines(path)[: args.sentences] for path in (args.source, args.reference))
  translator, rows = Translator.load(run), []
  with tempfile.TemporaryDirectory() as scratch:
    for name in args.formats:
      folder = Path(scratch) / name.replace(" ", "-")
      to, *option = name.split()
      export(run, folder, to, **({"quantization": option[0]} if option else {}))
      size = sum(path.stat().st_size for path in folder.iterdir())
      library = {"ctranslate2": ctranslate2_of, "marian-hf": marian_of}[to](folder, decode.length_penalty)
      for beam in (1, decode.beam_size):
        report.progress(f"{name}, beam {beam}")
        row = compare(run, translator, library, sources, references, beam)
        rows.append({"format": name, "beam": beam} | row | {"MB": size / 1e6})
  report.finish("interchange", rows, args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Exported models against their run.", allow_abbrev=False)
  add = parser.add_argument
  formats = ["ctranslate2 float32", "ctranslate2 int8", "ctranslate2 bfloat16", "marian-hf"]
  add("--workdir", required=True, metavar="DIR", help="a run folder")
  add("--source", required=True, metavar="FILE", help="sentences to translate, plain or .xz")
  add("--reference", required=True, metavar="FILE", help="their translations")
  add("--formats", nargs="+", default=formats, choices=formats, metavar="NAME", help=f"(default: {', '.join(formats)})")
  add("--sentences", type=int, metavar="N", help="the first N alone (default: all)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def ctranslate2_of(folder: Path, penalty: float) -> Decode:
  """The search of CTranslate2."""
  import json

  import ctranslate2

  kind = "int8" if "int8" in folder.name else "float32"
  translator = ctranslate2.Translator(str(folder), compute_type=kind)
  names = json.loads((folder / "shared_vocabulary.json").read_text())
  numbers = {name: i for i, name in enumerate(names)}

  def decode(sources: list[list[int]], beam: int, most: int) -> list[Found]:
    found = translator.translate_batch(
      [[names[token] for token in source[:-1]] for source in sources],  # it adds EOS itself
      beam_size=beam,
      patience=1,
      length_penalty=penalty,
      min_decoding_length=0,
      max_decoding_length=most,
      max_input_length=0,
      max_batch_size=64,
      return_scores=True,
    )
    return [Found([numbers[name] for name in one.hypotheses[0]], one.scores[0]) for one in found]

  return decode


def marian_of(folder: Path, penalty: float) -> Decode:
  """The search of Hugging Face transformers."""
  import torch
  from transformers import MarianMTModel

  model = MarianMTModel.from_pretrained(folder).eval()

  @torch.inference_mode()
  def some(sources: list[list[int]], beam: int, most: int) -> list[Found]:
    search = {"length_penalty": penalty, "early_stopping": True} if beam > 1 else {}
    found = model.generate(
      input_ids=torch.tensor(sources),
      num_beams=beam,
      max_length=most + 1,  # BOS counts
      return_dict_in_generate=True,
      output_scores=beam > 1,
      **({"length_penalty": None, "early_stopping": None} | search),
    )
    given = found.sequences_scores.tolist() if beam > 1 else [None] * len(sources)
    rows = [row[1 : row.index(EOS)] if EOS in row else row[1:] for row in found.sequences.tolist()]
    return [Found(row, score) for row, score in zip(rows, given, strict=True)]

  def decode(sources: list[list[int]], beam: int, most: int) -> list[Found]:
    return [one for i in range(0, len(sources), 64) for one in some(sources[i : i + 64], beam, most)]

  return decode


def compare(
  run: runs.Run, translator: Translator, library: Decode, sources: Sequence[str], references: Sequence[str], beam: int
) -> dict[str, Any]:
  """A row of the table."""
  config, tokenizer = run.config, run.tokenizer
  ours = translator.translate(sources, beam_size=beam, return_scores=True)
  tokens = [[*source, EOS] for source in tokenizer.source.encode_batch(sources)]
  found: dict[int, Found] = {}
  for length, group in groupby(sorted(range(len(tokens)), key=lambda i: len(tokens[i])), lambda i: len(tokens[i])):
    numbers = list(group)
    results = library([tokens[i] for i in numbers], beam, length + config.decode.extra_length)
    found |= dict(zip(numbers, results, strict=True))
  texts = [tokenizer.decode(found[i].tokens) for i in range(len(sources))]
  different = [i for i in range(len(sources)) if texts[i] != ours[i].text]
  most = [len(row) + config.decode.extra_length for row in tokens]
  log_probs = log_probs_of(translator, max(map(len, tokens)) + config.decode.extra_length + 1)
  gaps = {i: gap(log_probs(tokens[i], found[i].tokens), found[i].tokens, ours[i], beam, config) for i in different}
  ties = [i for i in different if abs(gaps[i]) <= TIE]
  limit = [i for i in different if i not in ties and max(len(found[i].tokens) + 1, ours[i].tokens) >= most[i]]
  for i in different:
    if i not in ties and i not in limit:
      report.progress(f"line {i + 1} has another translation; its gap is {gaps[i]:.2g}")
  apart = [abs(score - ours[i].score) for i, (_, score) in found.items() if score is not None and i not in different]

  def bleu(translations: list[str]) -> float:
    options = {"tokenize": config.evaluate.tokenize, "lowercase": config.evaluate.lowercase}
    return scores.score(translations, references, **options).bleu

  return {
    "equal": 1 - len(different) / len(sources),
    "different": len(different),
    "ties": len(ties),
    "limit": len(limit),
    "score": max(apart, default=None),
    "BLEU": bleu(texts),
    "BLEU of ours": bleu([translation.text for translation in ours]),
  }


def log_probs_of(translator: Translator, longest: int) -> Callable[[list[int], list[int]], np.ndarray]:
  """A function (source, target without EOS) -> the log-probabilities of each next token, `[target + 1, vocab]`."""
  import jax
  import jax.numpy as jnp

  model = registry.module(translator.config.model)
  params = devices.on_first_device(translator.params)

  @jax.jit
  def compute(source: jax.Array, target: jax.Array) -> jax.Array:
    hidden = model.apply({"params": params}, source, target)
    return jax.nn.log_softmax(model.apply({"params": params}, hidden, method="logits"))

  def padded(row: list[int]) -> jax.Array:
    return jnp.array(row + [PAD] * (longest - len(row)))

  return lambda source, target: np.array(compute(padded(source), padded([BOS, *target])))[: len(target) + 1]


def gap(log_probs: np.ndarray, target: list[int], ours: Translation, beam: int, config: Config) -> float:
  """How much better our model finds our own translation, or greedily our first other token, than another library's."""
  log_probs[:, [PAD, BOS]] = -np.inf
  chosen = log_probs[np.arange(len(target) + 1), [*target, EOS]]
  if beam > 1:
    return ours.score - float(chosen.sum()) / (len(target) + 1) ** config.decode.length_penalty
  behind = log_probs.max(axis=1) - chosen
  return float(behind[np.argmax(behind > 0)])


if __name__ == "__main__":
  programs.run(main)
