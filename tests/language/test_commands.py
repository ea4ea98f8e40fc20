"""Language models from their text to their commands: train, resume, generate, fine-tune, classify, and mistakes."""

import dataclasses
import functools
import json
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from etils import epath

from benchmarks.tiny import WORDS
from tests.decoding.test_sampling import brute_force
from tests.example_commands import command_line, save_run
from tests.language import example
from tests.model.example import float64
from tests.tiny_run import state_of
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.analysis import plan
from transformer_jax.config import Config, Corpus, DataConfig, Document, EvaluateConfig, TrainConfig
from transformer_jax.data import labelled
from transformer_jax.data.documents import decode_text, encode_text
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.decoding import buckets
from transformer_jax.decoding.generator import Generator, Sample
from transformer_jax.decoding.translation import Probability
from transformer_jax.language.config import BERTClassifierConfig, ELMoConfig
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runs import init_from
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.classifier import Classifier
from transformer_jax.trainer import loop
from transformer_jax.training.task import task_of

CONFIGS = Path(__file__).parents[2] / "configs"
TRAIN = TrainConfig(
  steps=4, batch_tokens=128, warmup_steps=3, log_every=2, save_every=2, keep=2, label_smoothing=0.0, ema_decay=0.9
)
SIZES = {"vocab_size": 290, "num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2, "max_positions": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """A text of paragraphs, and sentences with labels."""
  folder = tmp_path_factory.mktemp("language")
  generator = random.Random(0)

  def line():
    return " ".join(generator.choices(WORDS, k=generator.randint(1, 5)))

  paragraphs = ["\n".join(line() for _ in range(generator.randint(1, 5))) for _ in range(60)]
  (folder / "text.txt").write_text("\n\n".join(paragraphs) + "\n")
  sentences = [line() for _ in range(60)]
  (folder / "labels.tsv").write_text("".join(f"{'short' if len(s) < 15 else 'long'}\t{s}\n" for s in sentences))
  return folder


def config_of(folder, model, file="text.txt", **train):
  path = str(folder / file)
  return Config(
    data=DataConfig(
      corpus=Corpus.TEXT, document=Document.PARAGRAPH, train=path, validation=path, test=path, row_length=16
    ),
    model=model,
    train=dataclasses.replace(TRAIN, **train),
    evaluate=EvaluateConfig(every=2),
  )


def models():
  gpt, bert = dataclasses.replace(example.GPT, **SIZES), dataclasses.replace(example.BERT, dropout=0.1, **SIZES)
  elmo = ELMoConfig(SIZES["vocab_size"], num_layers=1, d_model=SIZES["d_model"])
  return {"gpt": gpt, "bert": bert, "elmo": elmo}


@pytest.fixture(scope="module", params=["gpt", "bert", "elmo"])
def run(request, folder):
  """A finished run."""
  config, workdir = config_of(folder, models()[request.param]), folder / f"{request.param}-run"
  loop.train(config, epath.Path(workdir))
  return request.param, config, workdir


@pytest.fixture(scope="module")
def gpt_run(folder):
  """A run of random weights, with what it would have learned from the text as its vocabulary."""
  config, workdir = config_of(folder, models()["gpt"]), folder / "random-gpt-run"
  save_run(workdir, config, task_of(config.model).learn_tokenizer(config), steps=[2, 4])
  return str(workdir)


@pytest.mark.long
def test_a_run_in_parts_equals_a_run_in_one(run, folder, capfd):
  name, config, whole = run
  parts = folder / f"{name}-parts"
  first = dataclasses.replace(config, train=dataclasses.replace(config.train, steps=2))
  for part in (first, config):
    loop.train(part, epath.Path(parts))
  out, err = capfd.readouterr()
  assert "resuming after step 2" in err and "validation loss" in err and "accuracy" in err
  assert out.startswith("loss ") and "perplexity" in out
  jax.tree.map(np.testing.assert_array_equal, state_of(parts, config), state_of(whole, config))
  lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().split("\n")[:-1]]
  assert [(line["step"], line["split"]) for line in lines] == [
    (2, "train"), (2, "validation"), (4, "train"), (4, "validation")
  ]  # fmt: skip
  assert all(("next_loss" in line) == (name == "bert") for line in lines)


@pytest.fixture
def command(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, lines on stderr)."""
  return command_line(monkeypatch, capfdbinary, tmp_path)


@pytest.mark.long
def test_generate(gpt_run, command):
  argv = ["generate", "--workdir", gpt_run, "--max-tokens", 5, "--seed", 3]
  status, out, _ = command(*argv, "--prompt", "ein zwei", "--samples", 3, "--json")
  samples = [json.loads(line) for line in out.split("\n")[:-1]]
  generator = Generator.load(gpt_run)
  expected = generator.generate("ein zwei", max_tokens=5, seed=3, samples=3)
  assert status == 0 and samples == [sample._asdict() for sample in expected]
  assert len({sample["text"] for sample in samples}) > 1 and all(0 < sample["tokens"] <= 5 for sample in samples)
  assert generator.generate("ein zwei", max_tokens=5, seed=3) == expected[:1]
  assert generator.generate("ein zwei", max_tokens=5, seed=4) != expected[:1]
  for end in (b"", b"\n", b"\r\n"):
    _, out, _ = command(*argv, stdin=b"ein zwei" + end)
    assert out == expected[0].text + "\n"


def written(generator, prompt, count, seed, temperature=1.0, top_k=0, top_p=1.0):
  """The text of sample 0 by the equations: at each position the first token whose cumulative probability is above a
  random number, of those that may be chosen.
  """
  params, tokens = float64(generator._params), encode_text(generator._tokenizer, prompt)
  key = jax.random.fold_in(jax.random.key(seed), 0)
  for _ in range(count):
    logits = example.gpt(generator.config.model, params, np.array([BOS, *tokens]))[-1]
    probabilities = brute_force(logits, temperature, top_k, top_p)
    allowed = sorted(probabilities)
    ends = np.cumsum([probabilities[token] for token in allowed])
    number = jax.random.uniform(jax.random.fold_in(key, len(tokens)))
    tokens.append(allowed[min(np.searchsorted(ends, number, side="right"), len(allowed) - 1)])
  return decode_text(generator._tokenizer, tokens)[len(prompt) :]


@pytest.mark.parametrize(
  ("flags", "greedy"),
  [
    (["--top-k", 1], True),
    (["--top-p", 1e-9], True),
    (["--temperature", 0], True),
    (["--temperature", 1.7, "--top-k", 29, "--top-p", 0.6], False),
  ],
)
def test_a_sample_is_drawn_by_the_flags(gpt_run, command, flags, greedy):
  """One probable token alone is greedy search, whatever the seed is."""
  generator, prompt = Generator.load(gpt_run), "ein zwei"
  options = {flag[2:].replace("-", "_"): value for flag, value in zip(flags[::2], flags[1::2], strict=True)}
  expected = written(generator, prompt, 5, seed=3, **options)
  argv = ["generate", "--workdir", gpt_run, "--prompt", prompt, "--max-tokens", 5, "--seed", 3]
  assert command(*argv, *flags)[:2] == (0, expected + "\n")
  assert (expected == written(generator, prompt, 5, seed=4, temperature=0.0)) == greedy
  assert expected != written(generator, prompt, 5, seed=3)


@pytest.mark.long
def test_the_text_is_what_follows_the_prompt(gpt_run):
  """Greedily, against the logits of the whole text, of which the model knows nothing but its tokens."""
  generator, prompt = Generator.load(gpt_run), "fünf\nzwei"
  tokens = encode_text(generator._tokenizer, prompt)
  apply = jax.jit(functools.partial(generator._model.apply, {"params": generator._params}), static_argnames="method")
  for _ in range(4):
    before = np.array([BOS, *tokens])
    hidden = apply(before, np.arange(len(before)), np.tri(len(before), dtype=bool))
    logits = np.array(apply(hidden[-1], method="logits"))
    logits[[PAD, UNK, BOS]] = -np.inf
    tokens.append(int(np.argmax(logits)))
  [sample] = generator.generate(prompt, max_tokens=4, temperature=0)
  assert sample.tokens == 4 and prompt + sample.text == decode_text(generator._tokenizer, tokens)


def test_tokens_that_are_no_text_are_never_drawn(gpt_run):
  assert Generator.load(gpt_run)._options(1.0, 0, 1.0).suppressed == (PAD, UNK, BOS)


def test_scores_are_those_of_the_tokens_one_after_the_other(gpt_run):
  generator, texts = Generator.load(gpt_run), ["fünf\nzwei", "", "ein zwei drei", "zwei"]
  found = generator.score(texts, batch_size=3)
  apply = jax.jit(functools.partial(generator._model.apply, {"params": generator._params}), static_argnames="method")
  for text, score in zip(texts, found, strict=True):
    tokens = [*encode_text(generator._tokenizer, text), EOS]
    before = np.array([BOS, *tokens[:-1], *[UNK] * (16 - len(tokens))])
    logits = np.array(apply(apply(before, np.arange(16), np.tri(16, dtype=bool)), method="logits"), float)
    log_probs = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    expected = sum(log_probs[i, token] for i, token in enumerate(tokens))
    assert score == (pytest.approx(expected, abs=1e-4), len(tokens))
  assert generator.score(texts[2:]) == [(pytest.approx(score, abs=1e-5), tokens) for score, tokens in found[2:]]
  with pytest.raises(InputError, match=r"text 2 has .* tokens with its end, but .*max_positions = 16: shorten it"):
    generator.score(["ein", "ein zwei drei vier fünf " * 5])
  for size in (0, 10**20):
    with pytest.raises(InputError, match="batch_size"):
      generator.score(texts, batch_size=size)
  for given, message in (
    ("ein", "texts is one str, but must be sev"),
    (["ein", "\ud800"], "text 2 has half of a surr"),
  ):
    with pytest.raises(InputError, match=message):
      generator.score(given)
  with pytest.raises(InputError, match="texts is one str, but must be sev"):
    generator.fits("ein")


@pytest.mark.parametrize(("size", "fits"), [(15, True), (16, False)])
def test_a_text_that_fits_can_be_scored(gpt_run, monkeypatch, size, fits):
  """The model has 16 positions, one of them for the end."""
  generator, rows = Generator.load(gpt_run), []
  monkeypatch.setattr(generator, "_encode", lambda text, *_: [5] * len(text))

  def scores(lengths, longest, of_length, log_probs):
    rows.append(of_length(16))
    return [0.0] * len(lengths)

  monkeypatch.setattr(buckets, "scores", scores)
  assert generator.fits(["a", "a" * size]) == fits
  if fits:
    assert [each.tokens for each in generator.score(["a" * size], batch_size=3)] == [16] and rows == [3]
  else:
    with pytest.raises(InputError, match="max_positions = 16"):
      generator.score(["a" * size])


def test_reranking_by_a_language_model(gpt_run, command, tmp_path):
  lists = [["ein zwei", "zwei", "drei"], ["fünf", "ein drei"]]
  lines = (f"{i} ||| {text} ||| logp= -1 ||| -1\n" for i, texts in enumerate(lists) for text in texts)
  (tmp_path / "list").write_text("".join(lines))
  generator = Generator.load(gpt_run)
  scores = [[score.log_probability for score in generator.score(texts)] for texts in lists]
  for weight, best in ((1.0, max), (-1.0, min)):
    (tmp_path / "weights").write_text(json.dumps({"score": 0.0, "logp": 0.0, "language-model": weight}))
    flags = ["--n-best", tmp_path / "list", "--weights", tmp_path / "weights", "--language-model", gpt_run]
    expected = [texts[own.index(best(own))] for texts, own in zip(lists, scores, strict=True)]
    assert command("rerank", *flags)[:2] == (0, "".join(f"{text}\n" for text in expected))


def test_reranking_takes_the_step_of_a_language_model(gpt_run, command, tmp_path, monkeypatch):
  lines, asked = ["zwei", "ein drei", "drei"], []

  def load(run, *, step):
    asked.append((str(run.path), step))
    return SimpleNamespace(fits=lambda texts: True, score=lambda texts, **_: [Probability(-len(t), 1) for t in texts])

  monkeypatch.setattr(Generator, "load", load)
  (tmp_path / "list").write_text("".join(f"0 ||| {line} ||| x= 1 ||| 0\n" for line in lines))
  (tmp_path / "weights").write_text('{"score": 0, "x": 0, "language-model": -1}')
  flags = ["--n-best", tmp_path / "list", "--weights", tmp_path / "weights", "--language-model", gpt_run]
  for given, step in (([], "last"), (["--step", 2], 2), (["--step", "best"], "best")):
    assert command("rerank", *flags, *given)[:2] == (0, "ein drei\n")
    assert asked.pop() == (gpt_run, step) and not asked


@pytest.mark.parametrize(("step", "restored"), [("last", 4), (2, 2)])
def test_the_model_is_that_of_the_step(gpt_run, step, restored):
  generator = Generator.load(gpt_run, step=step)
  assert generator.step == restored
  jax.tree.map(np.testing.assert_array_equal, generator._params, runs.open(gpt_run).model(step=step).params)


def test_the_next_token_is_drawn_after_the_prefix_by_the_model_of_the_step(gpt_run, command, tmp_path, monkeypatch):
  pytest.importorskip("matplotlib")
  from transformer_jax.inside import next_picture

  expected = {step: Generator.load(gpt_run, step=step).next_token("ein zwei").probabilities for step in (2, 4)}
  drawn = []

  def draw(found, top):
    drawn.append((found.probabilities, top))
    raise InputError("as it happens")

  monkeypatch.setattr(next_picture, "draw", draw)
  argv = ["--workdir", gpt_run, "--prefix", "ein zwei", "--top", 3, "--step", 2, "--output", tmp_path / "next.svg"]
  assert command("draw", "next", *argv)[0] == 2
  [(found, top)] = drawn
  np.testing.assert_array_equal(found, expected[2])
  assert top == 3 and not np.allclose(expected[2], expected[4])
  status, _, err = command("draw", "next", *argv, "--sentence", "a")
  assert status == 2 and "--sentence is for a model that translates" in err[-1]


def test_no_more_than_there_is_room_for(gpt_run, capfdbinary):
  generator = Generator.load(gpt_run)
  room = 16 - len(encode_text(generator._tokenizer, "ein zwei"))
  [sample] = generator.generate("ein zwei", temperature=0)
  assert sample.tokens == room or sample.ended
  with pytest.raises(InputError, match=rf"{room + 1} more are wanted.* ask for at most {room}$"):
    generator.generate("ein zwei", max_tokens=room + 1)
  with pytest.raises(InputError, match=r"more are wanted, .* = 16: shorten the prompt$"):
    generator.generate("ein zwei " * 16)


def test_without_a_table_of_positions_there_is_room_for_any_text(gpt_run, monkeypatch):
  generator = Generator.load(gpt_run)
  monkeypatch.setattr(type(generator.config.model), "most_positions", None)
  assert (generator._fitting(3, None), generator._fitting(3, 200)) == (3 + 128, 203)


def test_a_text_longer_than_any_of_the_training_is_warned_of(gpt_run):
  generator, said = Generator.load(gpt_run), []
  generator.config.data.row_length = 5
  generator.generate("ein", max_tokens=5, warn=said.append)
  assert len(said) == 1 and "at most config.data.row_length = 5 at a time" in said[0]


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (["--temperature", -1], "--temperature is -1.0, but must be from 0 to 1e+30"),
    (["--temperature", 1e39], "--temperature is 1e+39, but must be from 0 to 1e+30"),
    (["--top-k", -1], "--top-k is -1, but must be 0 or more"),
    (["--top-p", 0], "--top-p is 0.0, but must be above 0"),
    (["--top-p", 1.5], "--top-p is 1.5, but must be above 0 and at most 1"),
    (["--samples", 0], "--samples is 0, but must be from 1 to 65536"),
    (["--samples", 1 << 17], "--samples is 131072, but must be from 1 to 65536"),
    (["--max-tokens", 0], "--max-tokens is 0, but must be positive"),
    (["--seed", -1], "--seed is -1, but must be 0 or more, and below 2 ** 32"),
    (["--seed", 2**32], "--seed is 4294967296, but must be 0 or more, and below 2 ** 32"),
    (["--max-tokens", 99], "config.model.max_positions = 16"),
    (["--prompt", "ein\udcff"], "the prompt has half of a surrogate pair"),
  ],
)
def test_what_cannot_be_generated(gpt_run, command, arguments, message):
  status, out, err = command("generate", "--workdir", gpt_run, "--prompt", "", *arguments)
  assert (status, out, len(err)) == (2, "", 1) and message in err[0]


