"""Word vectors in the text formats of word2vec, GloVe and fastText: what is read, and each mistake in one sentence."""

import gzip
import re

import numpy as np
import pytest
from etils import epath

from transformer_jax.data import word_vectors
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.word_vectors import read_vectors, whole_words
from transformer_jax.runtime.errors import InputError

WIDTH = 3
LINES = ["the 1 -2.5 3e-2", "unheard 7 7 7", "house 4 5 6", "small 0.25 0 -1"]
EXPECTED = {"the": [1, -2.5, 0.03], "house": [4, 5, 6], "small": [0.25, 0, -1]}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
  return SentencePieceTokenizer.learn(["the house the house", "the small house", "small small"], vocab_size=285)


def number_of(tokenizer: Tokenizer, word: str) -> int:
  """The one piece of a word; words stand behind a space."""
  [piece] = tokenizer.encode(word)
  return piece


def check(tokenizer: Tokenizer, file) -> None:
  found = read_vectors(str(file), tokenizer, WIDTH)
  expected = {number_of(tokenizer, word): vector for word, vector in EXPECTED.items()}
  assert dict(zip(found.pieces.tolist(), found.vectors.tolist(), strict=True)) == {
    piece: np.float32(vector).tolist() for piece, vector in expected.items()
  }
  assert (found.pieces.dtype, found.vectors.dtype) == (np.int64, np.float32)


@pytest.mark.parametrize(
  "text",
  [
    "\n".join(LINES),  # GloVe
    "\n".join(["4 3", *LINES]) + "\n",  # fastText
    "".join(f"{line} \n" for line in ["4 3", *LINES]),  # word2vec's own program
    "\ufeff" + "\r\n".join(["", *LINES, ""]),
    "\n".join([*LINES, "the 9 9 9", ". . . 1 2 3", "at name@domain.com 1 2 3", "</s> 0 0 0"]),
  ],
  ids=["without a header", "with a header", "spaces at the ends", "written on Windows", "repeated, and with spaces"],
)
def test_each_format_gives_the_same_vectors(tokenizer, tmp_path, text):
  (tmp_path / "vectors.txt").write_bytes(text.encode())
  check(tokenizer, tmp_path / "vectors.txt")


def test_a_compressed_file(tokenizer, tmp_path):
  (tmp_path / "vectors.vec.gz").write_bytes(gzip.compress("\n".join(LINES).encode()))
  check(tokenizer, tmp_path / "vectors.vec.gz")


def test_a_whole_word_is_a_piece_behind_a_space(tokenizer):
  """Not a part of a word, a special token, a byte or the space alone."""
  words = whole_words(tokenizer)
  assert words.keys() >= {"the", "house", "small"}
  assert all(tokenizer.decode([piece]) == word for word, piece in words.items())
  assert not {"", "ouse", "<s>", "</s>", "<0x20>"} & words.keys()


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (b"4 5\nthe 1 2 3 4 5", "line 1: the vectors have 5 numbers, but config.model.d_model is 3"),
    (b"5 " + b"9" * 5000, "line 1: the vectors have 1 numbers, but config.model.d_model is 3"),
    (b"\nthe 1 2", "line 2: the vectors have 2 numbers, but config.model.d_model is 3"),
    (b"the 1 2 3\nhouse 1 2", "line 2: a word and 2 numbers, but the first vector has 3"),
    (b"the 1 2 3\nhouse 1 2 3 4", "line 2: a word and 4 numbers, but the first vector has 3"),
    (b"the 1 2 3\nhouse 1 x 3", "line 2: 'x' is not a finite number"),
    (b"the 1 2 nan", "line 1: 'nan' is not a finite number"),
    (b"the 1 1e39 2", "line 1: '1e39' is not a finite number"),
    (b"the 1  3", "line 1: '' is not a finite number"),
    (b"the 1 2 3\nhou\xffse 1 2 3", "line 2: byte 4 of the line is not valid UTF-8"),
    (b"The 1 2 3\nunheard 1 2 3", "has no vector of a token of the vocabulary"),
    (b"3 3\nthe 1 2 3\nhouse 1 2 3", "has 2 vectors, but its first line says 3: copy it again"),
    (b"", "has no vector of a token of the vocabulary"),
  ],
)
def test_each_mistake_is_one_sentence(tokenizer, tmp_path, content, message):
  file = tmp_path / "vectors.txt"
  file.write_bytes(content)
  with pytest.raises(InputError, match=f"^{re.escape(str(file))}[, ].*{re.escape(message)}") as caught:
    read_vectors(str(file), tokenizer, WIDTH)
  assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tokenizer, tmp_path):
  with pytest.raises(InputError, match=r"vectors\.txt does not exist: check the path"):
    read_vectors(str(tmp_path / "vectors.txt"), tokenizer, WIDTH)


@pytest.mark.parametrize("line", ["house\t1.0\t2.0", "house"])
def test_a_line_without_numbers_is_no_advice_for_a_model_of_width_0(tmp_path, line):
  (tmp_path / "vectors").write_text(f"{line}\n")
  with pytest.raises(InputError, match="line 1: expected a word and its numbers, with one space between them"):
    list(word_vectors._vector_lines(epath.Path(tmp_path / "vectors"), 3))
