"""What became of a text on its way into packed rows, whatever the task."""

from dataclasses import dataclass, field

from transformer_jax.runtime.wording import counted


@dataclass
class PackingReport:
  """Counts of what was packed and of what was left out.

  Attributes:
    rows: packed rows.
    tokens: real tokens in them, on all sides, special ones included.
    sides: how many times `row_length` tokens a row holds: 2 with a source and a target side.
    found: what is in the rows, in words, such as {"pairs": 3, "source tokens": 20}; the examples come first.
    left_out: what is in no row, in words, such as {"pairs skipped, with an empty side": 1}.
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
    """How many examples the rows hold, such as `3 pairs`."""
    return ", ".join(counted(count, names) for names, count in list(self.found.items())[:1])

  def describe(self, row_length: int) -> str:
    """All of it, in a line for the examples and indented ones for the rest."""
    more = ", ".join(counted(count, names) for names, count in list(self.found.items())[1:])
    rows = f"{counted(self.rows, 'rows')} of {row_length}, {self.padding(row_length):.1%} padding"
    return "\n  ".join(line for line in (self.examples, more, rows, *self.missing()) if line)

  def missing(self) -> list[str]:
    """What was left out, such as `1 pair skipped, with an empty side`; empty if nothing was."""
    return [counted(count, names) for names, count in self.left_out.items() if count]
