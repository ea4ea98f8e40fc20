"""ELMo against NumPy; that no direction sees what it predicts; and its mixed layers."""

import dataclasses
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from tests.data.letters import Letters
from tests.language import example
from tests.model.example import float64, random_params
from transformer_jax.config import Config, Corpus, DataConfig, Document, TrainConfig
from transformer_jax.data.blocks import SEGMENTS, TOKENS
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.language.config import ELMoConfig
from transformer_jax.language.elmo import ELMo, Mix, mix
from transformer_jax.model.special_tokens import EOS
from transformer_jax.paper import formulas
from transformer_jax.runs import checkpoint, run_folder
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.tasks.bidirectional import TASK, batch_sums, layers
from transformer_jax.tasks.features import Features
from transformer_jax.training.step import init_state

ROW_LENGTH, VOCAB, MODEL = 13, 31, 11
CONFIG = Config(
  data=DataConfig(row_length=ROW_LENGTH),
  model=ELMoConfig(vocab_size=VOCAB, num_layers=2, d_model=MODEL, dropout=0.0),
  train=TrainConfig(batch_tokens=ROW_LENGTH, label_smoothing=0.0),
)
TEXTS = [[5, 9, 11, 30, 4], [7], [4, 5, 6, 21, 22]]


@pytest.fixture(scope="module")
def params():
  return random_params(CONFIG, TASK)


@pytest.fixture(scope="module")
def layers_of(params):
  return jax.jit(lambda row: layers(ELMo(CONFIG.model), params, row, None))


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def lstm(params, inputs):
  """Hochreiter and Schmidhuber's equations, token by token: `[length, model]` -> `[length, model]`."""
  hidden, cell, found = np.zeros(MODEL), np.zeros(MODEL), []
  for x in inputs:
    i, f, g, o = np.split(x @ params["kernel"] + hidden @ params["recurrent"] + params["bias"], 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    hidden = sigmoid(o) * np.tanh(cell)
    found.append(hidden)
  return np.array(found)


def by_numpy(params, text):
  """All layers of one text: `[3, 2, length, model]`."""
  directions = []
  for name, order in (("forward", slice(None)), ("backward", slice(None, None, -1))):
    x = params["embedding"]["table"][text][order]
    stack = [x]
    for number in range(2):
      hidden = lstm(params[f"{name}_{number}"], x)
      x = hidden + x if number else hidden
      stack.append(x)
    directions.append(np.array(stack)[:, order])
  return np.stack(directions, axis=1)


def test_layers_of_packed_texts_are_those_that_numpy_gives_each_alone(params, layers_of):
  found, start = layers_of(example.row_of(TEXTS, ROW_LENGTH)), 0
  for text in TEXTS:
    expected = by_numpy(float64(params), text)
    np.testing.assert_allclose(found[:, :, start : start + len(text)], expected, atol=1e-5)
    start += len(text)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_of_the_neighbours_in_the_same_text(params, smoothing):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, label_smoothing=smoothing))
  exact, expected, count = float64(params), 0.0, 0
  for text in TEXTS:
    forward, backward = by_numpy(exact, text)[-1] @ exact["embedding"]["table"].T
    for logits, targets in ((forward[:-1], text[1:]), (backward[1:], text[:-1])):
      expected += formulas.cross_entropy(logits, targets, smoothing)
      count += len(targets)
  sums = jax.jit(lambda rows: batch_sums(config, params, rows, None))(example.row_of(TEXTS, ROW_LENGTH)[None])
  assert float(sums.tokens) == count == 2 * (4 + 0 + 4)
  assert float(sums.loss) == pytest.approx(expected, rel=1e-5)


def test_no_direction_sees_what_the_other_reads(layers_of):
  row = example.row_of(TEXTS, ROW_LENGTH)
  changed = row.copy()
  changed[TOKENS, 2] = 19
  before, after = np.asarray(layers_of(row)), np.asarray(layers_of(changed))
  differs = np.any(before[1:] != after[1:], axis=(0, 3))  # [2, length]
  np.testing.assert_array_equal(differs[0], [i in (2, 3, 4) for i in range(ROW_LENGTH)])
  np.testing.assert_array_equal(differs[1], [i in (0, 1, 2) for i in range(ROW_LENGTH)])


def test_mixed_layers():
  generator = np.random.default_rng(0)
  h, s = generator.normal(size=(3, 5, 7)), generator.normal(size=3)
  weights = np.exp(s) / np.exp(s).sum()
  expected = 1.7 * sum(weight * layer for weight, layer in zip(weights, h, strict=True))
  np.testing.assert_allclose(jax.jit(mix)(h, s, 1.7), expected, rtol=1e-5)
  module = Mix()
  variables = module.init(jax.random.key(0), jnp.array(h))
  np.testing.assert_allclose(module.apply(variables, jnp.array(h)), h.mean(axis=0), rtol=1e-5)
  gradient = jax.jit(jax.grad(lambda v: jnp.sum(module.apply(v, jnp.array(h)))))(variables)["params"]
  assert np.all(gradient["weights"] != 0) and float(gradient["gamma"]) == pytest.approx(h.mean(axis=0).sum(), rel=1e-4)


