"""`evaluate` and `score`: the scores of a run's translations, and of any file's."""

import dataclasses
import errno
import json
import os
import shutil
import stat
import sys
import threading
from pathlib import Path

import pytest
import sacrebleu

from tests.commands.lines import LINES, text
from transformer_jax.commands import output_file
from transformer_jax.config import Corpus
from transformer_jax.decoding.translation import Translation
from transformer_jax.evaluation import scores
from transformer_jax.evaluation.report import content_hash
from transformer_jax.evaluation.scores import score
from transformer_jax.runs import run_folder
from transformer_jax.runtime import files as runtime_files
from transformer_jax.runtime.errors import InputError


def test_evaluate_prints_scores(run, translator, workdir, files):
  expected = score(translator.translate(LINES), LINES[::-1], tokenize="char", lowercase=True)
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  argv += ["--tokenize", "char", "--lowercase", "--hypotheses", files / "out"]
  replaced = f"{files / 'out'} is there already: the translations will replace it"
  status, out, err = run(*argv, "--json")
  values = json.loads(out)
  assert status == 0 and replaced not in err
  assert values.pop("seconds") >= 0
  assert values == expected.to_dict()
  assert values["sentences"] == len(LINES)
  assert (files / "out").read_text() == text(translator.translate(LINES))
  _, out, err = run(*argv)
  assert out.startswith(str(expected)) and err[0] == replaced


@pytest.fixture
def other_scores(workdir, tmp_path):
  """The same run, but for what its config says of scores."""
  folder = Path(shutil.copytree(workdir, tmp_path / "run"))
  (folder / "SHA256SUMS").unlink()
  values = json.loads((folder / "config.json").read_text())
  (folder / "config.json").write_text(json.dumps(values | {"evaluate": {"tokenize": "char", "lowercase": True}}))
  return folder


@pytest.mark.parametrize(
  ("flags", "tokenize", "lowercase", "said"),
  [
    ([], "char", True, "config.evaluate.tokenize = char, config.evaluate.lowercase = True"),
    (["--tokenize", "none"], "none", True, "config.evaluate.lowercase = True"),
    (["--no-lowercase"], "char", False, "config.evaluate.tokenize = char"),
    (["--tokenize", "13a", "--no-lowercase"], "13a", False, None),
  ],
)
@pytest.mark.parametrize("report", [[], ["--report"]], ids=["", "report"])
def test_the_run_says_how_to_score(run, translator, other_scores, files, flags, tokenize, lowercase, said, report):
  argv = ["evaluate", "--workdir", other_scores, "--source", files / "a.en", "--reference", files / "a.de", "--json"]
  status, out, err = run(*argv, *flags, *report)
  expected = score(translator.translate(LINES), LINES[::-1], tokenize=tokenize, lowercase=lowercase)
  found = json.loads(out)
  assert status == 0
  assert (found["scores"]["bleu"]["score"] if report else found["bleu"]) == expected.bleu
  assert (found["scores"]["bleu"]["signature"] if report else found["bleu_signature"]) == expected.bleu_signature
  assert [line for line in err if "scoring" in line] == ([f"scoring as the run says: {said}"] if said else [])


def test_of_an_ensemble_the_first_run_says_how_to_score(run, translator, workdir, other_scores, files):
  argv = ["evaluate", "--source", files / "a.en", "--reference", files / "a.de", "--json"]
  for first, second, tokenize in ((other_scores, workdir, "char"), (workdir, other_scores, "13a")):
    status, _, err = run(*argv, "--workdir", first, "--workdir", second)
    [said] = [line for line in err if line.startswith("scoring as the run says")]
    assert status == 0 and f"config.evaluate.tokenize = {tokenize}, " in said


