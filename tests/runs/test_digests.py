"""The digests of a run folder's small files: damage is seen, an edit can be accepted, a kill is neither."""

import dataclasses
import hashlib
import json
import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from etils import epath

from tests.example_commands import command_line, make_run
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.config import Config, DecodeConfig
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import ModelConfig
from transformer_jax.runs import digests, resume, run_folder
from transformer_jax.runtime import files
from transformer_jax.runtime.errors import InputError
from transformer_jax.trainer import loop

SMALL = ("tokenizer.model", "provenance.json", "config.json")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
  return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def workdir(original, tmp_path):
  return Path(shutil.copytree(original, tmp_path / "run"))


@pytest.fixture
def impatient(monkeypatch):
  """Nobody trains in the folder, so that there is nothing to wait for."""
  monkeypatch.setattr(digests, "_SECONDS_BETWEEN_LOOKS", ())


def flipped(content: bytes, generator: random.Random) -> bytes:
  changed = bytearray(content)
  changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
  return bytes(changed)


def edit(workdir: Path, **decode) -> None:
  values = json.loads((workdir / "config.json").read_text())
  values["decode"] |= decode
  (workdir / "config.json").write_text(json.dumps(values, indent=2))


def test_they_are_those_that_sha256sum_computes(workdir):
  expected = [f"{hashlib.sha256((workdir / name).read_bytes()).hexdigest()}  {name}" for name in SMALL]
  assert (workdir / "SHA256SUMS").read_text().splitlines() == expected
  subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=workdir, check=True, capture_output=True)


@pytest.mark.parametrize("name", ["tokenizer.model", "config.json"])
def test_no_flipped_bit_is_read_over(workdir, impatient, name):
  generator, content = random.Random(0), (workdir / name).read_bytes()
  for _ in range(100):
    (workdir / name).write_bytes(flipped(content, generator))
    with pytest.raises(InputError, match=rf"{name} is not the file whose digest is in SHA256SUMS: .*--accept-edits"):
      runs.open(workdir).model()
  (workdir / name).write_bytes(content)
  assert runs.open(workdir).model().step == 0


def test_a_flipped_bit_of_the_provenance_is_not_read_over(workdir, impatient):
  path = workdir / "provenance.json"
  path.write_bytes(flipped(path.read_bytes(), random.Random(0)))
  with pytest.raises(InputError, match=r"provenance\.json is not the file whose digest is in SHA256SUMS"):
    _ = runs.open(workdir).provenance


def test_damaged_digests_do_not_cost_the_run(workdir, impatient):
  generator, content, refused = random.Random(0), (workdir / "SHA256SUMS").read_bytes(), 0
  for damaged in [b"", b"\n", b"\xff", content[:70], *(flipped(content, generator) for _ in range(60))]:
    (workdir / "SHA256SUMS").write_bytes(damaged)
    folder = epath.Path(workdir)
    try:
      run = runs.open(folder)
      _ = run.tokenizer, run.provenance
    except InputError as error:
      assert "SHA256SUMS" in str(error) and "give --accept-edits" in str(error) and "\n" not in str(error)
      refused += 1
    run = runs.open(folder, accept_edits=True)
    _ = run.tokenizer, run.provenance
  assert refused > 60  # but for a lost line feed at the end


def test_older_folders_have_none(workdir):
  (workdir / "SHA256SUMS").unlink()
  edit(workdir, beam_size=3)
  assert runs.open(workdir).model().config.decode.beam_size == 3


