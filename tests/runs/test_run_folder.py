"""What makes a folder that of a run, and where it may be."""

import dataclasses
import os
import re
import sys

import jax
import numpy as np
import pytest
from etils import epath

from tests.model.example import random_state
from tests.runs.test_checkpoint import CONFIG
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.config import (
  BestBy,
  Config,
  Corpus,
  DataConfig,
  EvaluateConfig,
  Optimizer,
  TrainConfig,
  serialization,
)
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.runs import checkpoint, params_file, restore, resume, run_folder
from transformer_jax.runs.checkpoint_files import LOSS
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import remove_left_behind, write_atomically, write_new
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import abstract_state


def test_checkpoints_of_a_run_without_its_config_are_not_taken_over(tmp_path):
  (tmp_path / "run" / "checkpoints").mkdir(parents=True)
  assert not resume.run_to_go_on_with(epath.Path(tmp_path / "run"), Config())
  (tmp_path / "run" / "checkpoints" / "2").mkdir()
  with pytest.raises(
    InputError, match=r"has checkpoints but no config\.json.*: copy it back, or use another --workdir"
  ):
    resume.run_to_go_on_with(epath.Path(tmp_path / "run"), Config())
  assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["checkpoints"]


def test_what_is_asked_of_new_runs_is_not_asked_of_old_ones(tmp_path):
  folder, config = epath.Path(tmp_path / "run"), Config(train=TrainConfig(seed=2**32))
  with pytest.raises(InputError, match=r"config\.train\.seed is 4294967296"):
    resume.run_to_go_on_with(folder, config)
  run_folder.begin_run(folder, config, SentencePieceTokenizer.learn(["abc ab"] * 5, 265), [])
  (folder / "checkpoints" / "2").mkdir(parents=True)
  assert resume.run_to_go_on_with(folder, config)


@pytest.mark.parametrize(
  ("section", "changes", "message"),
  [
    ("model", {"dropout": 0.0}, r"train\.r_drop is 0\.5, but must be 0 for a model without dropout, whose two passes"),
    ("data", {"validation": ""}, r"train\.best_by is .*, but must be loss without config\.data\.validation"),
    ("data", {"corpus": Corpus.TREES}, r"train\.best_by is .*, but must be loss for trees, whose BLEU is high"),
    ("evaluate", {"every": 8}, r"train\.patience is 2, but must be 0 if config\.evaluate\.every is more than config"),
    ("train", {"sampling_least": 0.25}, r"train\.sampling_least is 0\.25, but must be 0 unless"),
    (
      "train",
      {"optimizer": Optimizer.ADAMW},
      r"train\.optimizer is 'adamw', but must be adam if config\.train\.weight_",
    ),
    ("train", {"sampling_k": 380.0}, r"train\.sampling_k is 380\.0, but must be 1000, its default, without config"),
    ("train", {"accumulation": 4}, r"train\.accumulation is 4, but must be at most 3, the rows of a batch \(config"),
  ],
)
def test_a_new_run_has_no_key_without_effect(tmp_path, section, changes, message):
  train = TrainConfig(
    steps=7,
    r_drop=0.5,
    best_by=BestBy.BLEU,
    patience=2 * (section != "data"),
    accumulation=3,
    batch_tokens=3 * 128 + 127,
  )
  config = Config(train=train, evaluate=EvaluateConfig(every=7))
  assert resume.run_to_go_on_with(epath.Path(tmp_path), config) is None
  changed = dataclasses.replace(config, **{section: dataclasses.replace(getattr(config, section), **changes)})
  with pytest.raises(InputError, match=message):
    resume.run_to_go_on_with(epath.Path(tmp_path), changed)


def test_a_run_keeps_its_vocabulary(tmp_path):
  """A file that has it may have another name now."""
  folder = epath.Path(tmp_path / "run")
  config = Config(model=dataclasses.replace(Config().model, vocab_size=265))
  texts = {"same": ["abc ab"] * 5, "other": ["xyz zy"] * 5}
  for name, text in texts.items():
    (tmp_path / f"{name}.model").write_bytes(SentencePieceTokenizer.learn(text, 265).to_bytes())
  folder.mkdir()
  run_folder.begin_run(folder, config, SentencePieceTokenizer.learn(texts["same"], 265), [])
  (folder / "checkpoints" / "2").mkdir(parents=True)
  for name in ("same", "other", "missing"):
    chosen = dataclasses.replace(config, data=DataConfig(tokenizer=str(tmp_path / f"{name}.model")))
    if name == "same":
      assert resume.run_to_go_on_with(folder, chosen)
    else:
      message = {"other": "is not the vocabulary that the run in .* was begun with: leave it out"}
      with pytest.raises(InputError, match=message.get(name, "missing.model")):
        resume.run_to_go_on_with(folder, chosen)


