"""`clean`: what is written, what is reported, and how it ends."""

import os
import pathlib
import signal

import pytest

from tests.commands.lines import replaced
from transformer_jax.__main__ import main
from transformer_jax.data import clean_files

PAIRS = [
  ("a house", "ein Haus"),
  ("", "leer"),
  ("a house", "ein Haus"),  # a duplicate
  ("same\ttext", "SAME  text"),
  ("one", "eins zwei drei vier"),
  ("a house", "das Haus"),
  ("last \u2028 \r line", "letzte\rZeile"),
]


@pytest.fixture
def corpus(tmp_path):
  for side, language in enumerate(("en", "de")):
    (tmp_path / f"in.{language}").write_text("".join(f"{pair[side]}\n" for pair in PAIRS), newline="\n")
  return ["clean", "--data", str(tmp_path / "in"), "--output", str(tmp_path / "out")]


def lines(path):
  return path.read_bytes().decode().split("\n")[:-1]


def written(tmp_path):
  return [*zip(lines(tmp_path / "out.en"), lines(tmp_path / "out.de"), strict=True)]


def test_duplicates_that_are_not_there_are_counted_too(tmp_path, capfd):
  for language in ("en", "de"):
    (tmp_path / f"in.{language}").write_text("a\nb\n")
  argv = ["clean", "--data", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--duplicates", "sources"]
  assert main(argv) == 0
  assert capfd.readouterr().err.splitlines()[1:] == [
    "  0 left out: an empty side",
    "  0 left out: the source occurred before",
  ]


def test_what_is_kept_and_what_is_left_out(corpus, tmp_path, capfd):
  left_out = tmp_path / "left.tsv"
  flags = ["--no-copies", "--max-ratio", "3", "--duplicates", "pairs", "--left-out", str(left_out)]
  assert main([*corpus, *flags]) == 0
  assert written(tmp_path) == [PAIRS[0], PAIRS[5], PAIRS[6]]
  assert capfd.readouterr().err.splitlines() == [
    "kept 3 of 7 pairs (42.9%)",
    "  1 left out: an empty side",
    "  1 left out: one side at least 3 times as long as the other",
    "  1 left out: both sides equal",
    "  1 left out: the pair occurred before",
  ]
  assert [line.split("\t") for line in lines(left_out)] == [
    ["2", "an empty side", "", "leer"],
    ["4", "both sides equal", "same text", "SAME  text"],
    ["5", "one side at least 3 times as long as the other", *PAIRS[4]],
    ["3", "the pair occurred before", *PAIRS[2]],
  ]
  assert {path.name for path in tmp_path.iterdir()} == {"in.en", "in.de", "out.en", "out.de", "left.tsv"}


@pytest.mark.parametrize(("which", "kept"), [("sources", [0, 3, 4, 6]), ("targets", [0, 3, 4, 5, 6])])
def test_duplicates_of_one_side(corpus, tmp_path, which, kept):
  assert main([*corpus, "--duplicates", which]) == 0
  assert written(tmp_path) == [PAIRS[number] for number in kept]


def test_pairs_of_equal_characters_that_divide_at_another_place_are_no_duplicates(tmp_path):
  for language, text in (("en", "ab\na\n"), ("de", "c\nbc\n")):
    (tmp_path / f"in.{language}").write_text(text)
  argv = ["clean", "--data", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--duplicates", "pairs"]
  assert main(argv) == 0
  assert written(tmp_path) == [("ab", "c"), ("a", "bc")]


def test_without_flags_only_empty_pairs_are_left_out(corpus, tmp_path):
  assert main(corpus) == 0
  assert written(tmp_path) == [pair for pair in PAIRS if all(pair)]


def test_mistakes_are_one_sentence_and_leave_nothing(corpus, tmp_path, capfd, monkeypatch):
  (tmp_path / "out.de").write_text("old")
  assert main(corpus) == 2
  assert "out.de exists already" in capfd.readouterr().err and (tmp_path / "out.de").read_text() == "old"
  (tmp_path / "out.de").unlink()
  for flag in ("--output", "--left-out"):
    assert main([*corpus, flag, "gs://bucket/x"]) == 2
    assert f"{flag} gs://bucket/x" in (said := capfd.readouterr().err) and "is in a bucket" in said
  with monkeypatch.context() as patched:  # as root may write everywhere
    patched.setattr(os, "access", lambda path, mode: False)
    assert main(corpus) == 2
  assert "out.en cannot be written: choose a name in a folder that can be" in capfd.readouterr().err
  assert main([*corpus, "--left-out", str(tmp_path / "x.gz")]) == 2
  assert "x.gz is written as plain text, but would be read as compressed" in capfd.readouterr().err
  (tmp_path / "link").symlink_to(tmp_path)
  same_file = [["--left-out", str(tmp_path / folder / "out.en")] for folder in (".", "link")]
  for same in (["--languages", "en", "en"], *same_file, ["--left-out", os.path.relpath(tmp_path / "out.de")]):
    assert main([*corpus, *same]) == 2
    assert "two of the files to write have one name" in capfd.readouterr().err and not [*tmp_path.glob("out.*")]
  assert main([*corpus, "--min-length", "99"]) == 2
  assert "no pair is left, so that nothing was written" in capfd.readouterr().err
  assert main(["clean", "--data", f"{tmp_path / 'in'}*0.01", "--output", str(tmp_path / "out")]) == 2
  assert "nothing was written: the weights of --data select none\n" in capfd.readouterr().err
  (tmp_path / "out.en.xz").touch()
  assert main(corpus) == 2
  assert f"out.en.xz exists, so config.data.train={tmp_path / 'out'} could mean it" in capfd.readouterr().err
  (tmp_path / "out.en.xz").unlink()
  (tmp_path / "in.de").write_text("eins\n")
  assert main(corpus) == 2
  assert "in.de has 1: line i of" in capfd.readouterr().err
  assert {path.name for path in tmp_path.iterdir()} == {"in.en", "in.de", "link"}


def test_what_is_left_out_may_be_on_another_disk(corpus, tmp_path, tmp_path_factory, monkeypatch):
  """Files are renamed on their own disk, so that none of them is half there if one disk is full."""
  other = tmp_path_factory.mktemp("disk")

  def rename(old, new, replace=os.replace):
    assert pathlib.Path(old).parent.parent == pathlib.Path(new).parent
    replace(old, new)

  monkeypatch.setattr(os, "replace", rename)
  monkeypatch.setattr(os, "rename", rename)
  assert main([*corpus, "--left-out", str(other / "left_out.tsv")]) == 0
  [line] = lines(other / "left_out.tsv")
  assert line.startswith("2\t") and line.endswith("\t\tleer")
  assert [path.name for path in other.iterdir()] == ["left_out.tsv"] and len(written(tmp_path)) == 6


@pytest.mark.parametrize(
  ("more", "message"),
  [
    (["--script-share", "0.5"], "--script-share is 0.5, but must be left out without --scripts"),
    (["--output", "new/"], "--output new/ cannot be written: give the beginning of a name"),
    (["--output", "."], "--output . cannot be written"),
    (["--output", ""], "--output is empty"),
    (["--data", ""], "--data is empty"),
    (["--left-out", ""], "--left-out is empty"),
    (["--languages", "", "de"], "--languages is empty"),
    (["--data", "in*2", "--duplicates", "pairs"], "--duplicates is pairs, but must be left out with weights in --data"),
    (["--data", "in:en-de"], "':en-de' in --data is no direction here: leave it out, and give two languages to"),
    (["--data", "in:en+de*2"], "':en+de' in --data is no direction here"),
  ],
)
def test_flags_that_cannot_be_used(corpus, tmp_path, monkeypatch, capfd, more, message):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "new").mkdir()
  assert main(replaced(corpus, more)) == 2
  [line] = capfd.readouterr().err.splitlines()
  assert message in line and {path.name for path in tmp_path.rglob("*")} == {"in.en", "in.de", "new"}


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP])
def terminated_inside(request, monkeypatch):
  """A signal while the pairs are read; without a handler of the command's own, an error."""

  def fail(number, frame):
    raise AssertionError("the process would have ended")

  def passing(*arguments, passing=clean_files.passing):
    yield from passing(*arguments)
    os.kill(os.getpid(), request.param)

  monkeypatch.setattr(clean_files, "passing", passing)
  before = signal.signal(request.param, fail)
  yield request.param, fail
  signal.signal(request.param, before)