def test_a_prompt_from_a_file_is_read_like_a_text(gpt_run, command, monkeypatch):
  prompts = []
  monkeypatch.setattr(Generator, "generate", lambda self, prompt, **options: prompts.append(prompt) or [])
  for stdin in (b"\xef\xbb\xbfein\r\n\r\nzwei\r\n", b"ein\n\nzwei", b"ein\n\n", b"\n", b""):
    assert command("generate", "--workdir", gpt_run, stdin=stdin)[0] == 0
  assert prompts == ["ein\n\nzwei", "ein\n\nzwei", "ein\n", "", ""]
  status, _, err = command("generate", "--workdir", gpt_run, stdin=b"ein\n\xff")
  assert status == 2 and "standard input, line 2: byte 1 of the line is not valid UTF-8" in err[-1]


def test_a_line_of_dashes_is_between_two_samples(gpt_run, command, monkeypatch):
  found = [Sample("ein\n", 2, True), Sample("zwei", 1, False)]
  monkeypatch.setattr(Generator, "generate", lambda self, prompt, **options: found)
  argv = ["generate", "--workdir", gpt_run, "--prompt", ""]
  assert command(*argv)[:2] == (0, "ein\n\n" + 60 * "-" + "\nzwei\n")


def test_a_seed_gives_one_text_whatever_generator_jax_is_told_to_take(gpt_run):
  found = [sample.text for sample in Generator.load(gpt_run).generate("a", seed=7, samples=2, max_tokens=5)]
  with jax.default_prng_impl("rbg"):
    assert [each.text for each in Generator.load(gpt_run).generate("a", seed=7, samples=2, max_tokens=5)] == found


