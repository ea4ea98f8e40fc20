"""`prepare` before its pipeline begins; tests/beam has the rest."""

import os
import sys
from pathlib import Path

import pytest
from etils import epath

from tests import prepared_folder
from transformer_jax.__main__ import main
from transformer_jax.data import beam_pipeline, manifest, pipeline
from transformer_jax.runs import locks
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.runtime.process import cores


@pytest.fixture
def command(prefix, tmp_path):
  keys = ["--config.data.corpus=text", f"--config.data.train={prefix}", "--config.model.vocab_size=290"]
  return ["prepare", *keys, f"--output={tmp_path / 'rows'}"]


def test_without_beam_it_says_what_to_install(command, tmp_path, monkeypatch, capfd):
  monkeypatch.setitem(sys.modules, "apache_beam", None)
  assert main(command) == 2
  assert "error: prepare needs Apache Beam: pip install -e '.[beam]' in a checkout" in capfd.readouterr().err
  assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--output="], "--output is empty: give it a name, or leave it out"),
    (["--part=0"], "--part is 0, but must be positive"),
    (["--workers=0"], "--workers is 0, but must be positive"),
    (["--workers=2", "--runner=DataflowRunner"], "--workers is 2, but must be left out with --runner"),
    (["--beam-options=--region=x"], "--beam-options is --region=x, but must be left out without --runner"),
    (["--runner=R", "--beam-options='"], '--beam-options is "\'", but must be flags: No closing quotation'),
    (["--config.data.corpus=numbers"], "prepare reads sentence pairs from files: set config.data.corpus to text"),
    (["--config=gpt", "--config.data.corpus=text"], "prepare reads sentence pairs from files"),
    (["--config.data.bpe_dropout=0.1"], "config.data.bpe_dropout is not used by prepare, which packs each pair once"),
    (
      ["--config.data.pieces=unigram", "--config.data.unigram_alpha=0.5"],
      "config.data.unigram_alpha is not used by prepare",
    ),
    (["--config.data.shard_pairs=5"], "config.data.shard_pairs is not used by prepare"),
    (["--config.train.init_from=runs/a"], "config.train.init_from is not used by prepare: leave it out"),
    (["--config.data.tags"], "config.data.tags is not used by prepare, which packs each pair once: leave it out"),
  ],
)
def test_mistakes_are_one_sentence(command, tmp_path, capfd, flags, message):
  assert main([*command, *flags]) == 2
  assert f"transformer-jax: error: {message}" in capfd.readouterr().err
  assert not (tmp_path / "rows").exists()


def test_a_folder_must_be_named(command, capfd):
  assert main(command[:-1]) == 2
  assert "--output is missing: it names the new folder, which training will read\n" in capfd.readouterr().err


def test_a_pipe_is_refused_as_it_is_read_twice(command, tmp_path, capfd):
  os.mkfifo(tmp_path / "pipe.en")
  os.mkfifo(tmp_path / "pipe.de")
  assert main([*command, f"--config.data.train={tmp_path / 'pipe'}"]) == 2
  assert "pipe.en is a pipe, whose text can be read only once: write it to a file" in capfd.readouterr().err
  assert not (tmp_path / "rows").exists()


def test_duplicates_are_not_what_a_weight_repeats(command, prefix, tmp_path, capfd):
  assert main([*command, f"--config.data.train={prefix}*2", "--duplicates=pairs"]) == 2
  assert "--duplicates is pairs, but must be left out with weights in config.data.train" in capfd.readouterr().err
  assert not (tmp_path / "rows").exists()


def test_two_processes_do_not_prepare_one_folder(command, tmp_path, capfd, monkeypatch):
  """The second one would take the files of the first for those of a killed process, and delete them."""
  monkeypatch.setattr(beam_pipeline, "require_beam", lambda: None)
  monkeypatch.setattr(pipeline, "learn_tokenizer", lambda *_, **__: pytest.fail("a vocabulary is learned"))
  (tmp_path / "other").mkdir()
  (tmp_path / "other" / "notes").touch()
  assert main([*command, "--output", str(tmp_path / "other")]) == 2  # before the text is read
  assert "notes is none of the files of a prepared text" in capfd.readouterr().err
  with locks.exclusive_lock_of_one_process(epath.Path(tmp_path / "rows"), "--output"):
    (tmp_path / "rows" / "part").write_text("half")
    assert main(command) == 2
    assert f"another process writes in {tmp_path / 'rows'}: wait for its end" in capfd.readouterr().err
    assert (tmp_path / "rows" / "part").read_text() == "half"


