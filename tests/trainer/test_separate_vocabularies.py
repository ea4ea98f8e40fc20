"""A run with a vocabulary of its own for each language, from its training to what is done with it."""

import dataclasses
import json
from pathlib import Path

import jax
import numpy as np
import pytest
from etils import epath

from tests.analysis.examples import with_train
from tests.example_run import metrics_of, write_corpus
from tests.model import reference
from tests.model.example import float64
from tests.tiny_run import assert_same_bits, state_of, tiny
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.decoding.translator import Translator
from transformer_jax.inside import head_steps
from transformer_jax.interchange.export import export
from transformer_jax.model.params import by_name
from transformer_jax.model.special_tokens import BOS, EOS
from transformer_jax.runs import averaging
from transformer_jax.trainer import loop

pytestmark = pytest.mark.long
SOURCE, TARGET = 283, 290


@pytest.fixture(scope="module")
def config(tmp_path_factory):
  config = tiny(write_corpus(tmp_path_factory.mktemp("corpus")), batch_tokens=160)
  config.data.row_length = config.decode.max_source_length = 40  # the longest sentence has 35 tokens
  two = {"source_vocab_size": SOURCE, "share_embeddings": False}
  return dataclasses.replace(config, model=dataclasses.replace(config.model, **two))


@pytest.fixture(scope="module")
def run(config, tmp_path_factory):
  folder = tmp_path_factory.mktemp("whole") / "run"
  loop.train(config, epath.Path(folder))
  return folder


def test_a_run_in_parts_equals_a_run_in_one(config, run, tmp_path, capfd):
  loop.train(with_train(config, steps=4), epath.Path(tmp_path))
  assert "learning a vocabulary of 283 tokens and learning a vocabulary of 290 tokens" in capfd.readouterr().err
  loop.train(config, epath.Path(tmp_path))
  assert "resuming after step 4" in capfd.readouterr().err
  assert_same_bits(state_of(tmp_path, config), state_of(run, config))


def test_the_run_folder(run):
  found = runs.open(run)
  assert found.tokenizer.vocab_sizes == (SOURCE, TARGET)
  arrays = by_name(jax.device_get(found.model().params))
  assert arrays["own_source_embedding/table"].shape == (SOURCE, 8)
  assert arrays["target_embedding/table"].shape == (TARGET, 8) and "own_output/table" not in arrays


def test_each_side_is_read_with_its_own_pieces(run):
  translator, model = Translator.load(run), runs.open(run).model()
  source, target = "zwei drei", "fünf acht"
  sides = [[*side.encode(text), EOS] for side, text in ((model.tokenizer.source, source), (model.tokenizer, target))]
  pieces = [list(side.pieces(ids)) for side, ids in zip((model.tokenizer.source, model.tokenizer), sides, strict=True)]
  found = translator.attention(source, target)
  assert [list(found.source), list(found.target)] == pieces
  read, m, n = np.array([BOS, *sides[1][:-1]]), len(sides[0]), len(sides[1])
  logits = reference.transformer(
    model.config.model,
    float64(jax.device_get(model.params)),
    **{"source": np.array(sides[0]), "source_positions": np.arange(m), "source_mask": np.ones((m, m), bool)},
    **{"target": read, "target_positions": np.arange(n), "target_mask": np.tri(n, dtype=bool)},
    cross_mask=np.ones((n, m), bool),
  )
  log_probs = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
  [score] = translator.score([(source, target)])
  np.testing.assert_allclose(score.log_probability, np.sum(log_probs[np.arange(n), sides[1]]), rtol=1e-5)
  assert list(translator.next_token(source).source) == pieces[0]
  assert list(head_steps.of_model(model, source).tokens) == pieces[0]
  [translation] = translator.translate([source])
  assert translation == translator.search_tree(source).texts[0]


def test_packing_changes_no_perplexity(config, run):
  """The validation's is that of packed rows, and `score` has each pair alone."""
  sides = (Path(f"{config.data.validation}.{language}").read_text().splitlines() for language in ("en", "de"))
  scores = Translator.load(run).score([*zip(*sides, strict=True)])
  mean = sum(score.log_probability for score in scores) / sum(score.tokens for score in scores)
  *_, last = (line for line in metrics_of(run) if line["split"] == "validation")
  np.testing.assert_allclose(last["perplexity"], np.exp(-mean), rtol=1e-5)


def test_its_copies_are_it(config, run, tmp_path):
  expected = Translator.load(run).translate(["zwei drei", "acht"], return_scores=True)
  export(run, tmp_path / "safetensors", "safetensors")
  assert Translator.load(tmp_path / "safetensors").translate(["zwei drei", "acht"], return_scores=True) == expected
  averaging.average(run, tmp_path / "mean", last=2)
  assert runs.open(tmp_path / "mean").tokenizer.fingerprint() == runs.open(run).tokenizer.fingerprint()
  both = Translator.load([run, tmp_path / "safetensors"]).translate(["zwei drei", "acht"], return_scores=True)
  assert [each.text for each in both] == [each.text for each in expected]


def test_a_new_run_begins_with_it(config, run, tmp_path, capsys):
  flags = {"data.corpus": "text", "data.train": config.data.train, "data.validation": "", "data.test": ""}
  flags |= {"train.init_from": run, "train.steps": 1, "train.batch_tokens": 160, "data.row_length": 40}
  argv = ["train", f"--workdir={tmp_path / 'new'}", *(f"--config.{key}={value}" for key, value in flags.items())]
  assert main([*argv, "--config.model.vocab_size=271"]) == 2
  assert "config.model.vocab_size is 271, but the run in" in capsys.readouterr().err
  assert main(argv) == 0
  said = capsys.readouterr().err
  assert f"config.model.source_vocab_size={SOURCE}" in said and "not there, so random" not in said
  assert json.loads((tmp_path / "new" / "config.json").read_text())["model"]["share_embeddings"] is False
