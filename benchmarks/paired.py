"""The p-value of a difference of BLEU between two kinds of models with several seeds each, by a paired bootstrap.

    python benchmarks/paired.py --reference FILE --first FILE ... --other FILE ...

Each file of --first and --other has the translations of one seed, in the same order of the seeds. The text is
tokenised, and case does not count.

A draw chooses sentences with replacement (Koehn 2004), and of each sentence the translations of all seeds at once: the
seeds' translations of one sentence are not independent of each other. The score of a draw is BLEU of all of them
together. With one seed this is the test of `transformer-jax score --compare`, with sacreBLEU's own draws.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import programs
import text

from transformer_jax.evaluation.bleu_statistics import bleu, statistics
from transformer_jax.evaluation.bootstrap import RESAMPLES
from transformer_jax.evaluation.scores import check_counts

SEED = 12345  # sacreBLEU's


def main() -> None:
  parser = argparse.ArgumentParser(description="A paired bootstrap over several seeds.", allow_abbrev=False)
  add = parser.add_argument
  add("--reference", required=True, metavar="FILE", help="the references")
  add("--first", required=True, nargs="+", metavar="FILE", help="the translations of each seed")
  add("--other", required=True, nargs="+", metavar="FILE", help="those that are compared with the first")
  args = parser.parse_args()
  if len(args.first) != len(args.other):
    parser.error(f"--first has {len(args.first)} files and --other {len(args.other)}: give those of the same seeds")
  reference = text.lines(args.reference)
  print(f"{p_value([*map(text.lines, args.first)], [*map(text.lines, args.other)], reference):.3f}")


def p_value(first: Sequence[Sequence[str]], other: Sequence[Sequence[str]], reference: Sequence[str]) -> float:
  """The p-value of the difference of BLEU between the translations of several seeds.

  Args:
    first: the translations of each seed.
    other: the same of what is compared with the first; as many seeds.
    reference: the references.
  """
  assert len(first) == len(other)
  for translations in (*first, *other):
    check_counts(translations, reference)
  counts = [sum(statistics_of(translations, reference) for translations in seeds) for seeds in (first, other)]
  if np.array_equal(*counts):
    return 1.0
  draws = np.random.default_rng(SEED).choice(len(reference), size=(RESAMPLES, len(reference)), replace=True)
  sums = ([each[some].sum(axis=0) for each in counts] for some in (np.arange(len(reference)), *draws))
  whole, *drawn = (bleu(of_other) - bleu(of_first) for of_first, of_other in sums)
  differences = np.abs(drawn)
  return float((np.sum(differences - differences.mean() > abs(whole)) + 1) / (RESAMPLES + 1))


def statistics_of(translations: Sequence[str], reference: Sequence[str]) -> np.ndarray:
  """The numbers from which BLEU follows, `[sentences, 10]`."""
  lines = zip(translations, reference, strict=True)
  return np.concatenate([statistics([line], right, tokenize="none", lowercase=True) for line, right in lines])


if __name__ == "__main__":
  programs.run(main)