def test_a_prompt_that_cannot_be_read_is_told(gpt_run, capfd, monkeypatch, tmp_path):
  with open(tmp_path / "file", "w") as not_readable:
    monkeypatch.setattr(sys, "stdin", not_readable)
    assert main(["generate", "--workdir", str(gpt_run)]) == 2
  assert "error: cannot read standard input: Bad file descriptor; give it" in capfd.readouterr().err


def test_a_run_is_for_its_own_command(gpt_run, command):
  status, _, err = command("translate", "--workdir", gpt_run)
  assert status == 2 and "of the family gpt: use it with `generate`" in err[0]
  status, _, err = command("classify", "--workdir", gpt_run)
  assert status == 2 and "use it with `generate`" in err[0]


def test_average(gpt_run, folder, command):
  status, _, _ = command("average", "--workdir", gpt_run, "--last", 2, "--output", folder / "gpt-average")
  assert status == 0
  assert command("generate", "--workdir", folder / "gpt-average", "--prompt", "", "--max-tokens", 2)[0] == 0


@pytest.mark.long
def test_plan(command, folder):
  text = f"--config.data.train={folder / 'text.txt'}"
  for config, data in (("gpt", "tokens"), ("bert", "of them consecutive"), ("elmo", "tokens")):
    status, out, _ = command(
      "plan", "--config", CONFIGS / f"{config}.py", text, "--config.model.vocab_size=290", "--config.model.num_layers=1"
    )
    assert status == 0 and data in out and "matmuls" in out


