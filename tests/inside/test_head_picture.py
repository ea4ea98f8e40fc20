"""One head, step by step: its numbers against eq. 1 in NumPy and the layer's output; the picture; the command."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.inside import head_steps
from transformer_jax.model.config import Remat
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runs.run import Model
from transformer_jax.runtime.errors import InputError


def require_equation_1(steps):
  """q, k and v are x times the matrices, and z is softmax(q k^T / sqrt(d_k)) v, in float64."""
  x, (w_q, w_k, w_v) = np.float64(steps.x), map(np.float64, steps.matrices)
  q, k, v = x @ w_q, x @ w_k, x @ w_v
  for shown, expected in zip((steps.q, steps.k, steps.v), (q, k, v), strict=True):
    np.testing.assert_allclose(shown, expected, rtol=1e-4, atol=1e-5)
  scores = q @ k.T / np.sqrt(q.shape[1])
  weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
  np.testing.assert_allclose(steps.scores, scores, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(steps.weights, weights, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(steps.z, weights @ v, rtol=1e-4, atol=1e-5)


def test_the_toy_by_hand():
  steps = head_steps.toy()
  require_equation_1(steps)
  assert steps.x.shape == (3, 4) and steps.tokens == ("I", "love", "you")
  assert steps.q[2].tolist() == [2, 1, 0, 2] and steps.k[2].tolist() == [1, 1, 2, 1]
  assert steps.scores.tolist() == [[2, 0, 3], [0, 2, 1], [3, 1, 2.5]]


def test_scores_outside_of_a_window_are_masked(translator):
  model = dataclasses.replace(translator.config.model, attention_window=1)
  config = dataclasses.replace(translator.config, model=model)
  steps = head_steps.of_model(Model(config, translator.params, translator._tokenizer, 0), "abc de", 1)
  places = np.arange(len(steps.tokens))
  outside = np.abs(places[:, None] - places) > 1
  assert np.array_equal(np.isneginf(steps.scores), outside) and outside.any()
  weights = np.exp(steps.scores) / np.exp(steps.scores).sum(axis=1, keepdims=True)
  np.testing.assert_allclose(steps.weights, weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("remat", [Remat.LAYER, pytest.param(Remat.ATTENTION, marks=pytest.mark.long)])
def test_a_model_that_was_trained_with_less_memory(translator, remat):
  config = translator.config
  rematerialized = dataclasses.replace(config, model=dataclasses.replace(config.model, remat=remat))
  found = [
    head_steps.of_model(Model(each, translator.params, translator._tokenizer, 0), "abc de", 1)
    for each in (config, rematerialized)
  ]
  np.testing.assert_array_equal(found[0].z, found[1].z)
  np.testing.assert_array_equal(found[0].scores, found[1].scores)


def test_a_masked_score_is_no_number():
  pytest.importorskip("matplotlib", reason="matplotlib is missing: pip install -e '.[pictures]'")
  from transformer_jax.inside.head_picture import _number

  assert [_number(value, whole=True) for value in (-np.inf, 3.0)] == ["mask", "3"]


def test_the_numbers_are_those_of_the_model(translator):
  """The heads' z, through W^O and added up, are the output of the model's own layer."""
  tokenizer, text = translator._tokenizer, "abc de"
  found = Model(translator.config, translator.params, tokenizer, 0)
  heads = [head_steps.of_model(found, text, 1, head) for head in (1, 2)]
  for steps in heads:
    require_equation_1(steps)
  layer = translator.params["encoder"]["layers_0"]["attention"]
  tokens = jnp.array([*tokenizer.encode(text), EOS])
  n = len(tokens)

  @jax.jit
  def encode(params):
    ours = {"params": params}
    options = {"method": "encode", "capture_intermediates": True, "mutable": ["intermediates"]}
    return translator._model.apply(ours, tokens, jnp.arange(n), jnp.ones((n, n), bool), **options)[1]

  captured = encode(translator.params)["intermediates"]["encoder"]["layers_0"]["attention"]
  w_o = np.asarray(layer["output"]["kernel"])
  together = sum(steps.z @ w_o[head] for head, steps in enumerate(heads))
  np.testing.assert_allclose(together, captured["__call__"][0], rtol=1e-4, atol=1e-6)
  for head, steps in enumerate(heads):
    np.testing.assert_allclose(steps.weights, captured["attention_weights"][0][head], atol=1e-6)
    np.testing.assert_allclose(steps.matrices[1], layer["key"]["kernel"][:, head])
  assert heads[0].tokens == tuple(tokenizer.pieces(tokens.tolist())) and heads[1].title.startswith("layer 1, head 2")


def large(n):
  """Steps with numbers that have many digits."""
  steps, generator = head_steps.toy(), np.random.default_rng(0)
  wide = {name: 30 * generator.normal(size=(n, 37)) for name in ("x", "q", "k", "v", "z")}
  weights = generator.dirichlet(np.ones(n), n)
  tokens = (" Donaudampfschifffahrt", "$x$", "\n", "Ж", " ", "<0xE2>", "</s>")[:n]
  return steps._replace(tokens=tokens, scores=1e4 * generator.normal(size=(n, n)), weights=weights, **wide)


@pytest.mark.parametrize(("steps", "word"), [(None, None), pytest.param(7, 7, marks=pytest.mark.long), (1, None)])
def test_the_picture(picture, steps, word):
  from tests.inside.drawn import require_readable, texts

  steps = head_steps.toy() if steps is None else large(steps)
  figure = picture.draw(steps, word)
  require_readable(figure)
  shown = texts(figure)
  assert {"x", "q", "k", "v", "scores", "weights", "z"} <= {*shown}
  for value in steps.weights.ravel():
    assert f"{value:.2f}" in shown
  with pytest.raises(InputError, match="--word is 8, but must be from 1 to"):
    picture.draw(steps, 8)


def test_each_matrix_has_its_numbers_and_the_frames_are_of_the_word(picture):
  from tests.inside.drawn import texts

  steps = head_steps.toy()
  figure = picture.draw(steps, 3)
  [axis], shown = figure.axes, texts(figure)
  matrices = dict(zip(("W_Q", "W_K", "W_V"), steps.matrices, strict=True))
  matrices |= {name: getattr(steps, name) for name in ("x", "q", "k", "v", "scores", "weights", "z")}
  for name, values in matrices.items():  # behind the title: the formula and the numbers of the columns
    first = shown.index(name) + 2 + values.shape[1]
    assert [float(text) for text in shown[first : first + values.size]] == pytest.approx(values.ravel(), abs=0.006)
  rows = {round(text.get_position()[1], 6) for text in axis.texts if text.get_text() == "3 you"}
  framed = [patch for patch in axis.patches if patch.get_linewidth() == 1.8]
  assert len(framed) == 5 and {round(box.get_y() + box.get_height() / 2, 6) for box in framed} == rows
  assert any(text.endswith("in the thick frames is query 3, you") for text in shown)


@pytest.mark.parametrize(("layer", "place"), [(None, 2), (1, 0), (2, 1)])
def test_the_layer_is_the_last_unless_it_is_given(translator, monkeypatch, layer, place):
  model = dataclasses.replace(translator.config.model, encoder_layers=3)
  params = {"encoder": {f"layers_{i}": {"attention": np.float32(i)} for i in range(3)}}
  monkeypatch.setattr(head_steps, "_captured", lambda module, path, *_, **__: path)
  monkeypatch.setattr(head_steps, "_steps", lambda captured, params, head, title, *_: (captured, float(params), title))
  config = dataclasses.replace(translator.config, model=model)
  found = head_steps.of_model(Model(config, params, translator._tokenizer, 0), "abc", layer)
  path = "encoder", f"layers_{place}", "attention"
  assert found == (path, place, f"layer {place + 1}, head 1 of the encoder")


def test_a_long_sentence(picture):
  with pytest.raises(InputError, match="the sentence has 8 tokens with its end, but the picture has room for 7"):
    picture.draw(head_steps.toy()._replace(q=np.zeros((8, 4))))


@pytest.fixture
def run(command):
  return lambda *argv: command("self-attention", *argv)


def test_the_command(run, workdir, tmp_path):
  pytest.importorskip("matplotlib")
  output = tmp_path / "head.svg"
  status, out, err = run("--output", output)
  assert (status, out, err) == (0, f"{output}\n", []) and "<!-- 2 love -->" in output.read_text()
  trained = ["--workdir", workdir, "--sentence", "a"]
  status, out, err = run(*trained, "--layer", 1, "--head", 2, "--output", output)
  assert (status, out) == (0, f"{output}\n") and "layer 1, head 2 of the encoder" in output.read_text()
  for argv, message in (
    (["--head", 2], "--head is for a trained model: give its run with --workdir"),
    (["--step", 5], "--step is for a trained model: give its run with --workdir"),
    (["--accept-edits"], "--accept-edits is for a trained model: give its run with --workdir"),
    (["--workdir", workdir], "--sentence is missing"),
    ([*trained, "--head", 3], "--head is 3, but must be from 1 to 2"),
    ([*trained, "--head", 0], "--head is 0, but must be from 1 to 2"),
    ([*trained, "--layer", 0], "--layer is 0, but must be from 1 to 1"),
    (["--workdir", workdir, "--sentence", " "], "the sentence is empty"),
    (["--word", 4], "--word is 4, but must be from 1 to 3"),
  ):
    status, out, err = run(*argv, "--output", output)
    assert (status, out) == (2, "") and message in err[-1]
