"""Subword regularisation: a sentence gets other pieces in each epoch.

BPE-dropout (Provilkov et al. 2020) and unigram sampling (Kudo 2018), by the kind of the vocabulary. SentencePiece has
both, but its random generator belongs to the whole process, and versions 0.2.1 and 0.2.3 give different pieces for the
same seed. Here the random numbers are those of Philox with the key (seed, epoch) and the counter (pair, side). So the
pieces of a sentence depend on nothing else: neither on other sentences, nor on the number of hosts or threads.
"""

import functools
import re
from typing import Any

import numpy as np

from transformer_jax.config import DataConfig, PieceKind
from transformer_jax.data.bpe_dropout import BpeDropout
from transformer_jax.data.sentencepiece_pieces import Pieces, pieces_of
from transformer_jax.data.sentencepiece_tokenizer import SPACE
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.unigram_sampling import UnigramSampling
from transformer_jax.runtime.errors import InputError

# The most words that are kept in memory; one takes several times as much for unigram sampling as for BPE-dropout.
_MOST_KEPT = {PieceKind.BPE: 1 << 19, PieceKind.UNIGRAM: 1 << 16}
# A space and what follows up to the next one.
_WORD = re.compile(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+")


class PieceSampler:
  """Random pieces of sentences.

  Args:
    tokenizer: the vocabulary.
    data: the config of the data, which has `bpe_dropout` or `unigram_alpha`.
    seed: the seed of the run, at least 0.

  Raises:
    InputError: the vocabulary is not of the kind that the config needs.
  """

  def __init__(self, tokenizer: Tokenizer, data: DataConfig, seed: int):
    pieces = pieces_of(tokenizer)
    self._new_sampling = functools.partial(_sampling, pieces, data)
    self._sampling = self._new_sampling()
    self._most_kept = _MOST_KEPT[pieces.kind]
    self._seed = seed
    self._sign = [pieces.bytes_[byte] for byte in SPACE.encode()]
    self._atomic = re.compile(f"({'|'.join(map(re.escape, pieces.atomic))})") if pieces.atomic else None
    self._atomic_ids = {piece: [pieces.ids[piece]] for piece in pieces.atomic}
    self._generator = np.random.Philox(0)
    self._state = self._generator.state

  def sample(self, text: str, epoch: int, pair: int, side: int) -> list[int]:
    """The numbers of a text's pieces, without BOS and EOS.

    `Tokenizer.decode` gives the text back, as from `Tokenizer.encode`.

    Args:
      text: a sentence.
      epoch: the epoch, from 0.
      pair: the index of the pair in the corpus, from 0.
      side: 0 for the source, 1 for the target.
    """
    if len(self._sampling.kept) > self._most_kept:
      self._sampling = self._new_sampling()  # frees the memory of the other
    text = f" {text}" if text else ""  # as `SentencePieceTokenizer.encode` does
    # A word of n characters needs at most n numbers, so each word has those at its own place in the text.
    draws = self._draws(len(text), epoch, pair, side)
    found: list[int] = []
    at = 0
    for number, part in enumerate(text.split(SPACE)):
      if number:
        found, at = found + self._sign, at + 1
      for word in _WORD.findall(part.replace(" ", SPACE)):
        found += self._sampling.sample(word, draws, at) if self._atomic is None else self._split(word, draws, at)
        at += len(word)
    return found

  def _split(self, word: str, draws: Any, at: int) -> list[int]:
    """The pieces of a word that may have atomic ones."""
    assert self._atomic is not None
    found: list[int] = []
    for part in self._atomic.split(word):
      found += self._atomic_ids.get(part) or (self._sampling.sample(part, draws, at) if part else [])
      at += len(part)
    return found

  def _draws(self, count: int, epoch: int, pair: int, side: int) -> Any:
    """What `count` random numbers are for the sampling."""
    state = self._state
    state["state"]["key"][:] = self._seed, epoch
    state["state"]["counter"][:] = 0, 0, pair, side
    state["buffer_pos"] = 4  # the buffer's numbers are used up
    self._generator.state = state
    return self._sampling.draws(self._generator.random_raw(count))


def _sampling(pieces: Pieces, data: DataConfig) -> BpeDropout | UnigramSampling:
  if data.unigram_alpha is not None:
    if pieces.kind is not PieceKind.UNIGRAM:
      raise InputError(
        "config.data.unigram_alpha needs a unigram vocabulary, but this one is of byte-pair encoding: set "
        "config.data.bpe_dropout in its place, or learn a vocabulary with config.data.pieces=unigram"
      )
    return UnigramSampling(pieces, data.unigram_alpha)
  if pieces.kind is not PieceKind.BPE:
    raise InputError(
      "config.data.bpe_dropout needs a vocabulary of byte-pair encoding, but this one is a unigram model: set "
      "config.data.unigram_alpha in its place, or learn a vocabulary with config.data.pieces=bpe"
    )
  return BpeDropout(pieces, data.bpe_dropout)
