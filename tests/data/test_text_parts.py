"""Parts of a text give, one after another, the pairs of the whole text."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nasty import LINES
from transformer_jax.data import text_parts
from transformer_jax.data.text import TextPairs
from transformer_jax.data.text_parts import parts_of, read_part
from transformer_jax.runtime.errors import InputError


def write(prefix, sources, targets, ending=""):
  for language, lines in (("en", sources), ("de", targets)):
    content = "".join(f"{line}\n" for line in lines).encode()
    prefix.with_name(f"{prefix.name}.{language}{ending}").write_bytes(gzip.compress(content) if ending else content)


def in_parts(which, most):
  return [[*parts_of(number, files, most)] for number, files in enumerate(TextPairs(which, "en", "de").files)]


@given(pairs=st.lists(st.tuples(LINES, LINES), min_size=1, max_size=13), most=st.integers(1, 15), last=st.booleans())
def test_they_are_the_text(tmp_path_factory, pairs, most, last):
  """Whatever the lines hold, and with or without a line feed at the end; every second pair comes twice."""
  prefix = tmp_path_factory.getbasetemp() / "text"
  write(prefix, *zip(*pairs, strict=True))
  source = prefix.with_name("text.en")
  if last and pairs[-1][0]:
    source.write_bytes(source.read_bytes()[:-1])
  which = f"{prefix};{prefix}*1.5"
  parts = in_parts(which, most)
  assert [len(of_corpus) for of_corpus in parts] == [-(-len(pairs) // most)] * 2
  assert [pair for of_corpus in parts for part in of_corpus for pair in read_part(part)] == [
    *TextPairs(which, "en", "de")
  ]


def test_a_mark_at_a_text_s_start_is_dropped_and_kept_elsewhere(tmp_path):
  write(tmp_path / "text", ["\ufeffa", "\ufeffb"], ["c", "d"])
  [parts] = in_parts(str(tmp_path / "text"), 1)
  assert [[*read_part(part)] for part in parts] == [[("a", "c")], [("\ufeffb", "d")]]


def test_compressed_files_are_one_part(tmp_path):
  write(tmp_path / "text", ["a", "b"], ["c", "d"], ending=".gz")
  [[part]] = in_parts(str(tmp_path / "text"), 1)
  assert [*read_part(part)] == [("a", "c"), ("b", "d")]


def test_what_is_wrong_is_told_as_of_the_whole_text(tmp_path):
  prefix = tmp_path / "text"
  write(prefix, ["a", "b", "c"], ["d", "e"])
  with pytest.raises(InputError, match=r"text\.en has 3 lines but .*text\.de has 2: line i of"):
    in_parts(str(prefix), 2)
  write(prefix, [], [])
  with pytest.raises(InputError, match=r"are empty: expected one sentence per line"):
    in_parts(str(prefix), 2)
  write(prefix, ["a", "b", "c"], ["d", "e", "f"])
  (tmp_path / "text.de").write_bytes(b"d\ne\n\xe9\n")
  with pytest.raises(InputError, match=r"text\.de, line 3: byte 1 of the line is not valid UTF-8"):
    [[*read_part(part)] for part in in_parts(str(prefix), 2)[0]]


def test_a_text_of_several_blocks_is_divided_at_its_lines(tmp_path, monkeypatch):
  monkeypatch.setattr(text_parts, "_BLOCK", 7)
  pairs = [("a" * (i % 5), "b" * (i * i % 11)) for i in range(23)]
  write(tmp_path / "text", *zip(*pairs, strict=True))
  [parts] = in_parts(str(tmp_path / "text"), 3)
  assert [[*read_part(part)] for part in parts] == [pairs[i : i + 3] for i in range(0, 23, 3)]


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_corpus_with_one_compressed_side_is_one_part(tmp_path, language):
  write(tmp_path / "text", ["a", "b", "c"], ["d", "e", "f"])
  path = tmp_path / f"text.{language}"
  path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
  path.unlink()
  [[part]] = in_parts(str(tmp_path / "text"), 1)
  assert [*read_part(part)] == [("a", "d"), ("b", "e"), ("c", "f")]
