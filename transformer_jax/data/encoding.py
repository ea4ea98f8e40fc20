"""The tokens of many sentences at once. Byte-pair encoding takes each different word only once.

In such a vocabulary no piece goes on behind a space. So the merges of one word do not depend on the others, and the
pieces of a text are those of its words, one after another. The words of a text occur again and again: to look them up
is many times faster than to encode them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from transformer_jax.config import PieceKind
from transformer_jax.data.sentencepiece_pieces import pieces_of
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime.errors import InputError

Item = TypeVar("Item")

TOKEN = np.uint32  # the type of the tokens, here in bytes
CHARACTERS_AT_ONCE = 1 << 23  # that are encoded together; each text counts as 1,024 more
# The words that are kept in memory, with some hundred bytes each; a longer word rarely occurs twice.
_MOST_KEPT = 1 << 17
_LONGEST_KEPT = 32


class Encoder:
  """`Tokenizer.encode_batch` for large texts; the tokens of a sentence are the bytes of an array of `TOKEN`."""

  def __init__(self, tokenizer: Tokenizer):
    self._tokenizer = tokenizer
    self._by_words = _splits_words(tokenizer)
    self._space = tokenizer.encode("  ")[:1] if self._by_words else []  # the text with its space in front: three spaces
    self._kept: dict[str, bytes] = {}

  def __reduce__(self) -> tuple[type, tuple[Tokenizer]]:
    return Encoder, (self._tokenizer,)  # another process keeps words of its own

  def __call__(self, texts: Sequence[str]) -> list[bytes]:
    """The tokens of each text, without BOS and EOS.

    Raises:
      InputError: a text has a lone surrogate, which is no character.
    """
    if not self._by_words:
      return self._encode(texts)
    if len(self._kept) > _MOST_KEPT:
      self._kept.clear()
    split = [text.split(" ") if text else [] for text in texts]
    new = list(set(chain.from_iterable(split)).difference(self._kept))
    self._kept.update(zip(new, self._encode(new), strict=True))
    self._kept[""] = _bytes(self._space)  # what follows a space that another space follows
    found = [b"".join(map(self._kept.__getitem__, words)) for words in split]
    for word in new:
      if len(word) > _LONGEST_KEPT:
        del self._kept[word]
    return found

  def _encode(self, texts: Sequence[str]) -> list[bytes]:
    return [_bytes(tokens) for tokens in self._tokenizer.encode_batch(texts)]


def _splits_words(tokenizer: Tokenizer) -> bool:
  """Whether the pieces of a text are those of its words, one after another."""
  if not isinstance(tokenizer, SentencePieceTokenizer):
    return False
  try:
    pieces = pieces_of(tokenizer)
  except InputError:  # its pieces may have spaces inside
    return False
  # A unigram model adds the scores of all pieces of a text, and rounding may decide between two ways to split a word.
  return pieces.kind is PieceKind.BPE and not any(" " in piece for piece in pieces.ids)


def _bytes(tokens: Sequence[int]) -> bytes:
  return np.array(tokens, TOKEN).tobytes()


def in_batches(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
  """Lists of items that are encoded together, by the characters of each."""
  return gathered(items, CHARACTERS_AT_ONCE, lambda item: 1024 + characters(item))


def gathered(items: Iterable[Item], size: int, weight: Callable[[Item], int] = lambda item: 1) -> Iterator[list[Item]]:
  """Lists of items that weigh `size` together, or a little more."""
  batch, left = [], size
  for item in items:
    batch.append(item)
    left -= weight(item)
    if left <= 0:
      yield batch
      batch, left = [], size
  if batch:
    yield batch
