"""--step: which checkpoint of a run a command uses, and that it says which."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from etils import epath

from tests.commands.lines import LINES, text
from tests.example_commands import RESTORING, command_line, make_run
from tests.model.example import random_state
from transformer_jax import runs
from transformer_jax.commands import attention, classify
from transformer_jax.commands.streams import Lines
from transformer_jax.decoding.generator import Generator
from transformer_jax.decoding.translation import Translation
from transformer_jax.decoding.translator import Translator
from transformer_jax.inside.alignment import links, pharaoh
from transformer_jax.inside.attention import to_json
from transformer_jax.language.config import BERTClassifierConfig, GPTConfig
from transformer_jax.runs import checkpoint
from transformer_jax.runs.checkpoint_files import LOSS
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.classifier import Classifier
from transformer_jax.tasks.translation import TASK


@pytest.fixture
def run(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, all lines on stderr)."""
  return command_line(monkeypatch, capfdbinary, tmp_path, every_line=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
  """A run with the checkpoints of steps 0, 3 and 5, of which that of step 3 is the best, and their parameters."""
  workdir = epath.Path(make_run(tmp_path_factory.mktemp("run")))
  checkpoints = checkpoint.Checkpoints(workdir, keep=3)
  state = random_state(runs.open(workdir).config, TASK)
  generator, params = np.random.default_rng(0), {0: state.params}
  for step, loss in ((3, 0.5), (5, 0.7)):
    params[step] = jax.tree.map(lambda x: np.float32(x + generator.standard_normal(x.shape)), state.params)
    checkpoints.save(state.replace(step=np.int32(step), params=params[step]), {LOSS: loss})
    checkpoints.wait()
  checkpoints.close()
  return workdir, params


@pytest.fixture(scope="module")
def steps(saved):
  """The run folder alone."""
  return saved[0]


def test_classify_waits_for_no_more_sentences_than_there_are(run, monkeypatch):
  """As for a program that writes one and waits for its label."""
  given = []
  classifier = SimpleNamespace(classify=lambda lines, more=None: given.append(more) or iter(()))
  monkeypatch.setattr(classify, "run_to_restore", lambda *_: None)
  monkeypatch.setattr(Classifier, "load", lambda run, *, step: classifier)
  assert run("classify", "--workdir", "any")[0] == 0
  [more] = given
  assert more is not None and more.__func__ is Lines.more


@pytest.mark.long
def test_translations_are_those_of_the_best(run, steps):
  expected = {step: Translator.load(steps, step=step).translate(LINES) for step in ("best", 3, "last")}
  assert expected["best"] == expected[3] != expected["last"]
  status, out, err = run("translate", "--workdir", steps, "--step", "best", stdin=text(LINES).encode())
  assert (status, out) == (0, text(expected["best"]))
  assert err == ["restoring the checkpoint of step 3, the best by validation loss"]


def one(run):
  """The run that a model is loaded from, alone or in a list."""
  if isinstance(run, list):
    [run] = run
  return run


@pytest.fixture
def loaded(monkeypatch):
  """The runs and steps that are asked for; nothing is restored."""
  asked = []

  def load(run, *, step):
    asked.append((one(run).path, step))
    raise InputError("as it happens")

  for kind in (Translator, Generator, Classifier):
    monkeypatch.setattr(kind, "load", load)
  return asked


@pytest.mark.parametrize(
  ("argv", "model"),
  [
    (["translate"], None),
    (["evaluate", "--source", "TEXT", "--reference", "TEXT"], None),
    (["generate", "--prompt", "a"], GPTConfig(vocab_size=277, num_layers=1, d_model=8, d_ff=13, num_heads=2)),
    (["classify"], BERTClassifierConfig(vocab_size=277, num_layers=1, d_model=8, d_ff=13, num_heads=2)),
  ],
  ids=lambda value: value[0] if isinstance(value, list) else "",
)
@pytest.mark.parametrize(
  ("given", "asked", "said"),
  [
    ([], "last", ["restoring the checkpoint of step 5, the last"]),
    (["--step", "last"], "last", ["restoring the checkpoint of step 5, the last"]),
    (["--step", "best"], "best", ["restoring the checkpoint of step 3, the best by validation loss"]),
    (["--step", "0"], 0, ["restoring the checkpoint of step 0"]),
    (["--step", "4"], 4, []),  # which `Run.model` refuses
  ],
  ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_command_takes_the_step(run, steps, tmp_path, monkeypatch, loaded, argv, model, given, asked, said):
  (tmp_path / "text").write_text("abc\n")
  argv = [str(tmp_path / "text") if word == "TEXT" else word for word in argv]
  if model:
    init = runs.Run.__init__

    def of_another_model(self, *arguments):
      init(self, *arguments)
      self.config.model = model

    monkeypatch.setattr(runs.Run, "__init__", of_another_model)
  status, _, err = run(*argv, "--workdir", steps, *given)
  assert (status, loaded) == (2, [(steps, asked)])
  assert [line for line in err if line.startswith(RESTORING)] == said


@pytest.mark.parametrize("step", ["best", 0])
def test_backtranslate_takes_the_step(run, steps, tmp_path, loaded, step):
  (tmp_path / "mono").write_text("abc\n")
  argv = ["--input", tmp_path / "mono", "--output", tmp_path / "out", "--step", step]
  assert run("backtranslate", "--workdir", steps, *argv)[0] == 2
  assert loaded == [(steps, step)]


@pytest.mark.parametrize("step", ["best", 0])
def test_a_report_translates_with_the_step(run, steps, tmp_path, loaded, step):
  for language in ("en", "de"):
    (tmp_path / f"text.{language}").write_text("abc\n")
  argv = ["--data", tmp_path / "text", "--output", tmp_path / "page.html", "--step", step]
  assert run("report", "--workdir", steps, *argv)[0] == 2
  assert loaded == [(steps, step)]


@pytest.fixture
def with_step(saved, translator, monkeypatch):
  """A function that returns the translator with the parameters of a step; a command restores its own into it.

  So nothing is compiled twice.
  """
  monkeypatch.setattr(translator, "params", translator.params)  # which come back at the end

  def load(run, *, step):
    return other(one(run).model("translate", step).params)

  def other(params):
    translator.params = params
    return translator

  monkeypatch.setattr(Translator, "load", load)
  return lambda step: other(saved[1][step])


def expected_of(with_step, output):
  """The output of each step, all of which differ."""
  found = {step: output(with_step(step)) for step in (0, 3, 5)}
  assert len(set(map(str, found.values()))) == len(found)
  return found


def write_pair(folder, source, target):
  """The name of a corpus of one sentence pair."""
  for language, line in (("en", source), ("de", target)):
    (folder / f"text.{language}").write_text(f"{line}\n")
  return folder / "text"


@pytest.mark.parametrize(("flags", "step"), [(["--step", 3], 3), ([], 5)])
def test_rerank_scores_with_the_step(run, steps, with_step, tmp_path, flags, step):
  words = ["abc", "cde", "efg", "ghi"]
  (tmp_path / "list").write_text(text(f"0 ||| {word} ||| x= 1 ||| 0" for word in words))
  (tmp_path / "source").write_text("abc\n")
  (tmp_path / "weights").write_text('{"score": 0, "x": 0, "forward": 1}')

  def best(translator):
    found = translator.score([("abc", word) for word in words])
    return words[np.argmax([each.log_probability for each in found])]

  argv = [f"--{name}={tmp_path / name.replace('n-best', 'list')}" for name in ("n-best", "source", "weights")]
  status, out, _ = run("rerank", *argv, "--forward", steps, *flags)
  assert (status, out) == (0, f"{expected_of(with_step, best)[step]}\n")


@pytest.mark.long
def test_backtranslate_translates_with_the_step(run, steps, with_step, tmp_path):
  (tmp_path / "mono").write_text(text(LINES))
  argv = ["--input", tmp_path / "mono", "--output", tmp_path / "out", "--beam-size", 2, "--step", 3]
  assert run("backtranslate", "--workdir", steps, *argv)[:2] == (0, "")
  expected = expected_of(with_step, lambda translator: text(translator.translate(LINES)))
  assert (tmp_path / "out.de").read_text() == expected[3]


def test_attention_is_that_of_the_step(run, steps, with_step, tmp_path, monkeypatch):
  monkeypatch.setattr(attention, "_pictures", lambda *drawn: iter(()))
  argv = ["--sentence", "abc de", "--target", "de", "--output", tmp_path / "out", "--step", 3]
  assert run("attention", "--workdir", steps, *argv)[0] == 0
  expected = expected_of(with_step, lambda translator: to_json(translator.attention("abc de", "de")))
  assert (tmp_path / "out" / "attention.json").read_bytes() == expected[3]


def test_align_links_by_the_attention_of_the_step(run, steps, with_step, tmp_path):
  """Each target token is linked to the source token of the largest mean weight over the heads of the only layer."""
  pair = "ab cd ef gh", "hg fe dc ba"

  def linked(translator):
    words = [translator._tokenizer.words(side) for side in pair]
    return pharaoh(links(translator.attention(*pair), 0, *words))

  status, out, _ = run("align", "--workdir", steps, "--data", write_pair(tmp_path, *pair), "--step", 3)
  assert (status, out) == (0, f"{expected_of(with_step, linked)[3]}\n")


def test_heads_are_those_of_the_step(run, steps, with_step, tmp_path, translator, monkeypatch):
  """By the entropy of their weights, in bits. Nothing is translated, as that takes longer to compile."""
  own = [[Translation("cd", 0.0, 0.0, 3)]]
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **options: own)

  def entropies(translator):
    weights = [head for kind in translator.attention("ab cd", "cd").weights.values() for head in kind[0]]
    return [-np.sum(head * np.log2(np.where(head > 0, head, 1)), axis=1).mean() for head in weights]

  status, out, _ = run(
    "heads", "--workdir", steps, "--data", write_pair(tmp_path, "ab cd", "cd"), "--json", "--step", 3
  )
  found = [json.loads(line)["entropy"] for line in out.split("\n")[:-1]]
  assert status == 0
  np.testing.assert_allclose(found, expected_of(with_step, entropies)[3], rtol=1e-4)


def test_serve_serves_the_step(run, steps, with_step, asked):
  """Its attention, which is quicker to compile than its translations; what is served is rounded to four digits."""
  found = []
  asked(lambda client: found.append(client.post("/attention", {"source": "abc", "target": "cab"}).json["weights"]))
  assert run("serve", "--workdir", steps, "--port", "0", "--step", 3)[0] == 0
  expected = expected_of(with_step, lambda translator: translator.attention("abc", "cab").weights["cross"])
  np.testing.assert_allclose(found[0], expected[3], atol=1e-4)


def test_self_attention_is_drawn_of_the_step(run, steps, tmp_path, monkeypatch):
  pytest.importorskip("matplotlib")
  from transformer_jax.inside import head_picture, head_steps

  expected = {step: head_steps.of_model(runs.open(steps).model(step=step), "abc", None, 1).scores for step in (3, 5)}
  drawn = []

  def draw(found, word):
    drawn.append(found.scores)
    raise InputError("as it happens")

  monkeypatch.setattr(head_picture, "draw", draw)
  argv = ["--workdir", steps, "--sentence", "abc", "--step", 3, "--output", tmp_path / "head.svg"]
  assert run("draw", "self-attention", *argv)[0] == 2
  np.testing.assert_array_equal(drawn, [expected[3]])
  assert not np.allclose(expected[3], expected[5])


@pytest.mark.parametrize("step", ["beste", "-1", "1.5", ""])
def test_a_step_that_is_none_is_one_sentence(run, steps, step):
  status, out, err = run("translate", "--workdir", steps, f"--step={step}")
  assert (status, out, len(err)) == (2, "", 1)
  assert f"argument --step: {step!r} must be the number of a step, last or best" in err[0]


def test_a_step_that_is_not_there_is_one_sentence(run, steps):
  status, out, err = run("translate", "--workdir", steps, "--step", 4)
  assert (status, out) == (2, "")
  assert err == [f"transformer-jax: error: {steps} has no checkpoint of step 4: it has those of steps 0, 3, 5"]


@pytest.mark.long
@pytest.mark.parametrize("step", ["best", 3])
def test_an_ensemble_takes_the_step_of_each_run(steps, step):
  """A model with itself is itself."""
  pairs = [("abc de", "f ghij"), ("ab", "cd")]
  alone, last, both = (
    [found.log_probability for found in Translator.load(runs, step=which).score(pairs)]
    for runs, which in ((steps, step), (steps, "last"), ([steps, steps], step))
  )
  np.testing.assert_allclose(both, alone, rtol=1e-5)
  assert not np.allclose(both, last, rtol=1e-3)
