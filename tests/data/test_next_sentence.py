"""Rows of two texts: every line is somewhere, what is said to follow does, and as often it does not."""

from pathlib import Path

import numpy as np
import pytest

from transformer_jax.config import Config, Corpus, DataConfig, Document
from transformer_jax.data import encoding, next_sentence
from transformer_jax.data.documents import line_feed, open_text
from transformer_jax.data.next_sentence import LABEL, TOKEN_TYPES, TOKENS, next_sentence_rows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.language.config import BERTConfig
from transformer_jax.model.special_tokens import CLS, SEP
from transformer_jax.runtime.errors import InputError

SEPARATOR, ROW_LENGTH = 4, 29


def documents(count: int = 60) -> list[list[list[int]]]:
  """Lines whose tokens are all different numbers, so that each is known by them."""
  generator, number, found = np.random.default_rng(0), 10, []
  for _ in range(count):
    document = []
    for _ in range(generator.integers(1, 9)):
      length = int(generator.integers(1, 8))
      document.append(list(range(number, number + length)))
      number += length
    found.append(document)
  return found


def sides_of(row: np.ndarray) -> tuple[list[int], list[int]]:
  """The two texts of a row, with the signs around them checked."""
  whole = row[TOKENS][row[TOKEN_TYPES] > 0].tolist()
  first = row[TOKENS][row[TOKEN_TYPES] == 1].tolist()
  assert whole[0] == CLS and whole[-1] == SEP and first[-1] == SEP
  assert not np.any(row[TOKENS][len(whole) :]) and not np.any(row[TOKEN_TYPES][len(whole) :])
  return first[1:-1], whole[len(first) : -1]


@pytest.fixture(scope="module")
def rows():
  return list(next_sentence_rows(documents(), ROW_LENGTH, SEPARATOR))


def test_the_second_text_follows_where_the_label_says_so(rows):
  whose = {token: number for number, document in enumerate(documents()) for line in document for token in line}
  for row, cut in rows:
    assert len(set(row[LABEL].tolist())) == 1
    first, second = ([token for token in side if token != SEPARATOR] for side in sides_of(row))
    if row[LABEL, 0]:
      assert second[0] > first[-1] if cut else second[0] == first[-1] + 1
      assert whose[second[0]] == whose[first[-1]]
    else:
      assert whose[second[0]] != whose[first[0]]
    assert len({whose[token] for token in first}) == len({whose[token] for token in second}) == 1


@pytest.mark.parametrize("longest", [2, 7, ROW_LENGTH, 3 * ROW_LENGTH])
def test_as_often_as_not_the_second_text_follows(longest):
  """Also where one line fills a row; documents are long, as a lone last line is followed by nothing."""
  generator = np.random.default_rng(longest)
  documents = [[[5] * int(generator.integers(1, longest + 1)) for _ in range(700)] for _ in range(3)]
  labels = [row[LABEL, 0] for row, _ in next_sentence_rows(documents, ROW_LENGTH, SEPARATOR)]
  deviation = 0.5 / np.sqrt(len(labels))
  assert np.mean(labels) == pytest.approx(0.5, abs=4 * deviation) and deviation < 0.04


def test_one_row_in_ten_is_shorter_than_it_could_be():
  """Lines of one token fill any length; a shorter row has a random one, from 2 tokens on."""
  documents = [[[5]] * 9973 for _ in range(2)]
  room = 101 - 3
  sizes = np.array([sum(map(len, sides_of(row))) for row, _ in next_sentence_rows(documents, 101, SEPARATOR)])
  shorter = sizes < room - 2  # the separators of two texts are not those of one
  assert np.mean(shorter) == pytest.approx(0.1, abs=5 * 0.3 / np.sqrt(len(sizes))) and len(sizes) > 100
  assert np.ptp(sizes[shorter]) > room / 2


