"""What is no piece of a vocabulary, and no corpus."""

import io

import pytest
import sentencepiece

from transformer_jax.data import listed_tokenizer, subwords
from transformer_jax.data.listed_tokenizer import ListedTokenizer, PieceList
from transformer_jax.data.text import TextPairs
from transformer_jax.decoding.long_lines import Long, parts
from transformer_jax.runtime.errors import InputError


def test_half_a_character_is_no_piece():
  assert listed_tokenizer._is_piece("ä") and subwords.is_texts(["ä", "b"])
  for value in ("\ud800", 5, None):
    assert not listed_tokenizer._is_piece(value) and not subwords.is_texts(["ä", value])


@pytest.mark.parametrize(("line", "expected"), [(">>fr<< ", ">>fr<<"), ("", None), (">>it<< ", None)])
def test_each_part_of_a_long_line_has_the_code_of_its_language(line, expected):
  """A code that is no piece means nothing to the model, and is text."""
  written = io.BytesIO()
  options = {"model_writer": written, "vocab_size": 15, "model_type": "unigram", "minloglevel": 3}
  sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a small house .", "houses ."] * 5), **options)  # pyright: ignore[reportAttributeAccessIssue]
  processor = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())  # pyright: ignore[reportCallIssue]
  pieces = ["</s>", "<unk>", ">>fr<<", ">>de<<", *(processor.id_to_piece(i) for i in range(3, 15)), "<pad>"]
  tokenizer = ListedTokenizer(written.getvalue(), PieceList(tuple(pieces), "<pad>", "<unk>", "</s>"))
  [found], error = parts([line + "a small house . " * 5], tokenizer, 20, Long.SPLIT, 1, str)
  first = [tokenizer.pieces(tokens)[0] for tokens in found]
  assert error is None and len(found) > 1 and max(map(len, found)) <= 20
  assert [piece == ">>fr<<" for piece in first] == [expected is not None] * len(found)


@pytest.mark.parametrize("which", ["a,b,c", "a,", ",b", "a;b,c,d"])
def test_a_corpus_has_one_prefix_or_two_files(which, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  for name in ("a.en", "a.de", "a", "b", "c"):
    (tmp_path / name).write_text("x\n")
  with pytest.raises(InputError, match="is not a corpus: write PREFIX or SOURCE,TARGET"):
    TextPairs(which, "en", "de")
