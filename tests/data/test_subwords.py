"""The vocabularies of BERT and GPT-2: pieces by hand, every byte, mistakes, and damaged files."""

import dataclasses
import random
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz_run_folder import mutated
from transformer_jax.data import documents, subwords
from transformer_jax.data.documents import _parts, decode_text, encode_documents, encode_text, line_feed
from transformer_jax.data.subwords import Kind, SubwordTokenizer, Vocabulary
from transformer_jax.runtime.errors import InputError

pytest.importorskip("tokenizers", reason="tokenizers is missing: pip install -e '.[huggingface]'")

SPECIAL = ("[PAD]", "[MASK]", "[CLS]", "[SEP]")


def words():
  pieces = ("[PAD]", "the", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "가", "!", "[unused]")
  return SubwordTokenizer(Vocabulary(Kind.WORDPIECE, pieces, special=SPECIAL))


def byte_pairs():
  pieces = ("<|endoftext|>", *subwords.byte_letters(), "ab", "Ġab", "abab")
  merges = (("a", "b"), ("Ġ", "ab"), ("ab", "ab"))
  return SubwordTokenizer(Vocabulary(Kind.BYTES, pieces, merges, ("<|endoftext|>",)))


def test_words():
  tokenizer = words()
  tokens = tokenizer.encode("The ab, a가! zb [MASK]")
  assert tokenizer.vocabulary.order == [0, 5, 3, 4, 1, 2, 6, 7, 8, 9, 10]
  unknown = " [UNK]"  # a comma, a word with a letter of another script, and `[`, `mask`, `]`
  assert tokenizer.pieces(tokens) == [" the", " a", "b", unknown, unknown, " !", *[unknown] * 4]
  assert tokenizer.decode([2, *tokenizer.encode("the ab!"), 3]) == "the ab !"
  assert tokenizer.encode("") == tokenizer.encode(" \n") == []
  with pytest.raises(InputError, match="half of a surrogate pair"):
    tokenizer.encode("\ud800")


def test_byte_pairs():
  """Against the merges, made by hand; every text comes back."""
  tokenizer = byte_pairs()
  assert tokenizer.pieces(tokenizer.encode("ababab ab\n\u2581")) == [
    *("abab", "ab", " ab", "\n", "<0xE2>", "<0x96>", "<0x81>")
  ]
  for text in ["", " ", "<|endoftext|>", "\0 a\n\n é한\U0001f600 ", "'s  x"]:
    assert tokenizer.decode([0, *tokenizer.encode(text), 0]) == text
  assert tokenizer.encode("<|endoftext|>")[0] != 0 and tokenizer.decode([tokenizer.encode("é")[0]]) == "\ufffd"


def test_texts_and_documents():
  """GPT-2 reads a text as a whole; BERT has no token for a line feed."""
  tokenizer = byte_pairs()
  text = " ab\n\nab ab\n"
  assert encode_text(tokenizer, text) == tokenizer.encode(text)
  assert decode_text(tokenizer, tokenizer.encode(text)) == text
  tokens, ends = zip(*encode_documents([["ab", " ab"]], tokenizer, end=0), strict=True)
  *pieces, end = np.concatenate(tokens).tolist()
  assert ends.index(True) == len(ends) - 1 and tokenizer.pieces(pieces) == ["ab", "\n", " ab"] and end == 0
  assert line_feed(words()) is None
  tokens, _ = zip(*encode_documents([["the", "a"]], words()), strict=True)
  assert np.concatenate(tokens).tolist() == [4, 6, 3]


@given(st.lists(st.text("ab \n\t", max_size=13), max_size=5))
def test_a_document_has_the_tokens_of_the_whole_text(texts):
  """Also those of several line feeds, and of a line feed and a space, which an encoder of single lines never makes."""
  more = ("ĊĊ", "ĊĠ", "ĠĊ")
  known = byte_pairs().vocabulary
  tokenizer = SubwordTokenizer(
    dataclasses.replace(known, pieces=(*known.pieces, *more), merges=(*known.merges, *map(tuple, more)))
  )
  assert tokenizer.pieces(tokenizer.encode("a\n\n\nb")) == ["a", "\n\n", "\n", "b"]
  split = [text.split("\n") for text in texts]
  parts = [part for lines in split for part in _parts(lines)]
  assert "".join(parts) == "".join(texts)
  assert sum(bool(part.strip()) for part in parts) == sum(bool(line.strip()) for lines in split for line in lines)
  found = [token for tokens, _ in encode_documents(split, tokenizer, end=0) for token in tokens.tolist()]
  assert found == [token for text in texts for token in [*encode_text(tokenizer, text), 0]]


def test_a_run_of_blank_lines_is_not_waited_for_to_its_end(monkeypatch):
  monkeypatch.setattr(documents, "_MOST_SPACE", 7)
  for lines in (["a b", *[""] * 50, "c"], [""] * 50, ["  "] * 20 + ["c"], [" " * 40, " ", "a"], ["a", *[""] * 30]):
    parts = list(_parts(lines))
    assert "".join(parts) == "\n".join(lines) and max(map(len, parts)) <= max(8, *map(len, lines)) + 3


def test_a_line_that_ends_with_a_space_of_unicode_is_divided_as_well():
  assert list(_parts(["a b\xa0", "c d\xa0", "\xa0"])) == ["a", " b\xa0\nc", " d\xa0\n\xa0"]
  assert list(_parts(["x\x0by\x0cz", "a"])) == ["x\x0by\x0cz", "\na"]  # BERT deletes both characters


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"pieces": ("a", "a")}, "has a piece twice"),
    ({"special": ("[PAD]", "[PAD]", "[CLS]", "[SEP]")}, "must have four special tokens"),
    ({"unknown": "[NONE]"}, r"has no token '\[NONE\]'"),
    ({"merges": (("a", "##b"),)}, "has no token 'a##b'"),
    ({"kind": Kind.BYTES, "special": ()}, "has no token for some bytes"),
  ],
)
def test_a_vocabulary_that_is_none(changes, message):
  with pytest.raises(InputError, match=message):
    dataclasses.replace(words().vocabulary, **changes)


def test_the_library_may_be_missing(monkeypatch):
  vocabulary = words().vocabulary
  monkeypatch.setitem(sys.modules, "tokenizers", None)
  with pytest.raises(InputError, match=r"needs the library tokenizers: pip install 'transformer_jax\[huggingface\]'"):
    SubwordTokenizer(vocabulary)


@pytest.mark.long
@pytest.mark.parametrize("made", [words, byte_pairs])
def test_a_damaged_vocabulary_of_a_run_is_read_or_refused(made):
  generator, content, refused = random.Random(0), made().files()[subwords.FILE], 0
  for _ in range(10_000):
    try:
      SubwordTokenizer(subwords.from_json(mutated(content, generator), "tokenizer.json")).encode("the ab 가\n")
    except InputError as error:
      refused += 1
      assert "\n" not in str(error)
  assert 3_000 < refused < 10_000