@pytest.mark.long
def test_fine_tuning_begins_with_the_trunk(folder, command, capfdbinary):
  bert = config_of(folder, models()["bert"])
  if not (folder / "bert-run").exists():
    loop.train(bert, epath.Path(folder / "bert-run"))
  model = BERTClassifierConfig(**(dataclasses.asdict(bert.model) | {"dropout": 0.25}), labels="short,long")
  config = config_of(folder, model, "labels.tsv", init_from=str(folder / "bert-run"), steps=2)
  capfdbinary.readouterr()
  loop.train(config, epath.Path(folder / "classes"))
  out, err = (text.decode() for text in capfdbinary.readouterr())
  assert f"not quite that of {folder / 'bert-run'}: config.model.dropout is 0.25, was {bert.model.dropout}\n" in err
  assert "not there, so random: classifier/bias, classifier/kernel" in err and "learning a vocabulary" not in err
  assert "accuracy" in out
  unmoved = dataclasses.replace(config, train=dataclasses.replace(config.train, steps=1, peak_learning_rate=1e-30))
  loop.train(unmoved, epath.Path(folder / "unmoved"))
  trunks = [runs.open(folder / name).model(None).params["trunk"] for name in ("bert-run", "unmoved")]
  jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-20), *trunks)
  capfdbinary.readouterr()
  tokenizer = dataclasses.replace(config.data, tokenizer=str(folder / "bert-run" / "tokenizer.model"))
  same = dataclasses.replace(config, data=tokenizer, train=dataclasses.replace(config.train, init_from=""))
  assert plan.data(config) == plan.data(same)
  assert "learning a vocabulary" not in capfdbinary.readouterr()[1].decode()

  classifier = Classifier.load(folder / "classes")
  sentences = ["ein zwei", "", "drei " * 30]
  found = list(classifier.classify(sentences))
  assert [each.cut for each in found] == [False, False, True]
  assert all(each.label in ("short", "long") and 0.5 <= each.probability <= 1 for each in found)
  status, out, err = command(
    "classify", "--workdir", folder / "classes", "--scores", stdin="\n".join(sentences).encode()
  )
  assert status == 0 and out == "".join(f"{each.probability:.6f}\t{each.label}\n" for each in found)
  assert err == ["line 3 has more than 14 tokens, as many as config.data.row_length = 16 allows: it is cut"]
  status, out, err = command("classify", "--workdir", folder / "classes", stdin=b"ein zwei\n\n\xff\nein\n")
  assert status == 2 and out == "".join(f"{each.label}\n" for each in found[:2])
  assert len(err) == 1 and err[0].startswith("transformer-jax: error: standard input, line 3: ")
  status, out, err = command("classify", "--workdir", folder / "classes", stdin=b"\xff\n")
  assert (status, out, len(err)) == (2, "", 1)