def test_a_signal_to_end_removes_the_temporary_folders(corpus, tmp_path, terminated_inside):
  number, handler = terminated_inside
  with pytest.raises(SystemExit) as ended:
    main([*corpus, "--left-out", str(tmp_path / "left.tsv")])
  assert ended.value.code == 128 + number and signal.getsignal(number) is handler
  assert {path.name for path in tmp_path.iterdir()} == {"in.en", "in.de"}


def test_a_long_name_is_no_hindrance_but_one_that_is_too_long(corpus, tmp_path, capfd):
  *rest, _ = corpus
  assert main([*rest, str(tmp_path / ("x" * 245))]) == 0
  assert main([*rest, str(tmp_path / ("y" * 255))]) == 2
  assert "File name too long; choose another name" in capfd.readouterr().err


def test_an_ignored_signal_is_none(corpus, tmp_path, terminated_inside):
  number, _ = terminated_inside
  signal.signal(number, signal.SIG_IGN)
  assert main(corpus) == 0 and len(written(tmp_path)) == 6
  assert signal.getsignal(number) is signal.SIG_IGN


def test_a_file_that_was_made_meanwhile_is_not_replaced(corpus, tmp_path, capfd, monkeypatch):
  def passing(*arguments, passing=clean_files.passing):
    yield from passing(*arguments)
    (tmp_path / "out.de").write_text("another's\n")

  monkeypatch.setattr(clean_files, "passing", passing)
  assert main(corpus) == 2 and "out.de was made meanwhile: choose another name" in capfd.readouterr().err
  assert {path.name for path in tmp_path.iterdir()} == {"in.en", "in.de", "out.de"} and lines(tmp_path / "out.de") == [
    "another's"
  ]
