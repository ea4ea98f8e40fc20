"""Word vectors in the tables of embeddings, and tables that training does not change."""

import dataclasses
import functools

import jax
import numpy as np
import optax
import pytest

from tests.language import example
from tests.training.test_step import CONFIG, ROWS, copying_pairs, over, packed, shares
from transformer_jax.config import Config, DataConfig, Optimizer
from transformer_jax.data.batches import Batch, Batches
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.word_vectors import WordVectors
from transformer_jax.model.params import by_name
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import abstract_params
from transformer_jax.training.optimizer import gradient_norm, learning_rate, optimizer, updates_made
from transformer_jax.training.pretrained_embeddings import tables, with_vectors
from transformer_jax.training.step import begin_with, init_state, train_step

SEPARATE = dataclasses.replace(
  CONFIG,
  model=dataclasses.replace(CONFIG.model, share_embeddings=False, share_logits=False),
  train=dataclasses.replace(CONFIG.train, init_from="another run", freeze_embeddings=True, ema_decay=0.9),
)
FILLED = {"target_embedding/table", "own_source_embedding/table"}
PIECES = np.array([11, 5, 29])
VECTORS = WordVectors(PIECES, np.float32(np.random.default_rng(0).standard_normal((3, 14)) * [[3], [1], [20]]))


@pytest.fixture(scope="module")
def begun():
  return jax.jit(lambda: init_state(SEPARATE, TASK))()


def rms(rows) -> np.ndarray:
  return np.array([np.sqrt(sum(float(x) ** 2 for x in row) / len(row)) for row in rows])


def test_vectors_are_as_large_as_the_rows_that_they_replace(begun):
  before, after = by_name(begun.params), by_name(with_vectors(begun.params, VECTORS))
  for name, leaf in before.items():
    if name not in FILLED:
      np.testing.assert_array_equal(after[name], leaf)
      continue
    table, others = np.asarray(after[name]), np.setdiff1d(np.arange(len(leaf)), PIECES)
    np.testing.assert_array_equal(table[others], np.asarray(leaf)[others])
    assert np.mean(rms(table[PIECES])) == pytest.approx(np.mean(rms(leaf)), rel=1e-5)
    scales = table[PIECES] / VECTORS.vectors
    np.testing.assert_allclose(scales, scales[0, 0], rtol=1e-5)
    assert scales[0, 0] > 0 and table.dtype == np.float32


def test_vectors_without_a_length_or_a_place_are_refused(begun):
  with pytest.raises(InputError, match=r"config\.train\.embeddings: all vectors .* are 0"):
    with_vectors(begun.params, WordVectors(PIECES, np.zeros((3, 14), np.float32)))
  for params in ({"positions": {"table": np.ones((2, 3))}}, {"embedding": {"matrix": np.ones((2, 3))}}):
    with pytest.raises(InputError, match=r"this model has none"):
      tables(params)


def test_the_norm_is_of_the_gradients_that_are_used(begun):
  gradients = jax.tree.map(
    lambda leaf: np.float32(np.random.default_rng(leaf.size).standard_normal(leaf.shape)), begun.params
  )
  expected = [np.sum(leaf**2) for name, leaf in by_name(gradients).items() if name not in FILLED]
  assert float(gradient_norm(SEPARATE, gradients)) == pytest.approx(np.sqrt(np.sum(expected)), rel=1e-5)
  assert gradient_norm(CONFIG, gradients) > gradient_norm(SEPARATE, gradients)


@pytest.mark.parametrize("kind", Optimizer)
def test_frozen_tables_do_not_decay_and_count_for_nothing_where_gradients_are_clipped(kind):
  """Adam's first update is g / (|g| + epsilon), so with a large epsilon it tells the size of the clipped gradient g."""
  recipe = {"optimizer": kind, "weight_decay": 0.5 * (kind is Optimizer.ADAMW), "clip_norm": 3.0, "epsilon": 1.0}
  config = dataclasses.replace(SEPARATE, train=dataclasses.replace(SEPARATE.train, **recipe))
  generator = np.random.default_rng(0)
  params, gradients = (
    {
      "embedding": {"table": scale * generator.standard_normal((5, 7), np.float32)},
      "dense": {"kernel": generator.standard_normal((7, 3), np.float32)},
    }
    for scale in (1, 100)
  )
  update = optimizer(config)
  found, _ = update.update(gradients, update.init(params), params)
  clipped = gradients["dense"]["kernel"] * 3.0 / np.linalg.norm(gradients["dense"]["kernel"])
  direction = clipped / (np.abs(clipped) + 1) + recipe["weight_decay"] * params["dense"]["kernel"]
  np.testing.assert_allclose(found["dense"]["kernel"], -learning_rate(config)(0) * direction, rtol=1e-4)
  assert np.linalg.norm(gradients["dense"]["kernel"]) > 3 and not np.any(found["embedding"]["table"])


@pytest.mark.long
def test_the_optimizer_leaves_frozen_tables_as_they_are(begun):
  """Whatever their gradients; the other parameters change."""
  update = optimizer(SEPARATE)
  params, state = begun.params, update.init(begun.params)
  for seed in (1, 2):
    draw = np.random.default_rng(seed).standard_normal
    gradients = jax.tree.map(lambda leaf: np.float32(draw(leaf.shape)), params)  # noqa: B023
    updates, state = update.update(gradients, state, params)
    params = optax.apply_updates(params, updates)
  before = by_name(begun.params)
  assert {name for name, leaf in by_name(params).items() if np.array_equal(leaf, before[name])} == FILLED
  assert int(updates_made(state)) == 2


def trained(state, devices: int):
  rows = packed(copying_pairs(60))
  batches = Batches(PackedRows(rows, PackingReport(), ""), ROWS, SEPARATE.train.seed, multiple=devices)
  step = over(devices, functools.partial(train_step, SEPARATE, TASK), out_axes=(None, None))
  for i in range(3):
    state, metrics = step(state, shares(batches[i], devices))
    jax.block_until_ready(metrics)
  return jax.device_get(state)


@pytest.mark.long
def test_frozen_tables_keep_their_bits_on_one_device_and_on_eight(begun):
  start = begin_with(begun, with_vectors(begun.params, VECTORS))
  one, eight = trained(start, 1), trained(start, 8)
  before = by_name(start.params)
  for state in (one, eight):
    same = {name for name, leaf in by_name(state.params).items() if np.array_equal(leaf, before[name])}
    assert same == FILLED
  for name in FILLED:
    np.testing.assert_array_equal(by_name(one.average)[name], before[name])
  for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(eight), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
  ("model", "table"), [(example.GPT, "embedding/table"), (example.BERT, "trunk/embedding/table")], ids=["gpt", "bert"]
)
def test_the_table_of_a_language_model_is_that_of_its_tokens_alone(model, table):
  """Those of positions and of token types are none."""
  shapes = abstract_params(Config(data=DataConfig(row_length=13), model=model))
  assert [name for name, is_one in by_name(tables(shapes)).items() if is_one] == [table]


@pytest.mark.long
def test_an_update_tells_the_norm_of_the_gradients_that_it_uses(begun):
  """Adam's first moment after one update is 1 - beta1 times them."""
  batch = Batch(packed(copying_pairs(60))[:ROWS], np.arange(ROWS, dtype=np.int32))
  after, metrics = jax.jit(functools.partial(train_step, SEPARATE, TASK))(begun, batch)
  used = float(optax.tree.norm(optax.tree.get(after.optimizer, "mu"))) / (1 - SEPARATE.train.beta1)
  assert float(metrics["gradient_norm"]) == pytest.approx(used, rel=1e-5)