@pytest.mark.long
def test_training_begins_with_the_other_runs_parameters(folder, gpt_run):
  """No update is made: the rate is 0 to rounding."""
  config = config_of(folder, models()["gpt"], init_from=gpt_run, steps=1, peak_learning_rate=1e-30)
  loop.train(config, epath.Path(folder / "again"))
  other = state_of(gpt_run, config_of(folder, models()["gpt"]))
  jax.tree.map(np.testing.assert_array_equal, state_of(folder / "again", config).params, other.average)


@pytest.mark.long
def test_positions_that_were_not_learned_repeat_those_that_were(folder, gpt_run, capfd):
  """Rows of 16 of a table of 16, and then of 8 of one of 16, go into a table of 37."""
  learned = state_of(gpt_run, config_of(folder, models()["gpt"])).average["positions"]["table"]
  model = dataclasses.replace(models()["gpt"], max_positions=37)
  config = config_of(folder, model, init_from=gpt_run, steps=1, peak_learning_rate=1e-30)
  loop.train(config, epath.Path(folder / "longer"))
  found = state_of(folder / "longer", config).params["positions"]["table"]
  np.testing.assert_array_equal(found, learned[np.arange(37) % 16])
  values = json.loads((Path(gpt_run) / "config.json").read_text())
  shorter = folder / "shorter"
  shutil.copytree(gpt_run, shorter)
  (shorter / "config.json").write_text(json.dumps(values | {"data": values["data"] | {"row_length": 8}}))
  params = jax.tree.map(np.zeros_like, state_of(folder / "longer", config).params)
  capfd.readouterr()
  again = dataclasses.replace(config, train=dataclasses.replace(config.train, init_from=str(shorter)))
  found = init_from.params_from(runs.open(shorter, accept_edits=True), again, params)[0]["positions"]["table"]
  np.testing.assert_array_equal(found, learned[np.arange(37) % 8])
  assert "rows that were not learned repeat the learned ones: positions/table from row 8 on" in capfd.readouterr().err
  # Of a run that was itself begun so, all rows are to be trusted.
  again = dataclasses.replace(config, train=dataclasses.replace(config.train, init_from=str(folder / "longer")))
  found = init_from.params_from(runs.open(folder / "longer"), again, params)[0]["positions"]["table"]
  np.testing.assert_allclose(found, learned[np.arange(37) % 16], rtol=1e-5)  # it has a moving average of its own
  assert "rows that were not learned" not in capfd.readouterr().err


