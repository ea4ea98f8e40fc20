"""The command `report`, on a tiny model of random weights."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import sacrebleu

from tests.commands.lines import LINES
from tests.example_commands import save_run
from transformer_jax import runs
from transformer_jax.commands import report
from transformer_jax.config import Config, Corpus, DataConfig, EvaluateConfig
from transformer_jax.decoding.translation import Translation
from transformer_jax.inside.scored import Text
from transformer_jax.language.config import GPTConfig


def data_of(page: Path) -> dict:
  _, _, rest = page.read_text().partition('<script type="application/json" id="data">')
  return json.loads(rest.partition("</script>")[0])


@pytest.fixture(autouse=True)
def _without_page(workdir):
  """The run folder is other tests', too."""
  yield
  (Path(workdir) / "report.html").unlink(missing_ok=True)


@pytest.mark.long
def test_scores_of_a_text_are_sacrebleus(run, workdir, translator, files):
  status, out, _ = run("report", "--workdir", workdir, "--data", files / "a")
  page = Path(workdir) / "report.html"
  assert (status, out) == (0, f"{page}\n")
  [found] = data_of(page)["scored"]
  translations, references = translator.translate(LINES), list(reversed(LINES))
  assert found["sentences"] == len(LINES) and found["step"] == translator.step
  assert found["scores"]["bleu"]["score"] == sacrebleu.corpus_bleu(translations, [references], force=True).score
  assert found["scores"]["chrf"]["score"] == sacrebleu.corpus_chrf(translations, [references]).score


@pytest.mark.long
def test_several_runs_are_one_page(run, workdir, translator, files):
  output = files / "both.html"
  argv = ["report", "--workdir", workdir, "--workdir", workdir, "--data", files / "a", "--output", output]
  assert run(*argv)[:2] == (0, f"{output}\n")
  found = data_of(output)
  assert len(found["runs"]) == len(found["scored"]) == 2
  assert found["scored"][1]["scores"]["bleu"]["p_value"] == 1.0


def test_the_text_is_that_of_the_validations(tmp_path):
  """As many sentences of it as each validation translates, or all if it translates none."""
  for language in ("en", "de"):
    (tmp_path / f"text.{language}").write_text("".join(f"{language} {i}\n" for i in range(7)))
  data = DataConfig(corpus=Corpus.TEXT, train="a", validation=str(tmp_path / "text"))
  for sentences, expected in ((3, 3), (0, 7), (9, 7)):
    run = SimpleNamespace(config=Config(data=data, evaluate=EvaluateConfig(sentences=sentences)))
    assert report._text(run, None).pairs == [(f"en {i}", f"de {i}") for i in range(expected)]
  assert len(report._text(run, str(tmp_path / "text")).pairs) == 7


def test_scores_are_as_the_run_says(translator, workdir, monkeypatch):
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **_: ([Translation(x, 0.0, 0.0, 1)] for x in lines))
  found = runs.open(workdir)
  evaluate = EvaluateConfig(tokenize="char", lowercase=True)
  run = SimpleNamespace(config=Config(evaluate=evaluate), path=found.path)
  text = Text("text", [("a", "b"), ("c", "d")])
  made = report._translated(run, text, "last")
  assert (made.lines, made.tokenize, made.lowercase) == (["a", "c"], "char", True)


def test_a_run_without_its_text_has_the_rest(run, workdir, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  config = json.loads((Path(workdir) / "config.json").read_text())
  config["data"] |= {"corpus": "text", "validation": "/nowhere/text"}
  (tmp_path / "run").mkdir()
  (tmp_path / "run" / "config.json").write_text(json.dumps(config))
  status, _, said = run("report", "--workdir", "run")
  assert status == 0 and "nothing was translated for this report" in said[-1] and "/nowhere/text" in said[-1]
  page = tmp_path / "run" / "report.html"
  assert data_of(page)["scored"] == [] and "/nowhere/text" in page.read_text()


def test_a_language_model_beside_a_translator_is_the_reason_for_no_scores(run, workdir, tmp_path):
  save_run(tmp_path / "gpt", Config(model=GPTConfig(vocab_size=277)), runs.open(workdir).tokenizer, steps=[])
  argv = ["report", "--workdir", tmp_path / "gpt", "--workdir", workdir, "--output", tmp_path / "both.html"]
  status, _, said = run(*argv)
  assert status == 0 and "nothing was translated" in said[-1] and "gpt does not translate" in said[-1]
  assert "gpt does not translate" in (tmp_path / "both.html").read_text()
  assert run("report", "--workdir", tmp_path / "gpt", "--output", tmp_path / "gpt.html")[2] == []


@pytest.mark.parametrize(
  ("argv", "words"),
  [
    (["--workdir", "{}", "--workdir", "{}"], ["--output is missing"]),
    (["--workdir", "{}", "--output", "/nowhere/x.html"], ["--output /nowhere/x.html cannot be written"]),
    (["--workdir", "{}", "--output", "config.json"], ["--output is 'config.json', but the page's name must end with"]),
    (["--workdir", "{}", "--data", "/nowhere/text"], ["/nowhere/text"]),
    (["--workdir", "{}", "--step", "first"], ["'first' must be the number of a step, last or best"]),
    (["--workdir", "{}", "--step", "999"], ["has no checkpoint of step 999"]),
    (["--workdir", "/nowhere"], ["/nowhere is not a run folder"]),
    ([], ["--workdir"]),
  ],
  ids=str,
)
def test_a_mistake_is_one_line(run, workdir, argv, words):
  status, out, said = run("report", *(argument.format(os.fspath(workdir)) for argument in argv))
  assert (status, out, len(said)) == (2, "", 1) and all(word in said[0] for word in words)


@pytest.mark.long
def test_a_link_stays_a_link(run, workdir, tmp_path):
  page = tmp_path / "served" / "run.html"
  page.parent.mkdir()
  (tmp_path / "run.html").symlink_to(page)
  assert run("report", "--workdir", workdir, "--output", tmp_path / "run.html")[0] == 0
  assert (tmp_path / "run.html").is_symlink() and data_of(page)["runs"]


def test_a_page_never_replaces_a_file_of_the_run_by_a_link(run, workdir):
  page = Path(workdir) / "report.html"
  page.symlink_to("config.json")
  before = (Path(workdir) / "config.json").read_bytes()
  status, _, err = run("report", "--workdir", workdir)
  assert status == 2 and "is a file of the run" in err[-1]
  assert (Path(workdir) / "config.json").read_bytes() == before


def test_a_seed_that_is_no_number_is_told_before_the_work(run, workdir, monkeypatch):
  monkeypatch.setenv("SACREBLEU_SEED", "abc")
  monkeypatch.setattr(report, "_translations", lambda *_: pytest.fail("it translates"))
  status, out, said = run("report", "--workdir", workdir)
  assert (status, out) == (2, "") and "SACREBLEU_SEED in the environment is 'abc'" in said[-1]
