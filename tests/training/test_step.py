import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model import reference
from tests.model.example import float64, perturbed
from transformer_jax import parallel
from transformer_jax.config import Config, DataConfig, ModelConfig, TrainConfig
from transformer_jax.data.packing import PackingReport, pack
from transformer_jax.data.pipeline import Batch, Batches, PackedRows
from transformer_jax.data.tokenizer import BOS
from transformer_jax.model.transformer import Transformer
from transformer_jax.training.step import (
  batch_sums,
  decoder_input,
  decoder_output,
  eval_step,
  init_params,
  init_state,
  segment_positions,
  train_step,
)

ROW_LENGTH, VOCAB, ROWS, STEPS = 13, 31, 5, 10
CONFIG = Config(
  data=DataConfig(row_length=ROW_LENGTH),
  model=ModelConfig(vocab_size=VOCAB, num_layers=1, d_model=14, d_ff=29, num_heads=2, dropout=0.3),
  train=TrainConfig(batch_tokens=ROWS * ROW_LENGTH, warmup_steps=3, peak_learning_rate=1e-2, seed=7),
)


def copying_pairs(count: int, seed: int = 0):
  """Pairs whose two sides are equal, of 2 to 11 tokens."""
  generator = np.random.default_rng(seed)
  sentences = [generator.integers(4, VOCAB, size=generator.integers(2, 12)).tolist() for _ in range(count)]
  return [(sentence, sentence) for sentence in sentences]


def packed(pairs) -> np.ndarray:
  """Rows `[rows, 4, ROW_LENGTH]`."""
  return np.concatenate(list(pack(pairs, ROW_LENGTH, np.uint16)))


segments = st.lists(st.integers(1, 5), max_size=7).map(lambda lengths: [1 + i for i, n in enumerate(lengths) for _ in range(n)])


@settings(deadline=None)
@given(segments.filter(lambda segments: len(segments) <= 17), st.randoms(use_true_random=False))
def test_positions_and_decoder_input_start_again_in_each_segment(segments, random):
  segments += [0] * (17 - len(segments))  # one shape, one compilation
  target = [random.randrange(4, VOCAB) for _ in segments]
  positions, shifted = [], []
  for i, segment in enumerate(segments):
    new = i == 0 or segment != segments[i - 1]
    positions.append(0 if new else positions[-1] + 1)
    shifted.append(BOS if new else target[i - 1])
  np.testing.assert_array_equal(jitted_positions(np.array(segments)), positions)
  np.testing.assert_array_equal(jitted_decoder_input(np.array(target), np.array(positions)), shifted)


jitted_positions, jitted_decoder_input = jax.jit(segment_positions), jax.jit(decoder_input)


class TestPackedEqualsUnpacked:
  config = dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, num_layers=2))
  pairs = [([4, 5, 6], [7, 8]), ([9, 10, 11, 12], [13, 14, 15, 16, 17]), ([18], [19, 20, 21, 22])]

  @pytest.fixture(scope="class")
  def params(self):
    return perturbed(init_params(self.config))

  @pytest.fixture(scope="class")
  def logits(self, params):
    """`[4, ROW_LENGTH]` -> `[ROW_LENGTH, vocab]`."""
    model = Transformer(self.config.model)

    def logits(row):
      hidden = decoder_output(model, params, row, None)
      return model.apply({"params": params}, hidden, method="logits")

    return jax.jit(logits)

  def test_logits(self, params, logits):
    (row,) = packed(self.pairs)
    together, start = logits(row), 0
    for source, target in self.pairs:
      own = together[start : start + len(target)]
      (alone,) = packed([(source, target)])
      np.testing.assert_allclose(own, logits(alone)[: len(target)], atol=1e-6)
      np.testing.assert_allclose(own, self.without_padding(params, source, target), atol=5e-5)
      start += len(target)

  def without_padding(self, params, source, target):
    n, m = len(source), len(target)
    inputs = np.array(source), np.array([BOS, *target[:-1]]), np.arange(n), np.arange(m)
    masks = np.ones((n, n), bool), np.tri(m, dtype=bool), np.ones((m, n), bool)
    return reference.transformer(self.config.model, float64(params), *inputs, *masks)

  def test_loss(self, params):
    sums_of = jax.jit(lambda rows: batch_sums(self.config, params, rows, None))
    empty = np.zeros((1, 4, ROW_LENGTH), np.uint16)
    together = sums_of(np.concatenate([packed(self.pairs), empty, empty]))  # three rows, as below
    alone = sums_of(np.concatenate([packed([pair]) for pair in self.pairs]))
    assert float(together.tokens) == float(alone.tokens) == 11
    assert float(together.loss) == pytest.approx(float(alone.loss), rel=1e-6)
    likelihood = float(together.negative_log_likelihood)
    assert likelihood == pytest.approx(float(alone.negative_log_likelihood), rel=1e-6)