def test_options_that_would_be_ignored_are_refused(folder, gpt_run, tmp_path):
  config = config_of(folder, models()["gpt"])
  longest = dataclasses.replace(config, data=dataclasses.replace(config.data, max_length=7))
  with pytest.raises(InputError, match="max_length is 7, but must be 0: no text is too long"):
    loop.train(longest, epath.Path(tmp_path / "run"))
  own = Path(gpt_run) / "tokenizer.model"
  other = tmp_path / "other.model"
  text = ["the brown fox jumps over a lazy dog; every quick wizard mocks big sphinxes"] * 9
  other.write_bytes(SentencePieceTokenizer.learn(text, 290).to_bytes())
  config = config_of(folder, models()["gpt"], init_from=gpt_run)
  for path, fits in ((own, True), (other, False)):
    chosen = dataclasses.replace(config, data=dataclasses.replace(config.data, tokenizer=str(path)))
    other_run = init_from.open_other(chosen)
    if fits:
      found = init_from.tokenizer_to_begin_with(chosen, other_run)
      assert found.fingerprint() == SentencePieceTokenizer.load(own).fingerprint()
    else:
      with pytest.raises(InputError, match="is not the vocabulary of the run in"):
        init_from.tokenizer_to_begin_with(chosen, other_run)


def test_a_test_text_that_is_missing_is_said_before_the_training(folder, tmp_path):
  config = config_of(folder, models()["gpt"])
  config = dataclasses.replace(config, data=dataclasses.replace(config.data, test="/nowhere"))
  with pytest.raises(InputError, match="/nowhere does not exist"):
    loop.train(config, epath.Path(tmp_path / "run"))
  assert not list(tmp_path.glob("run/checkpoints/*"))


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("short\tein\nzwei\n", "line 2: no tab"),
    ("short\tein\ntall\tzwei\n", "line 2: the label 'tall' is not one of config.model.labels = short,long"),
    (
      "short\tein\n" + "zwei " * 999 + "\tlong\n",
      r"line 2: the label 'zwei .{,33}\.\.\.' is not one of config.model.labels",
    ),
    ("", "the training text has no sentence to learn a vocabulary from"),
  ],
)
def test_labels_that_cannot_be_used(tmp_path, text, message):
  (tmp_path / "labels.tsv").write_text(text)
  model = BERTClassifierConfig(**dataclasses.asdict(models()["bert"]), labels="short,long")
  with pytest.raises(InputError, match=message):
    loop.train(config_of(tmp_path, model, "labels.tsv"), epath.Path(tmp_path / "run"))