@pytest.mark.long
def test_an_edit_is_accepted_when_it_is_said(workdir, tmp_path, monkeypatch, capfdbinary, impatient):
  edit(workdir, beam_size=3)
  run = command_line(monkeypatch, capfdbinary, tmp_path)
  (tmp_path / "text").write_text("abc\nde\n")
  commands = [
    ["translate"],
    ["evaluate", "--report", "--source", tmp_path / "text", "--reference", tmp_path / "text"],
    ["average", "--last", "1", "--output", tmp_path / "average"],
  ]
  for command in commands:
    status, out, errors = run(*command, "--workdir", workdir, stdin=b"abc\n")
    assert (status, out, len(errors)) == (2, "", 1)
    assert f"{workdir}/config.json is not the file whose digest is in SHA256SUMS: it was damaged, or edi" in errors[0]
    if command != ["translate"]:  # which loads the run as `evaluate` does
      assert run(*command, "--workdir", workdir, "--accept-edits")[0] == 0
  with pytest.raises(InputError, match="accept_edits=True"):
    Translator.load(workdir)
  assert Translator.load(runs.open(workdir, accept_edits=True)).config.decode.beam_size == 3
  assert Translator.load(tmp_path / "average").config.decode.beam_size == 3


def test_training_goes_on_with_an_edit_when_it_is_said(workdir, monkeypatch, impatient):
  folder = epath.Path(workdir)
  config = runs.open(folder).config
  edit(workdir, beam_size=3)
  with pytest.raises(InputError, match=r"config\.json is not the file whose digest is in SHA256SUMS"):
    resume.run_to_go_on_with(folder, config)
  assert resume.run_to_go_on_with(folder, config, accept_edits=True)
  told = []
  monkeypatch.setattr(loop, "train", lambda *_, accept_edits: told.append(accept_edits))
  assert main(["train", f"--workdir={workdir}"]) == 2
  assert main(["train", f"--workdir={workdir}", "--accept-edits"]) == 0
  assert told == [True]
  run_folder.begin_run(folder, config, runs.open(folder, accept_edits=True).tokenizer, [])
  assert runs.open(folder).config == config


def two_configs() -> tuple[Config, Config]:
  config = Config(model=ModelConfig(vocab_size=265), decode=DecodeConfig(beam_size=2))
  return config, dataclasses.replace(config, decode=DecodeConfig(beam_size=3))


@pytest.mark.parametrize("written", range(5))
def test_a_kill_between_the_writes_is_no_damage(tmp_path, monkeypatch, impatient, written):
  class Killed(BaseException):
    pass

  count, (old, new), tokenizer = 0, two_configs(), SentencePieceTokenizer.learn(["abc ab"] * 5, 265)

  def killed(path, content):
    nonlocal count
    if count == written:
      raise Killed
    count += 1
    files.write_atomically(path, content)

  folder = epath.Path(tmp_path)
  run_folder.begin_run(folder, old, tokenizer, [{"data": "1"}])
  with monkeypatch.context() as patch, pytest.raises(Killed):
    patch.setattr(digests, "write_atomically", killed)
    run_folder.begin_run(folder, new, tokenizer, [{"data": "1"}, {"data": "2"}])
  assert runs.open(folder).config == (new if written == 4 else old)
  assert len(runs.open(folder).provenance) == (2 if written > 2 else 1)
  assert runs.open(folder).tokenizer.fingerprint() == tokenizer.fingerprint()
  run_folder.begin_run(folder, new, tokenizer, [{"data": "1"}, {"data": "2"}])
  assert runs.open(folder).config == new
  assert len((tmp_path / "SHA256SUMS").read_text().splitlines()) == 3


def test_who_reads_while_files_are_replaced_sees_no_damage(tmp_path):
  folder, configs, tokenizer = epath.Path(tmp_path), two_configs(), SentencePieceTokenizer.learn(["abc ab"] * 5, 265)
  run_folder.begin_run(folder, configs[0], tokenizer, [])
  ended = threading.Event()

  def replace() -> None:
    for number in range(10**9):
      if ended.is_set():
        return
      run_folder.begin_run(folder, configs[number % 2], tokenizer, [{"data": str(number)}])
      ended.wait(0.01)

  writer = threading.Thread(target=replace)
  writer.start()
  try:
    seen = [runs.open(folder).config.decode.beam_size for _ in range(300)]
  finally:
    ended.set()
    writer.join()
  assert set(seen) == {2, 3}