def test_translations_never_take_the_place_of_what_is_read(run, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de", "--hypotheses"]
  (files / "soft.de").symlink_to(files / "a.de")
  os.link(files / "a.en", files / "hard.en")
  (files / "other").write_text(text(LINES))
  for name in ("a.de", "../" + files.name + "/a.en", "soft.de", "hard.en", "other"):
    status, out, err = run(*argv, files / name, "--compare", files / "other")
    assert (status, out) == (2, "") and "is a file that is read: give another one" in err[0]
  assert (files / "a.de").read_text() == text(reversed(LINES))
  for name in ("config.json", "SHA256SUMS", "metrics.jsonl", "checkpoints/7/_CHECKPOINT_METADATA", "checkpoints/new"):
    status, out, err = run(*argv, Path(workdir) / name)
    assert (status, out) == (2, "") and f"is a file of the run in {workdir}: give another one" in err[0]
  (files / "folder").mkdir()
  (files / "dangling").symlink_to("/nowhere/out")
  for name in ("folder", "other/below", "long" * 75, "dangling"):
    status, out, err = run(*argv, files / name)
    assert (status, out) == (2, "") and "cannot be written: give a file" in err[0]
  for name in ("out.gz", "out.xz"):
    status, out, err = run(*argv, files / name)
    assert (status, out) == (2, "") and "would be read as compressed: name it otherwise" in err[0]


def test_translations_need_a_folder_that_may_be_written(files, monkeypatch):
  """The folder counts, as a file is replaced, and not written to."""
  asked = []
  monkeypatch.setattr(os, "access", lambda path, mode: asked.append((str(path), mode)))
  with pytest.raises(InputError, match="cannot be written: give a file in a folder that can be"):
    output_file.check_writable("--hypotheses", str(files / "other"), ())
  assert asked == [(str(files), os.W_OK)]


@pytest.mark.parametrize(("tokenize", "is_warned"), [("13a", True), ("none", False)])
def test_translations_that_look_tokenised_are_told(
  run, translator, workdir, files, caplog, monkeypatch, tokenize, is_warned
):
  """But not where words are scored as they are."""
  lines = ["a b ."] * 120  # sacreBLEU needs 101 such lines
  for name in ("source", "reference"):
    (files / name).write_text(text(lines))
  best = [[Translation(line, 0.0, 0.0, 3)] for line in lines]
  monkeypatch.setattr(translator, "translate_lines", lambda *_, **__: iter(best))
  argv = ["evaluate", "--workdir", workdir, "--source", files / "source", "--reference", files / "reference"]
  assert run(*argv, "--tokenize", tokenize)[0] == 0
  assert any("tokenized" in record.getMessage() for record in caplog.records) == is_warned


def test_translations_do_not_take_the_place_of_the_scores(files, monkeypatch):
  """Replacing standard output's file would leave the scores without a name."""
  with (files / "all").open("w") as output:
    monkeypatch.setattr(sys, "stdout", output)
    output_file.check_writable("--hypotheses", str(files / "other"), ())
    for name in (files / "all", f"/dev/fd/{output.fileno()}"):
      with pytest.raises(InputError, match="is also standard output's file: give another one"):
        output_file.check_writable("--hypotheses", str(name), ())
  monkeypatch.setattr(sys, "stdout", None)
  output_file.check_writable("--hypotheses", str(files / "all"), ())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_costs_no_scores(run, translator, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  status, out, err = run(*argv, "--hypotheses", "/dev/full")
  assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
  assert status == 1 and out.startswith("BLEU")
  assert "cannot write /dev/full: No space left on device" in err[-1]


def test_translations_that_find_no_room_leave_those_before_them(run, translator, workdir, files, monkeypatch):
  def full(path, content):
    raise OSError(errno.ENOSPC, "No space left on device")

  (files / "out").write_text("those before\n")
  (files / "link").symlink_to(files / "out")
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  argv += ["--hypotheses", files / "link"]
  with monkeypatch.context() as patch:
    patch.setattr(runtime_files, "write_new", full)
    status, out, err = run(*argv)
  assert status == 1 and out.startswith("BLEU") and "what was saved before is untouched" in err[-1]
  assert (files / "out").read_text() == "those before\n"
  assert run(*argv)[0] == 0
  assert (files / "link").is_symlink() and (files / "out").read_text() == text(translator.translate(LINES))


def test_scores_that_fail_cost_no_translations(run, translator, workdir, files, monkeypatch):
  """Not even where the process is killed, as for its memory: they are written first."""

  def failing(*args, **options):
    assert (files / "out").exists()
    raise RuntimeError("of the scorer")

  monkeypatch.setattr(scores, "score", failing)
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  with pytest.raises(RuntimeError, match="of the scorer"):
    run(*argv, "--hypotheses", files / "out")
  assert (files / "out").read_text() == text(translator.translate(LINES))


def test_a_reference_that_can_be_read_once(run, files):
  """Such a reference is a shell's <(...)."""
  for option in ("--source", "--compare"):
    pipe = files / f"pipe{option}"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(text(LINES),), daemon=True)
    writer.start()
    argv = ["score", "--reference", pipe, "--hypotheses", files / "a.de", option, files / "a.en"]
    status, out, err = run(*argv)
    writer.join(10)
    said = ["6 sentences only: p says nothing below 10"] if option == "--compare" else []
    assert (status, err) == (0, said) and out.startswith("BLEU")


def test_a_seed_of_the_comparison_that_is_no_number(run, translator, workdir, files, monkeypatch):
  monkeypatch.setenv("SACREBLEU_SEED", "abc")
  monkeypatch.setattr(translator, "translate_lines", lambda *_, **__: pytest.fail("it translates"))
  of_file = ["score", "--reference", files / "a.de", "--hypotheses", files / "a.en"]
  assert run(*of_file)[0] == 0
  of_run = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  for argv in (of_file, of_run):
    status, out, err = run(*argv, "--compare", files / "a.en")
    assert (status, out) == (2, "") and "SACREBLEU_SEED in the environment is 'abc'" in err[0]


def test_a_tokenisation_of_the_run_is_checked_before_the_work(run, translator, other_scores, files, monkeypatch):
  config = other_scores / "config.json"
  config.write_text(config.read_text().replace('"char"', '"13b"'))
  monkeypatch.setattr(translator, "translate_lines", lambda *_, **__: pytest.fail("it translates"))
  evaluate = ["evaluate", "--source", files / "a.en", "--reference", files / "a.de"]
  for argv in (evaluate, ["translate", "--mbr", "bleu"]):
    status, out, err = run(*argv, "--workdir", other_scores)
    assert (status, out) == (2, "") and "'13b' is not a tokenisation" in err[-1]


def test_a_bucket_is_asked_for_before_the_work(monkeypatch):
  asked = []
  monkeypatch.setattr(run_folder, "require_reachable", lambda path: asked.append(str(path)))
  output_file.check_writable("--hypotheses", "gs://bucket/out", ())
  assert asked == ["gs://bucket/out"]


def test_a_name_that_is_no_text_is_shown(run, files):
  """Bytes that are not UTF-8 in a file's name."""
  name = os.fsdecode(os.fsencode(files) + b"/caf\xe9.de")
  os.link(files / "a.de", name)
  status, out, _ = run("score", "--hypotheses", name, "--reference", files / "a.de")
  assert status == 0 and "caf\\udce9.de" in out


@pytest.mark.long
def test_evaluate_reports(run, translator, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de", "--report"]
  argv += ["--beam-size", 1, "--hypotheses", files / "out"]
  status, out, _ = run(*argv, "--json")
  found = json.loads(out)
  assert status == 0
  translations = translator.translate(LINES, beam_size=1)
  assert found["scores"]["bleu"]["score"] == score(translations, LINES[::-1]).bleu
  assert found["scores"]["compound_split_bleu"] is not None
  assert found["test_set"]["direction"] == "en-de"
  assert found["test_set"]["source"] == {"file": "a.en", "sha256": content_hash(LINES)}
  assert found["test_set"]["reference"] == {"file": "a.de", "sha256": content_hash(LINES[::-1])}
  assert found["translations"] == {"file": "out", "sha256": content_hash(translations)}
  assert found["run"] == {
    "seed": 0,
    "step": 0,
    "averaged_steps": None,
    "penalty": "gnmt",
    "beam_size": 1,
    "length_penalty": 0.6,
    "patience": 0.0,
  }
  assert found["seconds"] >= 0 and found["comparison"] is None
  _, out, _ = run(*argv)
  assert out.startswith("BLEU ") and "beam_size 1" in out and found["scores"]["ter"]["signature"] in out


@pytest.mark.parametrize(("train", "direction"), [("t:en-fr", "en-fr"), ("t:en-de; t:en-fr", None)])
def test_the_report_of_several_directions_names_none(run, translator, workdir, files, monkeypatch, train, direction):
  data = dataclasses.replace(translator.config.data, corpus=Corpus.TEXT, tags=True, train=train)
  monkeypatch.setattr(translator, "_config", dataclasses.replace(translator.config, data=data))
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **_: ([Translation(x, 0.0, 0.0, 1)] for x in lines))
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  status, out, _ = run(*argv, "--report", "--json")
  found = json.loads(out)
  assert status == 0 and found["scores"]["compound_split_bleu"] is None
  assert found["test_set"]["direction"] == direction


def test_the_report_names_the_steps_of_an_average(run, workdir, files, tmp_path):
  averaged = tmp_path / "mean"
  shutil.copytree(workdir, averaged, ignore=shutil.ignore_patterns("SHA256SUMS"))
  provenance = json.loads((averaged / "provenance.json").read_text())
  provenance.append({"averaged": {"run": "x", "steps": [7, 5]}})
  (averaged / "provenance.json").write_text(json.dumps(provenance))
  argv = ["evaluate", "--workdir", averaged, "--source", files / "a.en", "--reference", files / "a.de"]
  _, out, _ = run(*argv, "--report", "--json")
  assert json.loads(out)["run"]["averaged_steps"] == [7, 5]


def test_evaluate_compares(run, translator, workdir, files):
  (files / "other").write_text(text(LINES[::-1]))
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  _, out, _ = run(*argv, "--compare", files / "other", "--json")
  found = json.loads(out)
  comparison = found["comparison"]
  assert (found["run"]["step"], found["run"]["beam_size"]) == (0, 2)
  assert (comparison["file"], comparison["resamples"]) == ("other", 1000)
  assert comparison["scores"]["chrf"]["score"] == pytest.approx(100)


def test_score_is_the_report_without_a_run(run, translator, workdir, files):
  common = ["--reference", files / "a.de", "--hypotheses", files / "out", "--source", files / "a.en", "--json"]
  common += ["--tokenize", "char", "--lowercase"]
  _, out, _ = run("evaluate", "--workdir", workdir, *common, "--report")
  status, again, _ = run("score", "--languages", "en", "de", *common)
  assert status == 0
  assert json.loads(again) == json.loads(out) | {"run": None, "seconds": None}


def test_references_that_are_missing_are_counted(run, tmp_path):
  """chrF2 leaves such a line out: here it says 100."""
  for name, lines in {"out": ["a b c d", "x", ""], "reference": ["a b c d", " ", ""]}.items():
    (tmp_path / name).write_text(text(lines))
  status, out, err = run("score", "--hypotheses", tmp_path / "out", "--reference", tmp_path / "reference", "--json")
  found = json.loads(out)
  assert status == 0 and found["scores"]["chrf"]["score"] == 100.0 and found["scores"]["bleu"]["score"] < 100
  assert err == [
    f"{tmp_path / 'reference'} has 1 empty line where {tmp_path / 'out'} has text: "
    "what is translated there is wrong for BLEU and TER, and does not count for chrF2"
  ]


def test_written_scores_in_front_of_translations_are_told(run, tmp_path):
  for name, lines in (
    ("ours", "-0.123456\tein Haus\n-1.000000\t\n"),
    ("some", "-0.123456\ta\nb\n"),
    ("reference", "a\nb\n"),
  ):
    (tmp_path / name).write_text(lines)
  for name, expected in (("ours", True), ("some", False)):
    status, _, err = run("score", "--hypotheses", tmp_path / name, "--reference", tmp_path / "reference")
    assert status == 0 and any("ours begins with a score and a tab" in line for line in err) == expected
  status, _, err = run(
    *("score", "--hypotheses", tmp_path / "some", "--reference", tmp_path / "reference", "--compare", tmp_path / "ours")
  )
  assert status == 0 and [line for line in err if "ours begins with a score and a tab" in line]


@pytest.mark.parametrize(("count", "few"), [(9, True), (10, False)])
def test_a_comparison_of_few_sentences_says_so(run, tmp_path, count, few):
  for name, word in (("ours", "haus"), ("theirs", "hund")):
    (tmp_path / name).write_text("".join(f"ein {word} {i} hier\n" for i in range(count)))
  status, _, err = run(
    *("score", "--hypotheses", tmp_path / "ours", "--reference", tmp_path / "ours", "--compare", tmp_path / "theirs")
  )
  assert status == 0 and err == ([f"{count} sentences only: p says nothing below 10"] if few else [])


def test_score_of_what_equals_the_reference(run, files):
  argv = ["score", "--hypotheses", files / "a.de", "--reference", files / "a.de", "--compare", files / "a.de"]
  status, out, _ = run(*argv)
  assert status == 0
  assert "100.0%" in out and "difference +0.00, p = 1.000" in out and "Table 2" not in out


def test_files_of_unequal_length(run, workdir, files):
  (files / "short").write_text("one line\n")
  evaluate = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference"]
  for argv in (
    [*evaluate, files / "short"],
    [*evaluate, files / "a.de", "--compare", files / "short"],
    ["score", "--hypotheses", files / "short", "--reference", files / "a.de"],
    ["score", "--hypotheses", files / "a.en", "--reference", files / "a.de", "--compare", files / "short"],
    ["score", "--hypotheses", files / "a.en", "--reference", files / "a.de", "--source", files / "short"],
  ):
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert len(err) == 1 and "has 6" in err[0] and "short has 1" in err[0]


def test_score_is_sacrebleus_default_unless_a_flag_says_otherwise(run, tmp_path):
  ours, reference = "Der Hund sah „Sie“ im Park.", "der Hund sah „Ihn“ im Park."
  for name, line in (("ours", ours), ("reference", reference)):
    (tmp_path / name).write_text(f"{line}\n")
  status, out, _ = run("score", "--hypotheses", tmp_path / "ours", "--reference", tmp_path / "reference", "--json")
  found = json.loads(out)["scores"]
  assert status == 0 and found["bleu"]["score"] == sacrebleu.corpus_bleu([ours], [[reference]]).score
  assert found["chrf"]["score"] == sacrebleu.corpus_chrf([ours], [[reference]]).score