def test_a_text_is_scored_between_the_tokens_of_the_model(gpt_run):
  """An imported vocabulary has others than BOS and EOS."""
  plain = Generator.load(gpt_run)
  model = dataclasses.replace(plain.config.model, begin=17, end=19)
  generator = Generator(dataclasses.replace(plain.config, model=model), plain._params, plain._tokenizer)
  tokens = [*encode_text(plain._tokenizer, "ein zwei"), 19]
  logits = example.gpt(model, float64(plain._params), np.array([17, *tokens[:-1]]))
  log_probs = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
  expected = sum(log_probs[i, token] for i, token in enumerate(tokens))
  assert generator.score(["ein zwei"]) == [(pytest.approx(expected, abs=1e-4), len(tokens))]


def test_a_text_has_128_tokens_by_default_if_there_is_room(gpt_run, monkeypatch):
  generator = Generator.load(gpt_run)
  monkeypatch.setattr(type(generator.config.model), "most_positions", 200)
  assert [generator._fitting(prompt, None) for prompt in (3, 100)] == [131, 200]
  assert generator._fitting(3, 197) == 200


@pytest.mark.parametrize(("row_length", "warned"), [(7, True), (8, False)])
def test_a_text_as_long_as_a_row_of_training_is_not_warned_of(gpt_run, row_length, warned):
  generator, said = Generator.load(gpt_run), []
  generator.config.data.row_length = row_length
  assert generator._total_length(3, 5, said.append) == 8 and bool(said) == warned


@pytest.mark.parametrize("end", [EOS, 19])
def test_a_text_that_the_model_ends_says_so(gpt_run, end):
  plain = Generator.load(gpt_run)
  model = dataclasses.replace(plain.config.model, end=end)
  generator = Generator(dataclasses.replace(plain.config, model=model), plain._params, plain._tokenizer)
  tokens = encode_text(plain._tokenizer, "ein zwei")
  cut, whole = (generator._sample_of([*tokens, *last], "ein", 1) for last in ([], [end]))
  assert cut == (" zwei", len(tokens) - 1, False) and whole[1:] == (len(tokens), True)


def test_the_advice_about_a_label_is_not_cut_off_where_there_are_many(tmp_path):
  (tmp_path / "labels.tsv").write_text("tall\tein\n")
  data = DataConfig(corpus=Corpus.TEXT, train=f"{tmp_path}/labels.tsv")
  with pytest.raises(InputError, match=r"\.\.\.: name all labels of all files there$") as raised:
    [*labelled.read(data, data.train, [f"label_{number}" for number in range(200)])]
  assert len(str(raised.value)) < 1000
