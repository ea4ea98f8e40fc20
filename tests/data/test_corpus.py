"""Text files as sentence pairs."""

import dataclasses
import gzip
import io
import lzma
import re

import pytest
from etils import epath

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import corpus as corpora
from transformer_jax.data import xz
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.text import read_lines, repeated
from transformer_jax.runtime.errors import InputError

TEXT = DataConfig(corpus=Corpus.TEXT)
PAIRS = [("a b", "x"), ("", "y"), ("c\u2028d\x0b\x85\0 ", " ü\r z\t")]


@pytest.fixture
def write(tmp_path):
  """Writes both sides of a corpus, the ends of the names given; returns the prefix."""

  def write(source: bytes, target: bytes, prefix="corpus", endings=("", "")):
    openers = {"": open, ".gz": gzip.open, ".xz": lzma.open}
    for side, ending, content in zip(("en", "de"), endings, (source, target), strict=True):
      with openers[ending](tmp_path / f"{prefix}.{side}{ending}", "wb") as file:
        file.write(content)
    return str(tmp_path / prefix)

  return write


def sides(pairs, end="\n"):
  return tuple("".join(side + end for side in column).encode() for column in zip(*pairs, strict=True))


def read(which, data=TEXT):
  return list(open_corpus(data, which))


@pytest.mark.parametrize("endings", [("", ""), (".gz", ".xz")])
def test_reads_the_pairs_of_a_prefix_again_and_again(write, endings):
  corpus = open_corpus(TEXT, write(*sides(PAIRS), endings=endings))
  assert list(corpus) == PAIRS
  assert list(corpus) == PAIRS


def test_two_named_files_and_the_other_direction(write):
  prefix = write(*sides(PAIRS))
  swapped = [(target, source) for source, target in PAIRS]
  assert read(f"{prefix}.de, {prefix}.en") == swapped
  assert read(prefix, DataConfig(corpus=Corpus.TEXT, source_language="de", target_language="en")) == swapped


def test_line_ends_byte_order_mark_and_last_line(write):
  source = b"\xef\xbb\xbfone\r\ntwo\r\r\n\xef\xbb\xbfthree"
  assert read(write(source, b"1\n2\n3\n")) == [("one", "1"), ("two\r", "2"), ("\ufeffthree", "3")]


def test_several_corpora_with_weights(write):
  pairs = [(f"s{i}", f"t{i}") for i in range(3001)]
  one = write(*sides(PAIRS), prefix="one")
  two = write(*sides(pairs), prefix="two")
  got = read(f"{one}*2; {two}*1.3 ")
  assert got[: 2 * len(PAIRS)] == [pair for pair in PAIRS for _ in range(2)]
  counts = [got.count(pair) for pair in pairs[:500]]
  assert set(counts) == {1, 2}
  assert len(got) - 2 * len(PAIRS) == pytest.approx(1.3 * len(pairs), rel=0.02)
  assert read(f"{one}*2;{two}*1.3") == got


def test_a_weight_below_one_takes_a_part_and_a_whole_weight_no_more():
  numbers = [(str(i), "") for i in range(5003)]
  assert len(list(repeated(numbers, 0.25))) == pytest.approx(0.25 * len(numbers), rel=0.1)
  assert len(list(repeated(numbers, 3.0))) == 3 * len(numbers)


def test_the_fingerprint_is_that_of_content_weight_and_direction(write):
  one, same = write(*sides(PAIRS), prefix="one"), write(*sides(PAIRS), prefix="same")
  other = write(*sides([*PAIRS[:2], ("c", "z")]), prefix="other")
  whiches = [one, other, f"{one}*2", f"{one}.de,{one}.en", f"{one};{one}", f"{one};{other}", f"{other};{one}"]
  prints = [open_corpus(TEXT, which).fingerprint() for which in whiches]
  assert len(set(prints)) == len(prints)
  assert open_corpus(TEXT, same).fingerprint() == prints[0]
  assert re.fullmatch("[0-9a-f]{32}", prints[0])


def complaint(which, *parts):
  with pytest.raises(InputError) as caught:
    read(which)
  message = str(caught.value)
  assert "\n" not in message
  for part in parts:
    assert part in message


@pytest.mark.parametrize("lines", [(3, 5), (5, 3), (0, 3)])
def test_unequal_numbers_of_lines(write, lines):
  prefix = write(*(b"a\n" * n for n in lines))
  complaint(prefix, f"{prefix}.en has {lines[0]} lines", f"{prefix}.de has {lines[1]}:")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty(write, content):
  prefix = write(content, content)
  complaint(prefix, f"{prefix}.en", "empty")


def test_invalid_utf8_names_the_line_after_yielding_the_earlier_ones(write):
  prefix = write(b"a\nb\nc\xff\nd\n", b"1\n2\n3\n4\n")
  complaint(prefix, f"{prefix}.en, line 3:", "byte 2")
  lines = read_lines(io.BytesIO(b"a\nb\n\xc3").readline, "standard input")
  assert [next(lines), next(lines)] == ["a", "b"]
  with pytest.raises(InputError, match="standard input, line 3"):
    next(lines)


