"""Plain text: nothing is lost, documents are what they are said to be, and blocks have every token once."""

import lzma
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_jax.config import Corpus, DataConfig, Document
from transformer_jax.data.blocks import SEGMENTS, TOKENS, pack_blocks
from transformer_jax.data.documents import (
  PlainText,
  _paragraphs,
  decode_text,
  encode_documents,
  encode_text,
  line_feed,
  open_text,
)
from transformer_jax.data.next_sentence import Lines
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

TEXT = "To be, or\nnot to be:\n\nthat is\n\n\nthe question.\n"


@pytest.fixture(scope="module")
def tokenizer():
  return SentencePieceTokenizer.learn(["to be or not to be that is the question"] * 3, 275)


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n \tto be")))
def test_decoding_gives_the_text_back(tokenizer, text):
  assert decode_text(tokenizer, encode_text(tokenizer, text)) == text


def test_words_have_the_same_pieces_at_the_start_of_a_line(tokenizer):
  a, b = encode_text(tokenizer, "to be"), encode_text(tokenizer, "that")
  assert encode_text(tokenizer, "to be\nthat") == [*a, line_feed(tokenizer), *b]


@pytest.mark.parametrize(
  ("document", "expected"),
  [
    (Document.FILE, [TEXT.removesuffix("\n").split("\n")]),
    (Document.PARAGRAPH, [["To be, or", "not to be:"], ["that is"], ["the question."]]),
    (Document.LINE, [["To be, or"], ["not to be:"], ["that is"], ["the question."]]),
  ],
)
def test_documents(tmp_path, document, expected):
  (tmp_path / "a.txt").write_text(TEXT)
  with lzma.open(tmp_path / "b.xz", "wt") as file:
    file.write(TEXT)
  text = PlainText(f"{tmp_path / 'a.txt'}; {tmp_path / 'b.xz'}", document)
  assert [list(lines) for lines in text] == 2 * expected
  assert list(text.lines()) == 2 * [line for line in TEXT.split("\n") if line]


@pytest.mark.parametrize("document", Document)
def test_a_file_of_spaces_is_no_document(tmp_path, document):
  for name, content in (("a", " \n\n\t\n"), ("b", "to be"), ("c", "")):
    (tmp_path / name).write_text(content)
  text = PlainText(";".join(str(tmp_path / name) for name in "abc"), document)
  assert [list(lines) for lines in text] == [["to be"]]


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(InputError, match=r"nothing\.txt does not exist"):
    PlainText(str(tmp_path / "nothing.txt"), Document.FILE)
  with pytest.raises(InputError, match=r"set config\.data\.train"):
    PlainText(" ; ", Document.FILE)


def test_another_corpus_is_refused():
  with pytest.raises(InputError, match=r"config\.data\.corpus is 'numbers', but a language model reads files"):
    open_text(DataConfig(corpus=Corpus.NUMBERS), "train")


def test_tokens_of_documents(tokenizer):
  documents = [["to be", "", "or not"], [""], ["the"]]
  chunks = list(encode_documents(documents, tokenizer))
  flat = [int(token) for chunk, _ in chunks for token in chunk]
  assert flat == [token for lines in documents for token in [*encode_text(tokenizer, "\n".join(lines)), EOS]]
  assert sum(ends for _, ends in chunks) == 3


def test_lines_are_encoded_and_paragraphs_read_a_few_at_a_time(tokenizer, monkeypatch):
  encoded, encode = [], SentencePieceTokenizer.encode_batch

  def noted(self, texts):
    encoded.append(sum(map(len, texts)))
    return encode(self, [text[:9] for text in texts])

  monkeypatch.setattr(SentencePieceTokenizer, "encode_batch", noted)
  line, count = "to be" * 50_000, 200
  assert sum(ends for _, ends in encode_documents([[line] * count, [line]], tokenizer)) == 2
  assert len(Lines([line] * count, tokenizer, np.int32)) == count
  assert max(encoded) <= (1 << 23) + len(line) < sum(encoded) // 8

  read = []
  lines = (read.append(number) or "to be" for number in range(1000))
  assert next(next(_paragraphs(lines))) == "to be" and len(read) == 1


@settings(deadline=None)
@given(
  st.lists(st.lists(st.integers(4, 99), min_size=1, max_size=23), min_size=1, max_size=9),
  st.integers(2, 11),
  st.integers(1, 5),
)
def test_blocks_have_every_token_once_and_tell_documents_apart(documents, row_length, part):
  """Chunks of up to `part` tokens, as a long document comes in several."""
  chunks = [
    (np.array(document[i : i + part]), i + part >= len(document))
    for document in documents
    for i in range(0, len(document), part)
  ]
  report = PackingReport()
  rows = np.concatenate(list(pack_blocks(chunks, row_length, report, np.int32)))
  tokens = [token for document in documents for token in document]
  whose = [number for number, document in enumerate(documents) for _ in document]
  assert report == PackingReport(len(rows), len(tokens), found={"documents": len(documents), "tokens": len(tokens)})
  assert len(rows) == -(-len(tokens) // row_length)
  found, segments = rows[:, TOKENS].reshape(-1), rows[:, SEGMENTS].reshape(-1)
  np.testing.assert_array_equal(found[: len(tokens)], tokens)
  assert not np.any(segments[len(tokens) :]) and np.all(segments[: len(tokens)] > 0)
  for i in range(len(tokens)):
    if i % row_length:
      assert segments[i] - segments[i - 1] == whose[i] - whose[i - 1]
    else:
      assert segments[i] == 1


def test_a_pipe_is_refused_as_it_can_be_read_only_once(tmp_path):
  os.mkfifo(tmp_path / "text")
  with pytest.raises(InputError, match="text is a pipe, whose text can be read only once: write it to a file"):
    PlainText(str(tmp_path / "text"), Document.LINE)


def test_the_fingerprint_is_that_of_all_files_in_their_order(tmp_path):
  for name in "abc":
    (tmp_path / name).write_text(f"to be {name}\n")
  whiches = ["a", "a;b", "b;a", "a;c"]
  texts = [PlainText(";".join(f"{tmp_path}/{name}" for name in which.split(";")), Document.FILE) for which in whiches]
  assert len({text.fingerprint() for text in texts}) == len(whiches)