def over(devices: int, function, out_axes):
  return jax.pmap(
    function, axis_name=parallel.AXIS, in_axes=(None, 0), out_axes=out_axes, devices=jax.devices()[:devices]
  )


def shares(batch: Batch, devices: int) -> Batch:
  return jax.tree.map(lambda x: x.reshape(devices, -1, *x.shape[1:]), batch)


def train(devices: int, accumulation: int):
  """Ten steps of ROWS rows, filled up with empty ones where they must be shared out; the state and the losses."""
  rows = packed(copying_pairs(60))
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, accumulation=accumulation))
  batches = Batches(PackedRows(rows, PackingReport(), ""), ROWS, config.train.seed, multiple=devices * accumulation)
  step = over(devices, functools.partial(train_step, config), out_axes=(None, None))
  state, history = init_state(config), []
  for i in range(STEPS):
    state, metrics = step(state, shares(batches[i], devices))
    history.append(jax.device_get(metrics))  # waits, as queued steps of several CPU devices can deadlock
  return jax.device_get(state), history


class TestTenSteps:
  """With dropout; a batch is 5 rows, no two with the same number of tokens."""

  @pytest.fixture(scope="class")
  def one_device(self):
    return train(devices=1, accumulation=1)

  @pytest.mark.parametrize(("devices", "accumulation"), [(8, 1), (1, 4), (2, 4)])
  def test_devices_and_accumulation_change_nothing(self, one_device, devices, accumulation):
    state, history = train(devices, accumulation)
    for one, other in zip(history, one_device[1], strict=True):
      jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5), one, other)
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=2e-6), state.params, one_device[0].params)

  def test_the_loss_falls(self, one_device):
    losses = [metrics["sums"].loss / metrics["sums"].tokens for metrics in one_device[1]]
    assert np.mean(losses[-3:]) < losses[0] - 0.2

  def test_metrics(self, one_device):
    state, history = one_device
    assert state.step == STEPS and state.step.dtype == np.int32
    for step, metrics in enumerate(history, 1):
      expected = 1e-2 * 3**0.5 * min(step**-0.5, step * 3**-1.5)
      assert metrics["learning_rate"] == pytest.approx(expected, rel=1e-6)
      assert 0 < metrics["gradient_norm"] < 100
      assert 0 < metrics["sums"].correct + 1 <= metrics["sums"].tokens <= ROWS * ROW_LENGTH

  def test_everything_was_trained(self, one_device):
    moved = jax.tree.map(lambda new, old: np.any(new != old), one_device[0].params, jax.device_get(init_params(CONFIG)))
    assert all(jax.tree.leaves(moved))


class TestDropoutKeys:
  rows = np.repeat(packed(copying_pairs(60))[:1], 2, axis=0)

  @pytest.fixture(scope="class")
  def loss(self):
    """(state, batch of two rows) -> the loss."""
    step = over(1, functools.partial(train_step, CONFIG), out_axes=(None, None))
    return lambda state, index: float(step(state, shares(Batch(self.rows, np.int32(index)), 1))[1]["sums"].loss)

  def test_a_row_is_keyed_by_its_place_in_the_whole_batch(self, loss):
    state = init_state(CONFIG)
    assert loss(state, [0, 1]) == loss(state, [0, 1])
    assert loss(state, [0, 1]) == pytest.approx(loss(state, [1, 0]), rel=1e-6)
    assert abs(loss(state, [0, 1]) - loss(state, [2, 3])) > 1e-3

  def test_each_step_has_other_keys(self, loss):
    state = init_state(CONFIG)
    assert abs(loss(state, [0, 1]) - loss(state.replace(step=state.step + 1), [0, 1])) > 1e-3


def test_evaluation_sums_over_devices_without_dropout():
  rows = packed(copying_pairs(60))[:8]
  params = init_params(CONFIG)
  batch = Batch(rows, np.arange(8, dtype=np.int32))
  sums = over(8, functools.partial(eval_step, CONFIG), out_axes=None)(params, shares(batch, 8))
  expected = batch_sums(CONFIG, params, jnp.asarray(rows), None)
  jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5), sums, expected)


def test_the_seed_decides_the_first_parameters():
  params = init_params(CONFIG)
  jax.tree.map(np.testing.assert_array_equal, params, init_params(CONFIG))
  other = init_params(dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, seed=8)))
  assert np.any(params["target_embedding"]["table"] != other["target_embedding"]["table"])
