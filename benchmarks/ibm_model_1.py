"""Word-by-word translation with the lexicon of IBM model 1 (Brown et al. 1993), the start of docs/lineage.md.

    python benchmarks/ibm_model_1.py --train PREFIX --source FILE --reference FILE [--iterations 5] [--output DIR]

PREFIX stands for PREFIX.en and PREFIX.de, tokenised and lowercased; files may be plain, `.gz` or `.xz`. NLTK's
`IBMModel1` learns t(f | e), the probability that the source word e is translated as the target word f, by
expectation-maximisation from a uniform start. There is no parameter but this table.

Each source word then becomes its most probable target word, argmax over f of t(f | e), and the order stays that of the
source. A word that training has not seen is copied. The empty source word NULL explains target words in training; in
translation it writes none. So the output has as many words as the source. Equally probable words are chosen by the
alphabet.

OUTPUT gets the translations and a JSON file with the scores that benchmarks/lineage.py has, too.
"""

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import programs
import report
import text
import timed_runs
from nltk.translate import AlignedSent, IBMModel1

from transformer_jax.data.text import TextPairs
from transformer_jax.evaluation.report import Text, build_report


def main() -> None:
  args = parse()
  pairs = TextPairs(args.train, *args.languages)
  source, reference = (Text(file, text.lines(file)) for file in (args.source, args.reference))
  start = time.monotonic()
  best, entries = trained(pairs, args.iterations)
  seconds = time.monotonic() - start
  translations = [translate(best, line) for line in source.lines]
  Path(args.output).mkdir(parents=True, exist_ok=True)
  file = Path(args.output) / f"ibm_model_1.{args.languages[1]}"
  file.write_bytes("".join(f"{line}\n" for line in translations).encode())
  finish(
    args,
    build_report(
      Text(str(file), translations), reference, source=source, languages=args.languages, tokenize="none", lowercase=True
    ),
    {
      "iterations": args.iterations,
      "training_seconds": round(seconds, 1),
      "source_words": len(best),
      "entries": entries,
      "unknown_words": unknown(best, source.lines),
      "by_length": timed_runs.by_length([list(source.lines), list(reference.lines), translations]),
    },
  )


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Word-by-word translation with IBM model 1.", allow_abbrev=False)
  add = parser.add_argument
  add("--train", required=True, metavar="PREFIX", help="training text: PREFIX.en and PREFIX.de, or SOURCE,TARGET")
  add("--source", required=True, metavar="FILE", help="the sentences to translate")
  add("--reference", required=True, metavar="FILE", help="their translations")
  add("--languages", nargs=2, default=["en", "de"], metavar="L", help="source and target (default en de)")
  add("--iterations", type=int, default=5, metavar="N", help="of expectation-maximisation (default 5)")
  add("--output", default="docs/results/lineage", metavar="DIR", help="for results (default docs/results/lineage)")
  args = parser.parse_args()
  if args.iterations < 1:
    parser.error(f"--iterations={args.iterations}: give at least 1")
  return args


class Model(IBMModel1):
  """IBM model 1 as in Brown et al., where each target word of a sentence counts as often as it occurs.

  NLTK's normaliser sums over all occurrences of a word, so that two occurrences together count as one.
  """

  def prob_all_alignments(self, src_sentence: list[str | None], trg_sentence: list[str]) -> dict[str, float]:
    return super().prob_all_alignments(src_sentence, list(dict.fromkeys(trg_sentence)))


def trained(pairs: Iterable[tuple[str, str]], iterations: int) -> tuple[dict[str, str], int]:
  """Trains the model.

  Args:
    pairs: the sentence pairs; words are separated by spaces.
    iterations: the number of passes over the pairs.

  Returns:
    For each source word its most probable target word, and the number of pairs of words that occur together.
  """
  table = Model(sentences(pairs), iterations).translation_table
  return most_probable(table), sum(len(by_source) for by_source in table.values())


def sentences(pairs: Iterable[tuple[str, str]]) -> list[AlignedSent]:
  """The pairs as NLTK takes them: `words` is the side that is generated, `mots` the side that generates it."""
  return [AlignedSent(target.split(), source.split()) for source, target in pairs]


def most_probable(table: Mapping[str, Mapping[str | None, float]]) -> dict[str, str]:
  """argmax over f of t(f | e) for each source word e, from `table[f][e]`; NULL, which is None, is left out."""
  best: dict[str, tuple[float, str]] = {}
  for target, by_source in sorted(table.items()):
    for source, probability in by_source.items():
      if source is not None and probability > best.get(source, (0.0, ""))[0]:
        best[source] = (probability, target)
  return {source: target for source, (_, target) in best.items()}


def translate(best: Mapping[str, str], line: str) -> str:
  """The translations of the words in their order; a word without one is copied."""
  return " ".join(best.get(word, word) for word in line.split())


def unknown(best: Mapping[str, str], lines: Iterable[str]) -> dict[str, int]:
  """How many words there are, and how many of them training has not seen."""
  words = [word for line in lines for word in line.split()]
  return {"all": len(words), "unknown": sum(word not in best for word in words)}


def finish(args: argparse.Namespace, scored: dict[str, Any], found: dict[str, Any]) -> None:
  """Prints the row, and writes all that was found."""
  result = {"model": "ibm_model_1", **report.context(), **found, "test": scored}
  file = Path(args.output) / "ibm_model_1.json"
  file.write_text(json.dumps(result, indent=1) + "\n")
  scores = [scored["scores"][name]["score"] for name in ("bleu", "chrf")]
  names = ["BLEU", "chrF2", *(f"{name} words" for name in timed_runs.group_names())]
  cells = [None if value is None else f"{value:.2f}" for value in [*scores, *(g["bleu"] for g in found["by_length"])]]
  print(report.table([dict(zip(names, cells, strict=True))]))
  words = found["unknown_words"]
  print(f"{words['unknown']:,} of {words['all']:,} words are unknown and copied; {found['entries']:,} pairs of words,")
  print(f"{found['iterations']} iterations in {found['training_seconds']:.0f} s; written to {file}")


if __name__ == "__main__":
  programs.run(main)