@pytest.mark.parametrize("ending", [".gz", ".xz"])
@pytest.mark.parametrize(
  "damage", [lambda data: data[:-9], lambda data: b"plain text", lambda data: data[:30] + b"?" * 9]
)
def test_damaged_archives(write, tmp_path, ending, damage):
  prefix = write(*sides([(str(i), "x") for i in range(999)]), endings=(ending, ""))
  path = tmp_path / f"corpus.en{ending}"
  path.write_bytes(damage(path.read_bytes()))
  complaint(prefix, f"cannot read {path}")


XZ = lzma.compress(b"one\ntwo\n"), lzma.compress(b"three\n")


@pytest.mark.parametrize("chunk", [7, 1 << 16])
@pytest.mark.parametrize(
  ("content", "text"),
  [
    (XZ[0] + XZ[1], b"one\ntwo\nthree\n"),
    (XZ[0] + bytes(4) + XZ[1] + bytes(8), b"one\ntwo\nthree\n"),
    (lzma.compress(b"") + XZ[1], b"three\n"),
    (lzma.compress(b"one\n", lzma.FORMAT_ALONE), b"one\n"),
    (lzma.compress(b"%09d\n" * 20_000 % tuple(range(20_000))), b"%09d\n" * 20_000 % tuple(range(20_000))),
  ],
)
def test_xz_files_of_several_streams(write, tmp_path, monkeypatch, content, text, chunk):
  """As `xz --decompress` reads them; its format allows zero bytes between streams and behind them."""
  monkeypatch.setattr(xz, "_CHUNK", chunk)
  (tmp_path / "corpus.en.xz").write_bytes(content)
  (tmp_path / "corpus.de").write_bytes(text)
  assert [source for source, target in read(str(tmp_path / "corpus")) if source == target] == text.decode().split()


# Without a time, as all processes of a test run must find tests of the same names.
@pytest.mark.parametrize(
  "rest",
  [
    b"three\n",
    gzip.compress(b"three\n", mtime=0),
    XZ[1][:-3],
    *(XZ[1][:i] + b"?" + XZ[1][i + 1 :] for i in (3, 8, 30)),
  ],
)
def test_a_damaged_later_stream_of_an_xz_file_is_not_its_end(tmp_path, rest):
  """`lzma.open` would end there without an error, on both sides of a corpus after equally many lines."""
  for language in ("en", "de"):
    (tmp_path / f"corpus.{language}.xz").write_bytes(XZ[0] + rest)
  complaint(str(tmp_path / "corpus"), f"cannot read {tmp_path / 'corpus.en.xz'}", "check that the file is whole")


def test_missing_ambiguous_and_unreadable_files(write, tmp_path):
  prefix = write(*sides(PAIRS))
  complaint(str(tmp_path / "none"), f"{tmp_path / 'none'}.en does not exist", "none.en.gz", "none.en.xz")
  complaint(f"{prefix}.en,{prefix}.fr", f"{prefix}.fr does not exist")
  complaint(
    f"{prefix}.de", f"{prefix}.de is one file, but a corpus has two: give {prefix}, which stands for {prefix}.en and"
  )
  complaint(f"{prefix}.en,{tmp_path}", f"{tmp_path} is a folder: give a file")
  write(*sides(PAIRS), endings=(".gz", ""))
  complaint(prefix, f"{prefix}.en and {prefix}.en.gz both exist")


def test_a_bucket_without_its_library(monkeypatch):
  def missing(self):
    raise ImportError("no gcsfs")

  monkeypatch.setattr(type(epath.Path("gs://bucket/x.en")), "is_file", missing)
  monkeypatch.setattr(type(epath.Path("gs://bucket/x.en")), "exists", missing)
  with pytest.raises(InputError, match=r"cannot read gs://bucket/x\.en.*: for gs:// install etils\[epath-gcs\]"):
    read("gs://bucket/x")


def test_a_bucket_that_cannot_be_read_without_a_login(monkeypatch):
  """Its library has errors of its own."""

  def refused(self):
    raise Exception("Anonymous caller does not have storage.objects.get access\nmore")

  monkeypatch.setattr(type(epath.Path("gs://bucket/x.en")), "is_file", refused)
  monkeypatch.setattr(type(epath.Path("gs://bucket/x.en")), "exists", refused)
  expected = r"cannot read gs://bucket/x\.en.*: Anonymous caller does not .* access; log in, or use a local path$"
  with pytest.raises(InputError, match=expected):
    read("gs://bucket/x")


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "two", ""])
def test_bad_weights(write, weight):
  complaint(f"{write(*sides(PAIRS))}*{weight}", f"the weight {weight!r}")