def test_a_vocabulary_of_an_earlier_start_does_not_stay(tmp_path):
  """A start that ended before its first checkpoint binds nothing, not even the kind of the vocabulary."""
  folder, tokenizer = epath.Path(tmp_path), SentencePieceTokenizer.learn(["abc ab"] * 5, 265)
  sizes = dataclasses.replace(Config().model, vocab_size=265)
  two = dataclasses.replace(sizes, source_vocab_size=265, share_embeddings=False)
  starts = [(two, TokenizerPair(tokenizer, tokenizer)), (sizes, tokenizer), (two, TokenizerPair(tokenizer, tokenizer))]
  for model, chosen in starts:
    config = Config(model=model)
    assert resume.run_to_go_on_with(folder, config) is None
    run_folder.begin_run(folder, config, chosen, [])
    assert runs.open(folder).tokenizer.vocab_sizes == chosen.vocab_sizes
    names = {*chosen.files(), "config.json", "provenance.json", "SHA256SUMS"}
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer.model", "metrics.jsonl", "report.html"])
def test_files_of_another_program_are_not_replaced(tmp_path, name):
  (tmp_path / name).write_text('{"architectures": ["X"]}')
  with pytest.raises(InputError, match=f"has a {name} that no run has written, .*: use another --workdir"):
    resume.run_to_go_on_with(epath.Path(tmp_path), Config())
  assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_chosen_vocabulary_may_be_in_the_folder(tmp_path):
  """Also through a link; but not under the name of another kind of vocabulary, which would stay."""
  (tmp_path / "run").mkdir()
  (tmp_path / "link").symlink_to(tmp_path / "run")
  (tmp_path / "run" / "tokenizer.model").write_bytes(b"model")
  config = Config(data=DataConfig(tokenizer=str(tmp_path / "link" / "tokenizer.model")))
  assert resume.run_to_go_on_with(epath.Path(tmp_path / "run"), config) is None
  two = dataclasses.replace(Config().model, source_vocab_size=6000, share_embeddings=False)
  for name in ("source.model", "target.model"):
    (tmp_path / "run" / name).write_bytes(b"model")
  chosen = [str(tmp_path / "run" / name) for name in ("source.model", "target.model")]
  (tmp_path / "run" / "tokenizer.model").rename(tmp_path / "other")
  for order, fits in ((chosen, True), (chosen[::-1], False)):  # the run would write one over the other
    config = Config(model=two, data=DataConfig(tokenizer=",".join(order)))
    if fits:
      assert resume.run_to_go_on_with(epath.Path(tmp_path / "run"), config) is None
    else:
      with pytest.raises(InputError, match=r"has a source\.model that no run has written"):
        resume.run_to_go_on_with(epath.Path(tmp_path / "run"), config)
  (tmp_path / "run" / "target.model").unlink()
  (tmp_path / "run" / "source.model").unlink()
  (tmp_path / "other").rename(tmp_path / "run" / "tokenizer.model")
  (tmp_path / "run" / "tokenizer.model").rename(tmp_path / "run" / "source.model")
  config = Config(data=DataConfig(tokenizer=str(tmp_path / "run" / "source.model")))
  with pytest.raises(InputError, match=r"has a source\.model that no run has written"):
    resume.run_to_go_on_with(epath.Path(tmp_path / "run"), config)


def test_an_older_run_without_digests_that_failed_begins_again(tmp_path):
  folder, tokenizer = epath.Path(tmp_path), SentencePieceTokenizer.learn(["abc ab"] * 5, 265)
  config = Config(model=dataclasses.replace(Config().model, vocab_size=265))
  run_folder.begin_run(folder, config, tokenizer, [])
  for name in ("metrics.jsonl", "report.html"):  # of the start that failed
    (tmp_path / name).touch()
  assert resume.run_to_go_on_with(folder, config) is None
  (tmp_path / "SHA256SUMS").unlink()
  assert resume.run_to_go_on_with(folder, config) is None


def test_home_is_where_the_user_means_it(monkeypatch, tmp_path):
  monkeypatch.setenv("HOME", str(tmp_path))
  assert run_folder.folder_of("~/runs/x") == epath.Path(tmp_path / "runs" / "x")
  monkeypatch.setattr(run_folder, "require_reachable", lambda path: None)
  assert run_folder.folder_of("gs://bucket/~x") == epath.Path("gs://bucket/~x")