def test_every_token_is_in_a_row_as_itself_unless_it_was_cut(rows):
  """Each token is in an A or in a B that follows; random texts come on top."""
  own = [
    token
    for row, _ in rows
    for text in (sides_of(row) if row[LABEL, 0] else sides_of(row)[:1])
    for token in text
    if token != SEPARATOR
  ]
  every = [token for document in documents() for line in document for token in line]
  assert len(own) == len(set(own)) and set(own) <= set(every)
  # What was cut was cut from A or from a B that follows, or with it a sign between two lines, or from another B.
  assert len(every) - len(own) <= sum(cut for _, cut in rows)


def test_every_token_is_in_a_row_where_there_is_room():
  """Lines of 2 tokens: rows are filled to the last but never over, but for what a random B adds."""
  documents = [[[10 * d + 2 * i, 10 * d + 2 * i + 1] for i in range(5)] for d in range(1, 40)]
  rows = list(next_sentence_rows(documents, 101, SEPARATOR))
  own = [t for row, _ in rows for text in (sides_of(row) if row[LABEL, 0] else sides_of(row)[:1]) for t in text]
  own = [token for token in own if token != SEPARATOR]
  assert sum(cut for _, cut in rows) == 0
  assert sorted(own) == [token for document in documents for line in document for token in line]


def test_a_document_in_one_array_is_its_lines(monkeypatch):
  monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", 3 * 1024)
  tokenizer = SentencePieceTokenizer.learn(["ab abc b"] * 5, 267)
  texts = ["ab abc", "", "b", "  ", "ab", "abc ab", "\N{SNOWMAN}", "\t "]
  lines = next_sentence.Lines(texts, tokenizer, np.uint16)
  expected = [tokenizer.encode(text) for text in texts if text.strip()]
  assert [line.tolist() for line in lines] == expected == [line.tolist() for line in lines[0:9]]
  assert [line.tolist() for line in lines[2:4]] == expected[2:4]
  assert len(next_sentence.Lines(["", " ", "\t \u3000"], tokenizer, np.uint16)) == 0


def config_of(text: Path, content: str, row_length: int = 13) -> Config:
  text.write_text(content)
  data = DataConfig(corpus=Corpus.TEXT, train=str(text), row_length=row_length, cache_dir=str(text.parent / "cache"))
  return Config(model=BERTConfig(vocab_size=267), data=data)


def test_what_is_cut_off_is_reported(tmp_path):
  config = config_of(tmp_path / "text", "ab abc\nb\n" + "abc ab " * 20 + "\nab\n\nb b\nabc\n")
  tokenizer = SentencePieceTokenizer.learn(["ab abc b"] * 5, 267)
  found = next_sentence.packed_rows(config, config.data.train, tokenizer)
  documents = [next_sentence.Lines(lines, tokenizer, np.uint16) for lines in open_text(config.data, config.data.train)]
  rows = list(next_sentence_rows(documents, 13, line_feed(tokenizer)))
  np.testing.assert_array_equal(found.rows, [row for row, _ in rows])
  cut = sum(cut for _, cut in rows)
  assert cut > 20 and found.report.left_out == {"tokens cut off texts too long for their row": cut}
  sides = [sides_of(row) for row, _ in rows]
  assert found.report.tokens == sum(len(first) + len(second) + 3 for first, second in sides)
  follow = sum(int(row[LABEL, 0]) for row, _ in rows)
  assert found.report.found == {
    "pairs of texts": len(rows),
    "of them consecutive": follow,
    "documents": len(documents),
  }


@pytest.mark.parametrize(
  ("content", "row_length", "words"),
  [
    ("ab\nabc\n", 7, "config.data.row_length is 7, but two texts and three special tokens need at least 8"),
    ("\n \n", 13, "is empty: there is nothing to read"),
    ("ab\n", 13, "has two lines, of which one could follow the other"),
  ],
)
def test_a_text_without_pairs_is_refused(tmp_path, content, row_length, words):
  config = config_of(tmp_path / "text", content, row_length)
  tokenizer = SentencePieceTokenizer.learn(["ab abc b"] * 5, 267)
  with pytest.raises(InputError, match=words):
    next_sentence.packed_rows(config, config.data.train, tokenizer)


