"""`backtranslate`: the corpus, its tag, and a process that is killed at any byte."""

import json
import os
from types import SimpleNamespace

import jax
import pytest
from etils import epath

from tests.commands.lines import LINES, replaced, text
from tests.example_commands import read_with_tags
from tests.runs.test_full_disk import files_end_at
from transformer_jax import runs
from transformer_jax.commands import backtranslate
from transformer_jax.commands.workdir import require_one_direction
from transformer_jax.config import Config
from transformer_jax.data.growing_corpus import GrowingCorpus
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.decoding.translation import Translation
from transformer_jax.runtime.errors import InputError, RunError


@pytest.fixture
def flags(workdir, translator, tmp_path):
  """A command of `backtranslate`; the run's languages are en and de, so the text is English."""
  (tmp_path / "mono.txt").write_text(text(LINES))
  return ["backtranslate", "--workdir", workdir, "--input", tmp_path / "mono.txt", "--output", tmp_path / "out"]


def corpus_of(folder):
  return [(folder / f"out.{language}").read_bytes() for language in ("de", "en")]


@pytest.mark.parametrize("language", ["a/b", "json"])
def test_a_language_that_is_no_name_of_a_file_is_refused(tmp_path, language):
  args = SimpleNamespace(output=str(tmp_path / "out"), input=str(tmp_path / "mono.txt"))
  with pytest.raises(InputError, match=f"the run's language '{language}' cannot end the name of a file"):
    backtranslate._prefix(args, ("en", language))


@pytest.mark.long
def test_a_tagged_corpus_that_is_resumed_exactly_after_any_stop(run, flags, translator, tmp_path):
  flags += ["--tag", "<BT>", "--seed", 3, "--top-k", 40]
  status, out, said = run(*flags)
  assert (status, out) == (0, "") and any(line.startswith("6 pairs in ") for line in said)
  sources, targets = corpus_of(tmp_path)
  expected = translator.translate(LINES, sampling=SamplingOptions(top_k=40), seed=3)
  assert len(set(expected)) > 3 and expected != translator.translate(LINES)
  assert sources.decode() == text(line and f"<BT> {line}" for line in expected)
  assert targets.decode() == text(LINES)
  for source, target in ((0, 0), (7, 0), (len(sources) - 1, len(targets)), (40, 13), (len(sources), 9)):
    (tmp_path / "out.de").write_bytes(sources[:source])
    (tmp_path / "out.en").write_bytes(targets[:target])
    assert run(*flags)[0] == 0
    assert corpus_of(tmp_path) == [sources, targets]
  assert "6 pairs are there already: continuing with line 7" in run(*flags)[2]
  assert corpus_of(tmp_path) == [sources, targets]


def test_translations_that_are_empty_get_no_tag_and_are_counted(run, flags, translator, tmp_path, monkeypatch):
  def translate_lines(lines, **how):
    return ([Translation("" if number % 2 else "x", 0.0, 0.0, 1)] for number, _ in enumerate(lines))

  monkeypatch.setattr(translator, "translate_lines", translate_lines)
  status, _, said = run(*flags, "--tag", "<BT>")
  assert status == 0 and said[-1] == "3 empty translations written now: training skips such pairs and counts them"
  assert corpus_of(tmp_path)[0].decode() == "<BT> x\n\n" * 3


def test_a_search_instead_of_draws(run, flags, translator, tmp_path):
  status, _, said = run(*flags, "--beam-size", 2)
  assert status == 0 and f"the run reads en and writes de: {tmp_path / 'mono.txt'} must be in en" in said
  assert corpus_of(tmp_path)[0].decode() == text(translator.translate(LINES))
  status, _, err = run(*flags, "--beam-size", 2, "--seed", 1)
  assert status == 2 and err[0].startswith("transformer-jax: error: --seed is for random choices, but this is a search")