@pytest.mark.parametrize(
  "name", [".config.json.tmp", ".tokenizer.model.tmp", "tensorboard", "metrics.jsonl", "checkpoints", "deep/inside"]
)
def test_links_out_of_a_folder_without_a_checkpoint_are_refused(tmp_path, capfd, name):
  (tmp_path / "own").mkdir()
  (tmp_path / "own" / "file").write_text("mine")
  link = tmp_path / "run" / name
  link.parent.mkdir(parents=True)
  link.symlink_to(tmp_path / "own" / ("" if name in ("tensorboard", "checkpoints") else "file"))
  assert main(["train", f"--workdir={tmp_path / 'run'}", "--config.train.init_from=/nowhere"]) == 2
  assert f"{link} is a link that leads out of the run folder" in capfd.readouterr().err
  assert [path.name for path in (tmp_path / "own").iterdir()] == ["file"]
  assert (tmp_path / "own" / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["tensorboard", "checkpoints"])
def test_links_out_of_a_folder_are_refused_without_another_run_too(tmp_path, name):
  (tmp_path / "own").mkdir()
  (tmp_path / "run").mkdir()
  (tmp_path / "run" / name).symlink_to(tmp_path / "own")
  with pytest.raises(InputError, match=f"{name} is a link that leads out of the run folder"):
    resume.run_to_go_on_with(epath.Path(tmp_path / "run"), Config())


def test_temporary_files_are_no_place_for_links(tmp_path):
  (tmp_path / "run").mkdir()
  own = tmp_path / "own"
  own.write_text("mine")
  for name in (f".{os.getpid()}.tmp", ".config.json.tmp", ".tokenizer.model.tmp", ".provenance.json.tmp", ".x.tmp"):
    (tmp_path / "run" / name).symlink_to(own)
  folder = epath.Path(tmp_path / "run")
  run_folder.make_folder(folder, "--workdir")
  run_folder.begin_run(folder, Config(), SentencePieceTokenizer.learn(["abc ab"] * 5, 265), [])
  write_atomically(folder / "x", b"theirs")
  assert own.read_text() == "mine"
  assert not (tmp_path / "run" / "x").is_symlink()
  with pytest.raises(FileExistsError):
    write_new(folder / ".config.json.tmp", b"theirs")


def test_what_a_kill_left_half_written_is_deleted(tmp_path, monkeypatch):
  folder = epath.Path(tmp_path)
  with monkeypatch.context() as patch:
    patch.setattr(type(folder), "replace", lambda *_: killed())
    with pytest.raises(KeyboardInterrupt):
      write_atomically(folder / "config.json", b"half")
  assert [path.suffix for path in tmp_path.iterdir()] == [".tmp"]
  (tmp_path / "notes.tmp").write_text("mine")
  run_folder.begin_run(folder, Config(), SentencePieceTokenizer.learn(["abc ab"] * 5, 265), [])
  expected = ["SHA256SUMS", "config.json", "notes.tmp", "provenance.json", "tokenizer.model"]
  assert sorted(path.name for path in tmp_path.iterdir()) == expected


def killed():
  raise KeyboardInterrupt


# Each of the characters that a shell, a URL or a pattern gives a meaning, but for those that are refused.
ODD = "abc{d}%20%#e]f[g 'h'\"i\"$HOME~&;|:@,=+!^`(j)<k>\n\x01\xfc\u65e5 "


@pytest.fixture(scope="module")
def state():
  return random_state(CONFIG, TASK)


def saved_and_found(folder, state):
  for again in (False, True):
    checkpoints = checkpoint.Checkpoints(folder, keep=1)
    if not again:
      for step in (3, 5):
        checkpoints.save(state.replace(step=np.int32(step)), {LOSS: 1.0})
    else:
      restored = checkpoints.restore(abstract_state(CONFIG, TASK))
      assert restored is not None
      jax.tree.map(np.testing.assert_array_equal, restored.state, state.replace(step=np.int32(5)))
    checkpoints.close()
  jax.tree.map(np.testing.assert_array_equal, restore.read_params(folder, CONFIG, 5), state.params)


@pytest.mark.long
def test_a_folder_may_have_an_odd_name(state, tmp_path):
  saved_and_found(run_folder.folder_of(tmp_path / ODD / "run"), state)
  assert [path.name for path in tmp_path.iterdir()] == [ODD]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*sorted(set(ODD)), "[]", "a[", "]a", "%5b", "-a", ".a", "a" * 200])
def test_each_odd_character_may_be_in_a_name(state, tmp_path, name):
  saved_and_found(run_folder.folder_of(tmp_path / f"{name}b" / name / "run"), state)
  assert [path.name for path in tmp_path.iterdir()] == [f"{name}b"]


