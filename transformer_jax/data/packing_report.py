"""Counts of what was packed into rows and what was left out, for every task."""

from dataclasses import dataclass, field

from transformer_jax.runtime.wording import counted


@dataclass
class PackingReport:
  """Counts of what was packed and what was left out.

  Attributes:
    rows: the number of packed rows.
    tokens: the tokens in them, special tokens included, padding not; of pairs those of source and target.
    sides: the sequences of `row_length` tokens in a row: 2, source and target, or 1.
    found: the counts of what the rows hold, such as {"pairs": 3, "source tokens": 20}; the examples come first.
    left_out: the counts of what was left out, such as {"pairs skipped, with an empty side": 1}.
  """

  rows: int = 0
  tokens: int = 0
  sides: int = 1
  found: dict[str, int] = field(default_factory=dict)
  left_out: dict[str, int] = field(default_factory=dict)

  def padding(self, row_length: int) -> float:
    """The share of positions that hold no token."""
    return 1 - self.tokens / max(1, self.sides * self.rows * row_length)

  @property
  def examples(self) -> str:
    """The number of examples in the rows, such as `3 pairs`."""
    return ", ".join(counted(count, names) for names, count in list(self.found.items())[:1])

  def describe(self, row_length: int) -> str:
    """All counts: one line for the examples, indented lines for the rest."""
    more = ", ".join(counted(count, names) for names, count in list(self.found.items())[1:])
    rows = f"{counted(self.rows, 'rows')} of {row_length}, {self.padding(row_length):.1%} padding" if self.rows else ""
    return "\n  ".join(line for line in (self.examples, more, rows, *self.missing()) if line)

  def missing(self) -> list[str]:
    """The counts of what was left out, such as `1 pair skipped, with an empty side`; empty if nothing was."""
    return [counted(count, names) for names, count in self.left_out.items() if count]