@pytest.mark.long
def test_dropout_changes_each_direction(params):
  model = ELMo(dataclasses.replace(CONFIG.model, dropout=0.5))
  row = example.row_of(TEXTS, ROW_LENGTH)
  one, other = (layers(model, params, row, jax.random.key(seed)) for seed in (0, 1))
  assert row[SEGMENTS, -1] == 0
  assert np.all(np.any(np.asarray(one[1:, :, :11] != other[1:, :, :11]), axis=(2, 3)))


@pytest.mark.long
def test_features_are_those_of_the_last_checkpoint(tmp_path):
  config = dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, vocab_size=270))
  tokenizer = SentencePieceTokenizer.learn(["abacad abba", "dada caba"], 270)
  folder, state = epath.Path(tmp_path / "run"), init_state(config, TASK)
  folder.mkdir()
  run_folder.begin_run(folder, config, tokenizer, [])
  checkpoints = checkpoint.Checkpoints(folder, keep=1)
  checkpoints.save(state, None)
  checkpoints.wait()
  checkpoints.close()
  loaded, direct = Features.load(folder), Features(config, state.params, tokenizer)
  found = loaded.layers("dada abba")
  assert loaded.step == 0 and found.shape[0] == 3 and found.shape[2] == 2 * MODEL
  np.testing.assert_array_equal(found, direct.layers("dada abba"))
  np.testing.assert_allclose(loaded.features("dada abba"), found.mean(axis=0), rtol=1e-5, atol=1e-6)


def test_features_of_a_text_are_those_of_numpy():
  """Both directions concatenated, of the text's tokens alone, and the weighted sum of the layers times gamma."""
  config = dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, vocab_size=128))
  params, text = random_params(config, TASK), "dada\nabba"
  from_left, from_right = np.moveaxis(by_numpy(float64(params), [ord(letter) for letter in text]), 1, 0)
  expected = np.concatenate([from_left, from_right], axis=-1)
  features = Features(config, params, Letters())
  found = features.layers(text)
  assert found.shape == (3, 9, 2 * MODEL)
  np.testing.assert_allclose(found, expected, atol=1e-5)
  weights = np.exp([1, 2, 3]) / np.sum(np.exp([1, 2, 3]))
  mixed = 1.7 * sum(weight * layer for weight, layer in zip(weights, expected, strict=True))
  np.testing.assert_allclose(features.features(text, [1, 2, 3], 1.7), mixed, atol=1e-5)
  np.testing.assert_allclose(features.features(text), expected.mean(axis=0), atol=1e-5)
  assert features.layers("").shape == (3, 0, 2 * MODEL)
  assert "".join(features.tokens("dadabba")) == "dadabba" and len(features.tokens(text)) == 9


@pytest.mark.parametrize("document", [Document.LINE, Document.PARAGRAPH])
def test_features_are_of_a_text_with_the_end_that_training_had(document, tmp_path):
  config = dataclasses.replace(
    CONFIG,
    data=DataConfig(corpus=Corpus.TEXT, document=document, row_length=ROW_LENGTH, cache_dir=str(tmp_path)),
    model=dataclasses.replace(CONFIG.model, vocab_size=128),
  )
  (tmp_path / "text").write_text("dad\n\nabba\n")
  [row] = np.asarray(TASK.packed_rows(config, str(tmp_path / "text"), Letters()).rows)
  dad, abba = ([ord(letter) for letter in text] for text in ("dad", "abba"))
  assert row[TOKENS, :9].tolist() == [*dad, EOS, *abba, EOS]
  params = random_params(config, TASK)
  from_left, from_right = np.moveaxis(by_numpy(float64(params), [*abba, EOS]), 1, 0)
  expected = np.concatenate([from_left, from_right], axis=-1)[:, :-1]
  np.testing.assert_allclose(Features(config, params, Letters()).layers("abba"), expected, atol=1e-5)


def test_the_classifier_of_the_page():
  """It is the linear layer of the mean over the tokens of the mixed layers."""
  page = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
  [source] = [block for block in re.findall("```python\n(.*?)```", page, flags=re.DOTALL) if "class Head" in block]
  found = {}
  exec(source, found)
  layers = np.random.default_rng(0).normal(size=(3, 5, 14)).astype(np.float32)
  params = found["Head"]().init(jax.random.key(0), layers)["params"]
  dense = params["Dense_0"]
  expected = layers.mean(axis=(0, 1)) @ dense["kernel"] + dense["bias"]  # untrained, all layers have the same weight
  np.testing.assert_allclose(found["Head"]().apply({"params": params}, layers), expected, atol=1e-5)


def test_what_features_cannot_be_of():
  config = dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, vocab_size=128))
  params = random_params(config, TASK)
  features = Features(config, params, Letters())
  for text in (5, None, ["ab"]):
    with pytest.raises(InputError, match=r"the text is of type .*, but must be a str"):
      features.features(text)
  for weights in ([1, 2], [[1, 2, 3]], [1, 2, np.nan], ["a"], [[1], [1, 2]]):
    with pytest.raises(InputError, match="but must be 3 finite numbers, one for each layer"):
      features.features("ab", weights)
  broken = Features(config, jax.tree.map(lambda x: x * np.nan, params), Letters())
  with pytest.raises(RunError, match="NaN"):
    broken.layers("ab")


def test_gamma_is_1_unless_it_is_given():
  found = mix(jnp.arange(6.0).reshape(3, 2), jnp.zeros(3))
  np.testing.assert_allclose(found, [2.0, 3.0], rtol=1e-6)
