"""Tokens of many texts at once are those of each text alone, whatever the vocabulary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nasty import LINES
from transformer_jax.data import encoding
from transformer_jax.data import sentencepiece_tokenizer as tokenizer_module
from transformer_jax.data.encoding import TOKEN, Encoder
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.runtime.errors import InputError

TEXT = ["riding a horse", "he  rides a grey horse", "aaa aaaa aa", "über über Übermut", "a.b! c horses"] * 3


def learned(**options):
  return SentencePieceTokenizer.learn(TEXT, **{"vocab_size": 300} | options)


TOKENIZERS = {
  "bpe": lambda: learned(),
  "with tags": lambda: learned(symbols=["<2de>", "rid", "!"]),
  "unigram": lambda: learned(kind="unigram", vocab_size=290),
}


def tokens(encoder, texts):
  return [np.frombuffer(found, TOKEN).tolist() for found in encoder(texts)]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokens_are_those_of_the_tokenizer(kind, monkeypatch):
  monkeypatch.setattr(encoding, "_MOST_KEPT", 20)
  tokenizer = TOKENIZERS[kind]()
  encoder = Encoder(tokenizer)
  assert encoder._by_words == (kind != "unigram")

  @settings(max_examples=200)
  @given(st.lists(LINES | st.text("aridg .<2>e ", max_size=40)))
  def check(texts):
    assert tokens(encoder, texts) == tokenizer.encode_batch(texts)

  check()


def test_each_word_is_encoded_once_and_memory_is_bounded(monkeypatch):
  monkeypatch.setattr(encoding, "_MOST_KEPT", 4)
  tokenizer = learned()
  encoder, encode, seen = Encoder(tokenizer), tokenizer.encode_batch, []
  monkeypatch.setattr(tokenizer, "encode_batch", lambda texts: seen.append(sorted(texts)) or encode(texts))
  long = "x" * 33
  encoder(["a b a", f"b {long}"])
  encoder(["a c"])
  encoder([f"a {long} {long}"])
  assert seen == [["a", "b", long], ["c"], [long]]
  assert set(encoder._kept) == {"", "a", "b", "c"}
  encoder(["d"])
  encoder(["e"])
  assert set(encoder._kept) == {"", "e"}


def test_pieces_of_several_words_are_those_of_the_whole_text(monkeypatch):
  monkeypatch.setitem(tokenizer_module._LOSSLESS, "split_by_whitespace", False)
  tokenizer = learned(vocab_size=330)
  assert any(" " in piece[1:] for piece in tokenizer.pieces(range(260, 330)))
  assert tokens(Encoder(tokenizer), TEXT) == tokenizer.encode_batch(TEXT)


def test_half_of_a_surrogate_pair_is_refused():
  with pytest.raises(InputError, match="half of a surrogate pair"):
    Encoder(learned())(["a \ud800"])
