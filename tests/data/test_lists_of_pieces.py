"""What is no piece of a vocabulary, and no corpus."""

import pytest

from transformer_jax.data import listed_tokenizer, subwords
from transformer_jax.data.text import TextPairs
from transformer_jax.runtime.errors import InputError


def test_half_a_character_is_no_piece():
  assert listed_tokenizer._is_piece("ä") and subwords.is_texts(["ä", "b"])
  for value in ("\ud800", 5, None):
    assert not listed_tokenizer._is_piece(value) and not subwords.is_texts(["ä", value])


@pytest.mark.parametrize("which", ["a,b,c", "a,", ",b", "a;b,c,d"])
def test_a_corpus_has_one_prefix_or_two_files(which, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  for name in ("a.en", "a.de", "a", "b", "c"):
    (tmp_path / name).write_text("x\n")
  with pytest.raises(InputError, match="is not a corpus: write PREFIX or SOURCE,TARGET"):
    TextPairs(which, "en", "de")