@pytest.mark.parametrize(
  ("which", "message"),
  [
    *[(which, "has an empty name") for which in ("", " ")],
    *[(which, "SOURCE,TARGET") for which in ("a;", "a,b,c", "a,", "*2")],
  ],
)
def test_what_names_no_corpus(which, message, write, tmp_path, monkeypatch):
  write(*sides(PAIRS), prefix="a")
  monkeypatch.chdir(tmp_path)
  with pytest.raises(InputError, match=message):
    read(which)


def test_a_registered_function_is_a_corpus(monkeypatch):
  monkeypatch.setattr(corpora, "_REGISTERED", {})
  asked = []

  def read_pairs(data, which):
    asked.append((data.source_language, which))
    yield from [("a\nb", "x\ny"), (data.target_language, which)]

  corpora.register("own", read_pairs)
  corpora.register("own", read_pairs)  # as a module that is imported twice does
  data = DataConfig(corpus=Corpus.REGISTERED, dataset="own", source_language="ko")
  corpus = open_corpus(data, "train")
  assert list(corpus) == list(corpus) == [("a b", "x y"), (data.target_language, "train")]
  assert set(asked) == {("ko", "train")}
  assert corpus.fingerprint() == open_corpus(data, "train").fingerprint() != open_corpus(data, "test").fingerprint()
  other_source = dataclasses.replace(data, target_language="cs")
  assert open_corpus(other_source, "train").fingerprint() != corpus.fingerprint()
  with pytest.raises(InputError, match="there is another corpus 'own': choose another name"):
    corpora.register("own", lambda data, which: [])

  class Reader:
    def read_pairs(self, data, which):
      return [("a", "b")]

  reader = Reader()
  corpora.register("of a reader", reader.read_pairs)
  corpora.register("of a reader", reader.read_pairs)  # a method is another object each time
  with pytest.raises(InputError, match="there is another corpus 'of a reader'"):
    corpora.register("of a reader", Reader().read_pairs)

  def made(pair):
    def of_a_pair(data, which):
      return [pair]

    return of_a_pair

  corpora.register("made", made(("a", "b")))
  with pytest.raises(InputError, match="there is another corpus 'made'"):
    corpora.register("made", made(("a", "c")))

  def defined(data, which):
    return [("a", "b")]

  corpora.register("again", defined)

  def defined(data, which):
    return [("a", "c")]

  corpora.register("again", defined)
  assert read("dev", DataConfig(corpus=Corpus.REGISTERED, dataset="again")) == [("a", "c")]


def test_what_a_registered_corpus_gets_wrong_is_said(monkeypatch):
  def of_a_network(data, which):
    yield "a", "b"
    raise ConnectionError("the server is away")

  monkeypatch.setattr(corpora, "_REGISTERED", {})
  corpora.register("far", of_a_network)
  with pytest.raises(
    InputError, match=r"^cannot read 'dev' of the corpus 'far': the server is away; mend that, and give the "
  ):
    read("dev", DataConfig(corpus=Corpus.REGISTERED, dataset="far"))
  corpora.register("half", lambda data, which: [("a", "b"), ("a", "b\ud800")])
  with pytest.raises(InputError, match=r"of the corpus 'half', pair 2: a sentence has half of a surrogate pair"):
    read("dev", DataConfig(corpus=Corpus.REGISTERED, dataset="half"))
  corpora.register("own", lambda data, which: [("a", "b"), ("a", "b", "c")])
  with pytest.raises(InputError, match=r"'dev' of the corpus 'own', pair 2: \('a', 'b', 'c'\) is no pair of two texts"):
    read("dev", DataConfig(corpus=Corpus.REGISTERED, dataset="own"))
  with pytest.raises(
    InputError, match=r"config\.data\.dataset is 'other', which is no .* corpus; there are far, half, own"
  ):
    read("dev", DataConfig(corpus=Corpus.REGISTERED, dataset="other"))
  with pytest.raises(InputError, match=r"config\.data\.dataset is '', but must be the name of a dataset"):
    DataConfig(corpus=Corpus.REGISTERED)


def test_an_address_of_another_kind_is_one_sentence():
  complaint(
    "https://host/x",
    "https://host/x is neither a path on this machine nor one in a bucket, such as gs://BUCKET/NAME: give one of these",
  )


def test_a_file_that_cannot_be_looked_at_is_not_called_missing(tmp_path):
  (tmp_path / "x.en").symlink_to(tmp_path / "x.en")
  for which in (f"{tmp_path}/x", f"{tmp_path}/x.en,{tmp_path}/x.en"):
    complaint(which, f"cannot read {tmp_path}/x.en: Too many levels of symbolic links")


def test_a_file_whose_name_has_no_room_for_an_ending_is_read(tmp_path):
  """NAME.gz would be too long for the file system."""
  for language in ("en", "de"):
    (tmp_path / f"{'x' * 251}.{language}").write_text(f"{language}\n")
  assert read(f"{tmp_path}/{'x' * 251}") == [("en", "de")]
