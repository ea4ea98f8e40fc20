"""Whatever the text: it goes in and comes out as it is, or ends in one sentence."""

import contextlib
import io
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.nasty import LINES
from transformer_jax.__main__ import main
from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import packing
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.text import existing, read_lines
from transformer_jax.decoding.splitting import split
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

BOM = "\ufeff".encode()


@pytest.fixture(scope="module")
def tokenizer():
  return SentencePieceTokenizer.learn(["a horse and a dog", "ein Pferd und ein Hund"] * 3, 290)


def lines_of(content: bytes):
  return list(read_lines(io.BytesIO(content).readline, "it"))


@settings(max_examples=60)
@given(st.lists(LINES.filter(lambda line: not line.endswith("\r"))), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_lines_are_read_as_they_were_written(lines, bom, end):
  content = BOM * bom + "".join(line + end for line in lines).encode()
  if lines and lines[0].startswith("\ufeff") and not bom:
    lines = [lines[0][1:], *lines[1:]]
  assert lines_of(content) == lines
  if lines and lines[-1]:
    assert lines_of(content.removesuffix(end.encode())) == lines


@given(
  st.binary() | st.lists(st.sampled_from([b"\n", b"\r", BOM, b"\xff", b"\0", b"a", b"\xc3", b"\xa9"])).map(b"".join)
)
@example(b"\xed\xa0\x80")  # a surrogate
@example(b"\xc0\x80")  # NUL, too long
def test_bytes_are_lines_or_name_the_line_that_is_none(content):
  expected = content.removeprefix(BOM).split(b"\n")
  expected = [line.removesuffix(b"\r") for line in (expected if expected[-1] else expected[:-1])]
  found, stream = [], read_lines(io.BytesIO(content).readline, "it")
  try:
    found.extend(iter(lambda: next(stream, None), None))
  except InputError as error:
    assert str(error).startswith(f"it, line {len(found) + 1}: byte ")
    with pytest.raises(UnicodeDecodeError):
      expected[len(found)].decode()
  else:
    assert [line.encode() for line in found] == expected


@settings(max_examples=50)
@given(st.lists(st.tuples(LINES, LINES), min_size=1, max_size=20))
@example([(" ", " "), ("a", "\t"), ("a", "b")])
@example([("\ufeff\ufeffa\r\r", "b")])  # the byte order mark and the CR of CR LF are no text
def test_a_corpus_comes_out_of_packed_rows_as_it_went_in(tokenizer, pairs):
  pairs = [tuple(side.lstrip("\ufeff").rstrip("\r") for side in pair) for pair in pairs]
  with tempfile.TemporaryDirectory() as folder:
    for side, language in enumerate(("en", "de")):
      Path(folder, f"text.{language}").write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
    corpus = open_corpus(DataConfig(corpus=Corpus.TEXT), f"{folder}/text")
    counts = PairCounts()
    encoded = list(packing.encode_pairs(corpus, tokenizer, 64, counts))
  assert counts.pairs + counts.too_long + counts.empty == len(pairs)
  kept = [pair for pair in pairs if all(side.strip() and len(tokenizer.encode(side)) < 64 for side in pair)]
  assert [tuple(tokenizer.decode(side) for side in pair) for pair in encoded] == kept
  packed = [row for rows in packing.pack(encoded, 64) for row in rows]
  found = []
  for row in packed:
    for segment in range(1, int(row[packing.SOURCE_SEGMENTS].max()) + 1):
      sides = (row[side][row[side + 1] == segment] for side in (packing.SOURCE, packing.TARGET))
      found.append(tuple(tokenizer.decode(side[:-1].tolist()) for side in sides))
  assert sorted(found) == sorted(kept)
  assert all(int(np.sum(row[packing.SOURCE] == EOS)) == int(row[packing.SOURCE_SEGMENTS].max()) for row in packed)


@settings(max_examples=50)
@given(LINES, st.integers(min_value=5, max_value=20))
def test_parts_of_a_long_line_hold_all_of_it(tokenizer, line, longest):
  parts = split(line, longest, lambda part: len(tokenizer.encode(part)))
  assert "".join("".join(parts).split()) == "".join(line.split())
  assert all(len(tokenizer.encode(part)) <= longest or len(part) == 1 for part in parts)


@pytest.mark.parametrize(
  "line",
  [
    *("a" * 10**6, " " * 10**6, "a" + " " * 10**6 + "b", "word " * 200_000),
    *(". " * 500_000, ".'" * 500_000, "\U0001f600" * 250_000),
  ],
)
def test_the_work_of_splitting_grows_with_the_line_and_no_faster(line):
  """Characters that are counted, for lines of a megabyte; each part is one of 250 tokens."""
  counted = 0

  def count(part):
    nonlocal counted
    counted += len(part)
    return len(part)

  parts = split(line, 250, count)
  assert counted <= 60 * len(line) and "".join("".join(parts).split()) == "".join(line.split())


def test_a_million_empty_lines_are_a_million_lines():
  assert sum(not line for line in read_lines(io.BytesIO(b"\n" * 10**6).readline, "it")) == 10**6


ARGUMENTS = st.text(st.characters(exclude_characters="\0"), max_size=5) | st.sampled_from(
  [
    *("translate", "evaluate", "score", "plan", "average", "--workdir", "--beam-size", "--long", "--n-best", "--json"),
    *("--config", "--config.model.d_model=x", "--last", "/nowhere", "-", "--", "--=", "-1", "nan", "1e999", "\udc80"),
    *("a" * 5000, "--workdir=\udc80", "--workdir=a\nb\x1b[2J"),
  ]
)


@settings(max_examples=80)
@given(st.lists(ARGUMENTS, max_size=5))
@example(["average", "--workdir=a\nb\x1b[2J", "--last=1", "--output=x"])
def test_any_command_line_ends_in_one_sentence(argv):
  """Nothing that a terminal would obey is in it."""
  argv = [argument for argument in argv if not argument.startswith(("-h", "--h"))]
  if argv[:1] == ["plan"]:
    argv.append("--config=/nowhere")  # without a config it plans the first example
  with contextlib.redirect_stderr(io.StringIO()) as said:
    assert main(argv) in (1, 2)
  *_, last = said.getvalue().removesuffix("\n").split("\n")
  assert last.startswith("transformer-jax: error: ") and "\x1b" not in said.getvalue()


def test_a_lone_surrogate_is_one_sentence(tokenizer):
  for action in (lambda: tokenizer.encode("a\ud800"), lambda: SentencePieceTokenizer.learn(["a b c", "\udfff"], 270)):
    with pytest.raises(InputError, match="half of a surrogate pair") as caught:
      action()
    assert "\n" not in str(caught.value)


def test_a_pipe_is_not_opened_before_it_is_read(tmp_path):
  """Its writer would take the closing for the end. Opening it would wait for a writer, and there is none."""
  os.mkfifo(tmp_path / "pipe")
  found = []
  thread = threading.Thread(target=lambda: found.append(existing(tmp_path / "pipe")), daemon=True)
  thread.start()
  thread.join(timeout=20)
  assert [str(path) for path in found] == [str(tmp_path / "pipe")]
