"""Parts of parallel text files that can be read by themselves, for several processes or machines."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from etils import epath

from transformer_jax.data.text import TextFiles, lines_of, readable, repeated, unequal, without_lines, zip_lines

_BLOCK = 1 << 22  # bytes that are searched for line ends at once
_LINE_FEED = 10


class TextPart(NamedTuple):
  """Neighbouring lines of a parallel corpus.

  Attributes:
    corpus, number: the numbers of the corpus and of this part in it, from 0.
    source, target: the files.
    weight: how often each pair is read, as in `TextPairs`.
    first: the number of the first line, from 0.
    lines: the number of lines; None means all that follow.
    starts: the bytes at which that line begins in both files.
  """

  corpus: int
  number: int
  source: str
  target: str
  weight: float
  first: int
  lines: int | None
  starts: tuple[int, int]


def parts_of(corpus: int, files: TextFiles, most: int) -> Iterator[TextPart]:
  """The parts of a corpus, of `most` lines each; compressed files are one part, as reading cannot begin inside them.

  Raises:
    InputError: the two files differ in their number of lines or have none, or cannot be read.
  """
  names = str(files.source), str(files.target)
  if files.compressed:
    yield TextPart(corpus, 0, *names, files.weight, 0, None, (0, 0))
    return
  sources, targets = (_line_starts(path, most) for path in (files.source, files.target))
  if sources[-1][0] != targets[-1][0]:
    raise unequal(sources[-1][0], targets[-1][0], *names)
  if not sources[-1][0]:
    raise without_lines(*names)
  for number, ((first, source), (_, target)) in enumerate(zip(sources[:-1], targets[:-1], strict=True)):
    lines = sources[number + 1][0] - first
    yield TextPart(corpus, number, *names, files.weight, first, lines, (source, target))


def read_part(part: TextPart) -> Iterator[tuple[str, str]]:
  """The pairs of a part, each as often as its weight says.

  Raises:
    InputError: a line is not UTF-8, or a file cannot be read.
  """
  sources, targets = (
    islice(lines_of(epath.Path(name), part.first + 1, start), part.lines)
    for name, start in zip((part.source, part.target), part.starts, strict=True)
  )
  return repeated(zip_lines(sources, targets, part.source, part.target), part.weight, part.first)


def _line_starts(path: epath.Path, every: int) -> list[tuple[int, int]]:
  """The number of each `every`-th line, from 0, and the byte at which it begins; and last those of the text's end."""
  found, lines, size, last = [(0, 0)], 0, 0, _LINE_FEED
  with readable(path), path.open("rb") as file:
    while block := file.read(_BLOCK):
      ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED)
      chosen = range(every - 1 - lines % every, len(ends), every)
      found += [(lines + i + 1, size + int(ends[i]) + 1) for i in chosen]
      lines, size, last = lines + len(ends), size + len(block), block[-1]
  end = lines + (last != _LINE_FEED), size  # the last line may have no line feed
  return found if found[-1] == end != found[0] else [*found, end]