def test_a_corpus_of_another_origin_is_not_continued(run, flags, tmp_path):
  (tmp_path / "out.de").write_text("mine\n")
  status, _, err = run(*flags)
  assert status == 2 and "out.de exists, but was not begun by this command" in err[-1]
  (tmp_path / "out.de").unlink()
  assert run(*flags)[0] == 0
  before = corpus_of(tmp_path)
  status, _, err = run(*flags, "--seed", 5)
  assert status == 2 and "was begun with seed = 0, not 5" in err[-1]
  settings = json.loads((tmp_path / "out.json").read_text())
  for other in ({"configs": ["another"]}, {"params": "others"}):
    (tmp_path / "out.json").write_text(json.dumps(settings | other))
    status, _, err = run(*flags)
    assert status == 2 and "was begun with another run: give that one, or another --output" in err[-1]
  (tmp_path / "out.json").write_text(json.dumps(settings | {"params": "others", "steps": [7]}))
  status, _, err = run(*flags)
  assert status == 2 and f"was begun with steps = [7], not {settings['steps']}: give what it was begun with" in err[-1]
  (tmp_path / "out.json").write_text(json.dumps(settings))
  (tmp_path / "mono.txt").write_text(text(["abc", *LINES]))
  status, _, err = run(*flags)
  assert status == 2 and "line 1 of " in err[-1] and "is not that of" in err[-1]
  assert corpus_of(tmp_path) == before
  (tmp_path / "out.json").write_text("[]")
  assert run(*flags)[0] == 2


def test_the_text_is_never_written_to(run, flags, tmp_path):
  (tmp_path / "mono.txt").rename(tmp_path / "out.en")
  flags[4] = tmp_path / "out.en"
  status, _, err = run(*flags)
  assert status == 2 and "would write to the text" in err[0]
  assert (tmp_path / "out.en").read_text() == text(LINES)


@pytest.mark.parametrize("name", ["out.en.gz", "out.de.xz"])
def test_a_prefix_that_would_name_two_files_is_refused(run, flags, tmp_path, name):
  (tmp_path / name).write_bytes(b"")
  status, out, [error] = run(*flags)
  assert (status, out) == (2, "") and f"{name} exists, so config.data.train=" in error
  assert not list(tmp_path.glob("out.*[!z]"))


@pytest.mark.parametrize(
  ("more", "message"),
  [
    (["--tag", " a"], "--tag is ' a'"),
    (["--output", "gs://bucket/out"], "is in a bucket"),
    (["--output", "/nowhere/out"], "cannot be written"),
    (["--output", "new/"], "--output new/ cannot be written: give the beginning of a name"),
    (["--output", ".."], "--output .. cannot be written"),
    (["--input", "/nowhere"], "/nowhere does not exist"),
    (["--temperature", -1], "--temperature is -1.0, but must be"),
    (["--seed", -1], "--seed is -1, but must be"),
    (["--beam-size", 0], "--beam-size is 0, but must be from 1 to"),
    (["--batch-size", 0], "--batch-size is 0, but must be from 1 to"),
    (["--tag", "<B\udcffT>"], "--tag is not UTF-8"),
  ],
)
def test_flags_that_cannot_be_used(run, flags, tmp_path, more, message):
  status, _, err = run(*replaced(flags, more))
  assert status == 2 and len(err) == 1 and message in err[0] and not [*tmp_path.glob("out*")]


def test_a_window_is_on_the_disk_before_the_next_and_an_interruption_says_how_much_is(
  run, flags, translator, tmp_path, monkeypatch
):
  monkeypatch.setattr(backtranslate, "_FEWEST", 2)
  monkeypatch.setattr(backtranslate, "_SECONDS", 0.0)  # so that windows do not grow
  translate_lines, on_disk = translator.translate_lines, []

  def watched(lines):
    for number, line in enumerate(lines, 1):
      if number == 6:
        raise KeyboardInterrupt
      on_disk.append([sides.count(b"\n") for sides in corpus_of(tmp_path)])
      yield line

  with monkeypatch.context() as patched:
    patched.setattr(translator, "translate_lines", lambda lines, **how: translate_lines(watched(lines), **how))
    status, _, said = run(*flags)
  assert status == 130 and on_disk == [[count, count] for count in (0, 0, 2, 2, 4)]
  assert said[-1] == "interrupted: 4 pairs are on the disk, and the same command goes on from there"
  assert corpus_of(tmp_path)[1].decode() == text(LINES[:4])
  assert run(*flags)[0] == 0
  expected = translator.translate(LINES, sampling=SamplingOptions(), seed=0)
  assert [side.decode() for side in corpus_of(tmp_path)] == [text(expected), text(LINES)]


