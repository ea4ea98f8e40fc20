"""Counts of the sentence pairs of a text, and of its parts."""

from dataclasses import dataclass

from transformer_jax.data.packing_report import PackingReport
from transformer_jax.runtime.wording import counted


@dataclass
class PairCounts:
  """Counts of sentence pairs; EOS counts as a token.

  Attributes:
    pairs, source_tokens, target_tokens: of the pairs that are kept.
    too_long: the number of pairs whose source or target is too long.
    empty: the number of pairs whose source or target is empty.
    longest: the tokens of the longest sentence of all pairs that are not empty.
  """

  pairs: int = 0
  source_tokens: int = 0
  target_tokens: int = 0
  too_long: int = 0
  empty: int = 0
  longest: int = 0

  def add(self, other: "PairCounts") -> None:
    """Counts other pairs, too."""
    self.pairs += other.pairs
    self.source_tokens += other.source_tokens
    self.target_tokens += other.target_tokens
    self.too_long += other.too_long
    self.empty += other.empty
    self.longest = max(self.longest, other.longest)

  def write_to(self, report: PackingReport, most: int) -> PackingReport:
    """Sets the counts of a report, but for its rows, and returns it; `most` is the most tokens of a sentence."""
    report.sides, report.tokens = 2, self.source_tokens + self.target_tokens
    report.found = {"pairs": self.pairs, "source tokens": self.source_tokens, "target tokens": self.target_tokens}
    report.left_out = {
      f"pairs skipped, longer than {counted(most, 'tokens')} (the longest has {self.longest:,})": self.too_long,
      "pairs skipped, with an empty side": self.empty,
    }
    return report