def test_the_same_documents_give_the_same_rows(rows):
  for (one, _), (other, _) in zip(rows, next_sentence_rows(documents(), ROW_LENGTH, SEPARATOR), strict=True):
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("only", [[[[7] * 50]], [[[8], [9]]], [[[5, 6]]]])
def test_a_single_document_of_any_size(only):
  for row, cut in next_sentence_rows(only, ROW_LENGTH, SEPARATOR):
    first, second = sides_of(row)
    assert first and second and len(first) + len(second) <= ROW_LENGTH - 3
    assert (cut > 0) == (len(only[0][0]) == 50)


def test_rows_that_are_made_a_few_at_a_time_are_all_there(tmp_path, monkeypatch):
  monkeypatch.setattr(next_sentence, "_AT_ONCE", 3)
  config = config_of(tmp_path / "text", "ab abc\nb\nabc ab\nb b\n" * 17)
  tokenizer = SentencePieceTokenizer.learn(["ab abc b"] * 5, 267)
  found = next_sentence.packed_rows(config, config.data.train, tokenizer)
  documents = [next_sentence.Lines(lines, tokenizer, np.uint16) for lines in open_text(config.data, config.data.train)]
  rows = [row for row, _ in next_sentence_rows(documents, 13, line_feed(tokenizer))]
  assert found.report.rows == len(rows) > 7
  np.testing.assert_array_equal(found.rows, rows)


def drawn(documents: list[list]) -> list[tuple[list[int], list[int], int]]:
  """The two texts of each row, and whether the second follows."""
  return [(*sides_of(row), row[LABEL, 0]) for row, _ in next_sentence_rows(documents, ROW_LENGTH, None)]


SHORT_LINES = [[[1000 * document + line] for line in range(500)] for document in range(1, 8)]
LONG_LINES = [[range(100 * line, 100 * line + 100) for line in range(200)] for _ in range(2)]
# For each kind of choice: where it fell, from 0 to 1, in each row, and the standard deviation of one of them.
CHOICES = {
  "the lines of the first text": (
    lambda: [len(a) / len([*a, *b]) for a, b, follows in drawn(SHORT_LINES) if follows],
    0.29,
  ),
  "where another text begins": (
    lambda: [b[0] % 1000 / 499 for _, b, follows in drawn(SHORT_LINES) if not follows],
    0.29,
  ),
  "the document of another text": (  # its place among the six others
    lambda: [(b[0] // 1000 - 1 - (b[0] > a[0])) / 5 for a, b, follows in drawn(SHORT_LINES) if not follows],
    0.35,
  ),
  "the tokens cut in front": (
    lambda: [side[0] % 100 / (100 - len(side)) for a, b, _ in drawn(LONG_LINES) for side in (a, b)],
    0.06,
  ),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_drawn_is_one_half_in_the_mean(choice):
  shares, deviation = CHOICES[choice]
  found = shares()
  assert len(found) > 100 and abs(np.mean(found) - 0.5) < 5 * deviation / np.sqrt(len(found))


@pytest.mark.parametrize(
  ("kind", "advice"),
  [
    ("line", "set it to 'file' or 'paragraph', or give"),
    ("paragraph", "set it to 'file', or give"),
    ("file", "other: give a"),
  ],
)
def test_documents_of_one_line_are_told_of_with_what_would_be_wider(tmp_path, kind, advice):
  config = config_of(tmp_path / "text", "ab\n")
  config.data.document = Document(kind)
  tokenizer = SentencePieceTokenizer.learn(["ab abc b"] * 5, 267)
  with pytest.raises(InputError, match=advice):
    next_sentence.packed_rows(config, config.data.train, tokenizer)