def test_a_window_takes_about_a_minute(monkeypatch):
  seconds_a_line = iter([0.0001, 0.0001, 0.0001, 0.0001, 0.0001, 0.0001, 0.1, 0.1, 1, 1])
  clock, sizes = [0.0], []
  monkeypatch.setattr(backtranslate, "time", SimpleNamespace(monotonic=lambda: clock[0]))
  window = backtranslate._Window(SimpleNamespace(flush=lambda: None))
  lines = window.read(iter(["line"] * 30_000))
  for seconds in seconds_a_line:
    next(lines)
    while window.has_room(0.0):
      next(lines)
    sizes.append(len(window.targets))
    clock[0] += seconds * len(window.targets)
    window.targets.clear()
  assert sizes == [256, 512, 1024, 2048, 4096, 4096, 4096, 600, 600, 256]


def test_a_full_disk_is_told_by_the_file_and_all_whole_pairs_stay(tmp_path):
  made: dict[str, object] = {"seed": 0}
  with (
    pytest.raises(RunError, match=f"cannot write {tmp_path / 'out'}.(de|en): File too large"),
    files_end_at(10_000),
    GrowingCorpus(tmp_path / "out", ("de", "en"), made) as corpus,
  ):
    for _ in range(5000):
      corpus.append("a" * 6, "b" * 4)
  with GrowingCorpus(tmp_path / "out", ("de", "en"), made) as corpus:
    corpus.skip(iter(["b" * 4] * 5000), "text")
    assert corpus.count > 1000
  assert corpus_of(tmp_path) == [b"aaaaaa\n" * corpus.count, b"bbbb\n" * corpus.count]


def test_text_from_a_pipe(run, flags, tmp_path):
  """It can be read only once."""
  read, write = os.pipe()
  os.write(write, text(LINES).encode())
  os.close(write)
  flags[4] = f"/dev/fd/{read}"
  try:
    assert run(*flags)[0] == 0
  finally:
    os.close(read)
  assert corpus_of(tmp_path)[1].decode() == text(LINES)


def test_a_bad_byte_ends_the_command_after_the_lines_before_it(run, flags, tmp_path):
  (tmp_path / "mono.txt").write_bytes(b"abc\nde\n\xff\nab\n")
  status, _, err = run(*flags)
  assert status == 2 and "mono.txt, line 3: byte 1" in err[-1]
  assert corpus_of(tmp_path)[1] == b"abc\nde\n"


def test_two_processes_do_not_write_one_corpus(tmp_path):
  made: dict[str, object] = {"seed": 0}
  with GrowingCorpus(tmp_path / "out", ("de", "en"), made) as corpus:
    corpus.append("a", "b")
    with pytest.raises(InputError, match="another process writes"), GrowingCorpus(tmp_path / "out", ("de", "en"), made):
      pass
    (tmp_path / "out.json").unlink()
    with pytest.raises(InputError, match="another process writes"), GrowingCorpus(tmp_path / "out", ("de", "en"), {}):
      pass
    assert not (tmp_path / "out.json").exists()  # not that of the process without the lock
    (tmp_path / "out.json").write_text(json.dumps(made))
  assert json.loads((tmp_path / "out.json").read_text()) == made
  assert corpus_of(tmp_path) == [b"a\n", b"b\n"]


def test_a_model_of_several_languages_is_refused(run, flags, workdir, monkeypatch, tmp_path):
  """Its lines need a tag, which would become a part of the corpus."""
  read_with_tags(monkeypatch)
  status, out, err = run(*flags)
  assert (status, out) == (2, "") and "its lines need a tag or code that the corpus must not have" in err[-1]
  assert not [*tmp_path.glob("out.*")]


@pytest.mark.parametrize("codes", [[], [">>fr<<"], [">>fr<<", ">>de<<"]])
def test_a_model_with_codes_of_several_languages_has_no_one_direction(codes):
  tokenizer = SimpleNamespace(source=SimpleNamespace(codes=codes))
  run = SimpleNamespace(config=Config(), path="there", tokenizer=tokenizer)
  if len(codes) < 2:
    require_one_direction(run, "why")
    return
  with pytest.raises(InputError, match="the run in there translates into several languages, so why"):
    require_one_direction(run, "why")


