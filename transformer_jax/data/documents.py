"""Plain text of one language: documents, their tokens, and back.

Each line is encoded by itself, and the token of a line feed stands between two lines. So a word has the same token at
the start of a line as in the middle of it, and nothing of the text is lost. Vocabularies of GPT-2 and BERT, which know
line feeds or drop them, encode a text as a whole.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from transformer_jax.config import Corpus, DataConfig, Document
from transformer_jax.data import fingerprint
from transformer_jax.data.encoding import in_batches
from transformer_jax.data.text import digest, existing, lines_of, require_no_pipe
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

# Some tokens of a document, and whether they are its last.
Chunk = tuple[np.ndarray, bool]

# As much of a line as ends before space or with the line; Python's \S knows more space than GPT-2 does, and BERT drops
# \v and \f, so that no piece ends there.
_UP_TO_SPACE = re.compile(r".*\S(?=[ \t\r]|\Z)", re.DOTALL)
_MOST_SPACE = 1 << 16  # characters that are waited for in one part


class PlainText:
  """The documents of one or several text files.

  Args:
    which: UTF-8 files separated by `;`, each plain or compressed (`.gz`, `.xz`).
    document: what a document is: a whole file, a paragraph between blank lines, or a line.

  Raises:
    InputError: a file is missing, or cannot be read.
  """

  def __init__(self, which: str, document: Document):
    self._document = document
    self._files = [existing(part.strip()) for part in which.split(";") if part.strip()]
    require_no_pipe(self._files)
    if not self._files:
      raise InputError("the text to read has an empty name: set config.data.train to a file")

  def fingerprint(self) -> str:
    """A digest of the files' bytes on disk and of what a document is."""
    return fingerprint.of_values([digest(file) for file in self._files], self._document.value)

  def lines(self) -> Iterator[str]:
    """All lines that are not blank."""
    return (line for document in self for line in document if line.strip())

  def __iter__(self) -> Iterator[Iterator[str]]:
    """The lines of each document, which must be read in turn; no document is blank."""
    for file in self._files:
      match self._document:
        case Document.FILE:
          if any(line.strip() for line in lines_of(file)):
            yield lines_of(file)
        case Document.PARAGRAPH:
          yield from _paragraphs(lines_of(file))
        case Document.LINE:
          yield from (iter([line]) for line in lines_of(file) if line.strip())


def open_text(data: DataConfig, which: str) -> PlainText:
  """The text `which`, as `data.train` names one.

  Raises:
    InputError: a file is missing, or `data.corpus` says that it is no text file.
  """
  require_text_files(data)
  return PlainText(which, data.document)


def require_text_files(data: DataConfig) -> None:
  """Checks that the corpus is text files: a language model reads nothing else.

  Raises:
    InputError: it is another kind of corpus.
  """
  if data.corpus is not Corpus.TEXT:
    raise InputError(f"config.data.corpus is {data.corpus.value!r}, but a language model reads files: set it to text")


def _paragraphs(lines: Iterable[str]) -> Iterator[Iterator[str]]:
  return (paragraph for blank, paragraph in itertools.groupby(lines, lambda line: not line.strip()) if not blank)


def line_feed(tokenizer: Tokenizer) -> int | None:
  """The token that stands for a line feed; None for a vocabulary that has none."""
  return next(iter(tokenizer.encode("\n")[::-1]), None)


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
  """A text's tokens, without BOS and EOS; `decode_text` is the inverse."""
  if not tokenizer.lines_apart:
    return tokenizer.encode(text)
  return join_lines(tokenizer.encode_batch(text.split("\n")), line_feed(tokenizer))


def decode_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
  """The inverse of `encode_text`; any token numbers give a text."""
  if not tokenizer.lines_apart:
    return tokenizer.decode(ids)
  lines: list[list[int]] = [[]]
  separator = line_feed(tokenizer)
  for token in ids:
    if token == separator:
      lines.append([])
    else:
      lines[-1].append(token)
  return "\n".join(map(tokenizer.decode, lines))


def encode_documents(documents: Iterable[Iterable[str]], tokenizer: Tokenizer, end: int = EOS) -> Iterator[Chunk]:
  """The tokens of documents with `end` after each; at most some millions of characters are encoded at once."""
  separator = line_feed(tokenizer) if tokenizer.lines_apart else None
  parts = documents if tokenizer.lines_apart else map(_parts, documents)
  numbered = ((number, line) for document in parts for number, line in enumerate(document))
  begun = False  # whether a document has no end yet
  for lines in in_batches(numbered, lambda line: len(line[1])):
    tokens: list[int] = []
    for (number, _), encoded in zip(lines, tokenizer.encode_batch([line for _, line in lines]), strict=True):
      if begun and number == 0:
        yield np.array([*tokens, end]), True
        tokens = []
      elif begun and separator is not None:
        tokens.append(separator)
      tokens += encoded
      begun = True
    if tokens:
      yield np.array(tokens), False
  if begun:
    yield np.array([end]), True


def _parts(lines: Iterable[str]) -> Iterator[str]:
  """A text in parts of about a line, for a vocabulary that does not read line by line: joined, they are the text.

  A part ends where space follows something else, where these vocabularies always end a piece. So a piece of several
  line feeds, or of one and the spaces beside it, stays whole, if it is not very long.
  """
  begun, rest, size = False, [], 0
  for line in lines:
    part = _UP_TO_SPACE.match(line)
    if part is not None:
      yield "\n".join([*rest, part[0]])
      begun, rest, size = True, [line[part.end() :]], 0
    else:
      rest.append(line)
      size += len(line) + 1
    if size > _MOST_SPACE:
      *before, last = rest
      yield "\n".join([*before, ""])
      begun, rest, size = True, [last], len(last)
  if any(rest) or len(rest) > 1 or (rest and not begun):
    yield "\n".join(rest)


def join_lines(lines: Iterable[Sequence[int] | np.ndarray], separator: int | None) -> list[int]:
  """The tokens of a text, given the tokens of its lines."""
  joined: list[int] = []
  for number, line in enumerate(lines):
    joined.extend(line if number == 0 or separator is None else [separator, *line])
  return joined