@pytest.mark.parametrize("change", ["longer", "deleted", None])
def test_text_that_changes_meanwhile_is_refused(command, prefix, tmp_path, capfd, monkeypatch, change):
  def run(settings, files, *rest):
    prepared_folder.run(settings, files, *rest)
    source = Path(f"{prefix}.en")
    if change == "longer":
      source.write_text("One line more.\n" + source.read_text())
    elif change == "deleted":
      source.unlink()

  monkeypatch.setattr(beam_pipeline, "require_beam", lambda: None)
  monkeypatch.setattr(beam_pipeline, "run", run)
  folder = tmp_path / "my rows"
  assert main([*command, f"--output={folder}"]) == (1 if change else 0)
  said = f"the files of config.data.train = {prefix} changed while they were read: give the command again"
  advice = f"train with it:\n  --config.data.corpus=prepared --config.data.train='{folder}'\n"
  err = capfd.readouterr().err
  assert (said in err, advice in err) == (bool(change), change is None)
  assert (folder / manifest.MANIFEST).exists() == (change is None)


def test_the_vocabulary_is_that_of_the_pairs_that_pass(command, prefix, tmp_path, monkeypatch):
  monkeypatch.setattr(beam_pipeline, "require_beam", lambda: None)
  monkeypatch.setattr(beam_pipeline, "run", prepared_folder.run)
  command = [*command, "--no-copies", "--part=40"]
  assert main(command) == 0
  for language in ("en", "de"):
    with open(f"{prefix}.{language}", "a") as file:
      file.write("xqxqxq zqzqzq\n" * 40)  # which is left out
  assert main([*command, f"--output={tmp_path / 'cleaned'}"]) == 0
  vocabularies = [(tmp_path / name / "tokenizer.model").read_bytes() for name in ("rows", "cleaned")]
  assert vocabularies[0] == vocabularies[1]
  lines = len(Path(f"{prefix}.en").read_text().splitlines())
  assert len(manifest.read(epath.Path(tmp_path / "rows")).shards) == -(-(lines - 40) // 40)


@pytest.mark.parametrize(
  ("flags", "expected"),
  [
    (["--workers=3"], (250_000, 3, "", [])),
    (["--part=7", "--runner=R", "--beam-options=--a=1 --b='c d'"], (7, cores(), "R", ["--a=1", "--b=c d"])),
  ],
)
def test_the_engine_gets_the_flags(command, monkeypatch, flags, expected):
  given = []

  def run(settings, files, lines, *engine):
    given.append((lines, *engine))
    prepared_folder.run(settings, files, lines)

  monkeypatch.setattr(beam_pipeline, "require_beam", lambda: None)
  monkeypatch.setattr(beam_pipeline, "run", run)
  assert main([*command, *flags]) == 0
  assert given == [expected]


@pytest.mark.parametrize(
  ("raised", "kind", "message"),
  [
    (
      RuntimeError("Traceback\na.errors.RunError: cannot write a [while running 'shards-7']"),
      RunError,
      "^cannot write a$",
    ),
    (RuntimeError("Traceback\na.errors.InputError: bad a [while running 'shards-7']"), InputError, "^bad a$"),
    (ValueError("lost"), RunError, "^the pipeline failed: lost; if memory was full, .* with fewer --workers$"),
    (SystemExit(2), InputError, "^Beam does not know these options: see --help$"),
  ],
)
def test_an_error_of_the_pipeline_is_that_of_its_step(raised, kind, message):
  with pytest.raises(kind, match=message), beam_pipeline._explained():
    raise raised


def test_rules_that_leave_out_everything_are_told_of(command, tmp_path, monkeypatch, capfd):
  monkeypatch.setattr(beam_pipeline, "require_beam", lambda: None)
  assert main([*command, "--min-length=999"]) == 2
  err = capfd.readouterr().err
  assert "no sentence pair is left to learn a vocabulary from: " in err and "left out: fewer than 999 words;" in err
  assert not (tmp_path / "rows").exists()


def test_a_pipeline_on_a_cluster_is_not_told_to_take_a_flag_that_is_refused_there():
  with pytest.raises(RunError, match=r"give the command again with a smaller --part$"), beam_pipeline._explained("R"):
    raise ValueError("lost")