@pytest.mark.parametrize("flag", [["--beam-size", 2], ["--length-penalty", 0.5], ["--patience", 2]])
def test_each_flag_of_a_search_asks_for_one(run, flags, translator, monkeypatch, flag):
  given = []
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **how: given.append(how.get("sampling")) or iter(()))
  assert run(*flags, *flag)[0] == 0
  assert given and not any(given)


@pytest.mark.parametrize(
  ("begun", "again", "told"),
  [
    ([], ["--tag", "<BT>"], 'tag = "", not "<BT>"'),
    ([], ["--temperature", 0.5], "temperature = 1.0, not 0.5"),
    ([], ["--top-k", 3], "top_k = 0, not 3"),
    ([], ["--top-p", 0.5], "top_p = 1.0, not 0.5"),
    ([], ["--batch-size", 3], "batch_size = null, not 3"),
    (["--beam-size", 2], ["--beam-size", 1], "beam_size = 2, not 1"),
    (["--beam-size", 2], ["--beam-size", 2, "--length-penalty", 0.5], "length_penalty = 0.6, not 0.5"),
    (["--beam-size", 2], ["--beam-size", 2, "--patience", 2], "patience = 0.0, not 2.0"),
  ],
)
def test_a_corpus_is_not_continued_with_other_flags(run, flags, translator, monkeypatch, begun, again, told):
  """Nothing is translated: the corpus is begun, and has no pairs."""
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **how: iter(()))
  assert run(*flags, *begun)[0] == 0
  status, _, said = run(*flags, *again)
  assert status == 2 and f"was begun with {told}: give what it was begun with" in said[-1]


def test_a_corpus_is_not_continued_with_another_model(run, flags, translator, monkeypatch):
  """Its config, parameters and vocabulary count; its folder's name does not."""
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **how: iter(()))
  assert run(*flags)[0] == 0
  opened = runs.open

  def of_other_lengths(*args, **options):
    found = opened(*args, **options)
    found.config.decode.extra_length += 1
    return found

  for place, name, other in (
    (runs, "open", of_other_lengths),
    (translator, "params", jax.tree.map(lambda leaf: leaf + 1, translator.params)),
    (SentencePieceTokenizer, "fingerprint", lambda self: "another"),
  ):
    with monkeypatch.context() as patch:
      patch.setattr(place, name, other)
      status, _, said = run(*flags)
    assert status == 2 and "was begun with another run: give that one" in said[-1]
    assert run(*flags)[0] == 0


def test_a_corpus_is_continued_with_a_run_that_trained_on(run, flags, translator, monkeypatch):
  """More steps change its config, but no translation of the checkpoint that --step names."""
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **how: iter(()))
  assert run(*flags)[0] == 0
  opened = runs.open

  def with_more_steps(*args, **options):
    found = opened(*args, **options)
    found.config.train.steps += 1000
    found.config.evaluate.sentences += 1
    found.config.decode.beam_size += 1  # draws have no beam
    return found

  monkeypatch.setattr(runs, "open", with_more_steps)
  assert run(*flags)[0] == 0


def test_a_flush_outlasts_a_crash_of_the_machine(tmp_path, monkeypatch):
  synced = []
  monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_ino, os.fstat(file).st_size)))
  with GrowingCorpus(tmp_path / "out", ("de", "en"), {"seed": 0}) as corpus:
    corpus.append("abc", "de")
    corpus.flush()
    inodes = [(tmp_path / f"out.{language}").stat().st_ino for language in ("de", "en")]
    assert synced == [*zip(inodes, (4, 3), strict=True)]


def test_an_interruption_while_pairs_are_counted_says_no_number(run, flags, monkeypatch):
  def interrupted(self, targets, name):
    self.count = 3
    raise KeyboardInterrupt

  monkeypatch.setattr(GrowingCorpus, "skip", interrupted)
  status, _, said = run(*flags)
  assert status == 130 and not any("on the disk" in line for line in said)


def test_a_corpus_is_continued_in_a_folder_that_etils_takes_for_a_bucket(tmp_path, monkeypatch):
  """As /s3: its settings are read where they were written."""
  with GrowingCorpus(tmp_path / "out", ("de", "en"), {"seed": 0}):
    pass
  monkeypatch.setattr(type(epath.Path(tmp_path)), "open", lambda *_: pytest.fail("etils reads it"))
  with GrowingCorpus(tmp_path / "out", ("de", "en"), {"seed": 0}) as corpus:
    assert corpus.count == 0
