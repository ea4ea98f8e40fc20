"""Tables in Markdown."""

from collections.abc import Iterator, Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
  """The lines of a table; a bar in a cell is escaped."""
  yield _row(head)
  yield "|" + "---|" * len(head)
  yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
  return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