@pytest.mark.parametrize("name", ["a[seed=1]", "a\\b", "a[1]/run", "a*", "a?/run"])
def test_names_that_orbax_reads_as_others_are_refused(tmp_path, tmp_path_factory, capfd, monkeypatch, name):
  run = tmp_path_factory.mktemp("run")
  (run / run_folder.CONFIG).write_text(serialization.to_json(CONFIG))
  monkeypatch.chdir(tmp_path)
  assert main(["train", f"--workdir={name}", "--config.train.init_from=/nowhere"]) == 2
  assert main(["average", "--workdir", str(run), "--last", "1", "--output", name]) == 2
  assert main(["generate", "--prompt", "a", "--workdir", name]) == 2
  errors = capfd.readouterr().err.splitlines()
  assert len(errors) == 3
  for error in errors:
    assert re.search(
      r"error: the run folder .* has (\[.*\]|[\\*?]) in its path, which .*: choose a path without", error
    )
  assert not list(tmp_path.iterdir())


def test_a_bucket_that_cannot_be_asked_is_one_sentence(monkeypatch):
  def exists(path):
    raise ImportError("no library for gs://\nand more")

  monkeypatch.setattr(type(epath.Path("gs://bucket")), "exists", exists)
  with pytest.raises(InputError, match=r"cannot reach gs://bucket/run: no library for gs://; for gs:// install etils"):
    run_folder.folder_of("gs://bucket/run")


def test_a_folder_that_cannot_be_is_refused():
  """The system calls it missing, as one that another process has removed."""
  with pytest.raises(
    InputError, match=r"the run folder /proc/no-such-run cannot be written: .*; choose another --workdir"
  ):
    run_folder.make_folder(epath.Path("/proc/no-such-run"), "--workdir")


class InBucket:
  """A folder on the disk that says that it is in a bucket."""

  def __init__(self, path):
    self._path = path
    self.name, self.exists = path.name, path.exists

  def __truediv__(self, name):
    return InBucket(self._path / name)

  def __str__(self):
    return f"gs:/{self._path}"

  def iterdir(self):
    return map(InBucket, self._path.iterdir())


def test_in_a_bucket_a_checkpoint_that_was_cut_short_is_none(tmp_path):
  for step in (3, 5):
    (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
  assert run_folder.checkpoint_names(epath.Path(tmp_path)) == {"3", "5"}
  assert run_folder.checkpoint_names(InBucket(tmp_path)) == set()
  (tmp_path / "checkpoints" / "3" / "commit_success.txt").touch()
  assert run_folder.checkpoint_names(InBucket(tmp_path)) == {"3"}


def test_a_locale_that_writes_names_in_other_bytes_is_refused(monkeypatch, tmp_path):
  """The library of a checkpoint's arrays would write them into another folder."""
  monkeypatch.setattr(os, "fsencode", lambda path: os.fspath(path).encode("latin-1"))
  run_folder.folder_of("/runs/mine")
  for name in ("größe", "한국어"):  # in other bytes, and in none
    with pytest.raises(InputError, match=r"has a name that is not UTF-8.* or set PYTHONUTF8=1"):
      run_folder.folder_of(f"/runs/{name}")
  with pytest.raises(InputError, match=r"has a name that is not UTF-8.*: choose an ASCII name$"):
    run_folder.folder_of("/runs/\udcff")
  monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "euc_jp")
  with pytest.raises(InputError, match=r" or set PYTHONUTF8=1$"):  # as that reads the name
    run_folder.folder_of("/runs/gr\udcc3\udcb6sse")


def test_a_kill_while_a_folder_is_tried_leaves_nothing_for_good(monkeypatch, tmp_path):
  def killed(path, content):
    write_new(path, content)
    raise KeyboardInterrupt

  monkeypatch.setattr(run_folder, "write_new", killed)
  with pytest.raises(KeyboardInterrupt):
    run_folder.make_folder(epath.Path(tmp_path), "--workdir")
  [left] = tmp_path.iterdir()
  remove_left_behind(tmp_path)
  assert not left.exists()


def test_an_exported_models_file_is_a_part_of_its_folder(tmp_path):
  folder = epath.Path(tmp_path)
  (folder / params_file.FILE).touch()
  assert run_folder.is_part(folder, folder / params_file.FILE) and not run_folder.is_part(folder, folder / "out")


def test_folders_that_another_command_fills_stay(tmp_path):
  """An export into a run folder, which may be at work, or killed."""
  empty, full = (tmp_path / f".exported.{digit * 32}.tmp" for digit in "ab")
  (full / "checkpoints").mkdir(parents=True)
  empty.mkdir()
  remove_left_behind(tmp_path)
  assert empty.is_dir() and (full / "checkpoints").is_dir()
