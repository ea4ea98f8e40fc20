import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.example import float64, random_params, random_state
from tests.on_devices import over, shares
from transformer_jax.config import Config, DataConfig, Optimizer, Schedule, TrainConfig
from transformer_jax.data.batches import Batch, Batches
from transformer_jax.data.packing import TARGET, TARGET_SEGMENTS, pack
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.special_tokens import BOS
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.runtime import devices
from transformer_jax.tasks.translation import TASK, batch_sums, decoder_input, decoder_output, segment_positions
from transformer_jax.training.initialization import init_params
from transformer_jax.training.step import (
  abstract_state,
  begin_with,
  eval_step,
  init_state,
  train_step,
  update_on_devices,
)
from transformer_jax.training.sums import Sums

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


@st.composite
def rows_of_segments(draw):
  """Segments numbered from 1, then padding; always 17, for one compilation."""
  segments = [1 + i for i, length in enumerate(draw(st.lists(st.integers(1, 7), max_size=5))) for _ in range(length)]
  return (segments + [0] * 17)[:17]


jitted_positions, jitted_decoder_input = jax.jit(segment_positions), jax.jit(decoder_input)


@settings(deadline=None)
@given(rows_of_segments(), st.lists(st.integers(4, VOCAB - 1), min_size=17, max_size=17))
def test_positions_and_decoder_input_start_again_in_each_segment(segments, target):
  positions, shifted = [], []
  for i, segment in enumerate(segments):
    new = i == 0 or segment != segments[i - 1]
    positions.append(0 if new else positions[-1] + 1)
    shifted.append(BOS if new else target[i - 1])
  np.testing.assert_array_equal(jitted_positions(np.array(segments)), positions)
  np.testing.assert_array_equal(jitted_decoder_input(np.array(target), np.array(positions), BOS), shifted)


PAIRS = [([4, 5, 6], [7, 8]), ([9, 10, 11, 12], [13, 14, 15, 16, 17]), ([18], [19, 20, 21, 22])]


@pytest.fixture(scope="module")
def params():
  return random_params(CONFIG, TASK)


def test_packed_pairs_have_the_logits_that_each_has_alone(params):
  model = Transformer(CONFIG.model)

  @jax.jit
  def logits_of(row):
    return model.apply({"params": params}, decoder_output(model, params, row, None), method="logits")

  (row,) = packed(PAIRS)
  together, start = logits_of(row), 0
  for source, target in PAIRS:
    logits = together[start : start + len(target)]
    (alone,) = packed([(source, target)])
    np.testing.assert_allclose(logits, logits_of(alone)[: len(target)], atol=1e-6)
    np.testing.assert_allclose(logits, formulas.transformer(float64(params), source, target), atol=5e-5)
    start += len(target)


def test_packed_pairs_have_the_loss_that_they_have_alone(params):
  sums_of = jax.jit(lambda rows: batch_sums(CONFIG, params, rows, None))
  empty = np.zeros((1, 4, ROW_LENGTH), np.uint16)
  together = sums_of(np.concatenate([packed(PAIRS), empty, empty]))  # three rows, as below
  alone = sums_of(np.concatenate([packed([pair]) for pair in PAIRS]))
  assert float(together.tokens) == sum(len(target) for _, target in PAIRS)
  for one, other in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
    assert float(one) == pytest.approx(float(other), rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("smoothing", [0.1, 0.3])
def test_an_update_has_the_loss_of_the_configs_label_smoothing(params, smoothing):
  config = dataclasses.replace(
    CONFIG,
    model=dataclasses.replace(CONFIG.model, dropout=0.0),
    train=dataclasses.replace(CONFIG.train, label_smoothing=smoothing),
  )
  expected = sum(
    formulas.cross_entropy(formulas.transformer(float64(params), source, target), target, smoothing)
    for source, target in PAIRS
  )
  rows = packed(PAIRS)
  state = init_state(config, TASK).replace(params=params)
  batch = shares(Batch(rows, np.arange(len(rows), dtype=np.int32)), 1)
  _, metrics = over(1, functools.partial(train_step, config, TASK))(state, batch)
  assert float(metrics["sums"].loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.long
def test_an_update_under_jit_alone_is_that_of_one_device():
  """Equal to rounding: XLA is free to fuse the two programs differently."""
  state, rows = init_state(CONFIG, TASK), packed(copying_pairs(60))[:ROWS]
  batch = Batch(rows, np.arange(len(rows), dtype=np.int32))
  step = functools.partial(train_step, CONFIG, TASK)
  alone = jax.jit(step)(state, batch)
  mapped = over(1, step)(state, shares(batch, 1))
  for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(mapped), strict=True):
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, atol=1e-7)
  sums = jax.jit(functools.partial(eval_step, CONFIG, TASK))(state.params, batch)
  assert float(sums.loss) > 0 and float(sums.tokens) == float(alone[1]["sums"].tokens)


@pytest.mark.long
def test_a_task_with_another_loss_is_trained_with_it():
  def doubled(config, params, rows, keys):
    sums = TASK.batch_sums(config, params, rows, keys)
    return dataclasses.replace(sums, loss=2 * sums.loss)

  state, rows = init_state(CONFIG, TASK), packed(copying_pairs(60))[:ROWS]
  batch = Batch(rows, np.arange(len(rows), dtype=np.int32))
  (_, usual), (_, other) = (
    jax.jit(functools.partial(train_step, CONFIG, task))(state, batch)
    for task in (TASK, dataclasses.replace(TASK, batch_sums=doubled))
  )
  assert float(other["sums"].loss) == pytest.approx(2 * float(usual["sums"].loss))
  assert float(other["gradient_norm"]) == pytest.approx(2 * float(usual["gradient_norm"]), rel=1e-5)


def accumulating(accumulation: int) -> Config:
  return dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, accumulation=accumulation))


@functools.cache
def update(count: int = 1, accumulation: int = 1):
  """The training step on `count` devices, traced and compiled once for all tests."""
  return over(count, functools.partial(train_step, accumulating(accumulation), TASK))


def placed(state, count: int = 1):
  """The state on `count` devices, as an update returns it: for another placement the update is compiled again."""
  mesh = jax.sharding.Mesh(np.array(jax.devices()[:count]), (devices.AXIS,))
  return jax.device_put(state, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


def train(count: int, accumulation: int):
  """Ten steps with dropout; the state and the metrics.

  A batch is five rows with different numbers of tokens, filled up with empty
  rows where five cannot be shared out.
  """
  rows, config = packed(copying_pairs(60)), accumulating(accumulation)
  batches = Batches(PackedRows(rows, PackingReport(), ""), ROWS, config.train.seed, multiple=count * accumulation)
  state, history = placed(random_state(config, TASK), count), []
  for i in range(STEPS):
    state, metrics = update(count, accumulation)(state, shares(batches[i], count))
    history.append(jax.device_get(metrics))  # waits, as queued steps of several CPU devices can deadlock
  return jax.device_get(state), history


@pytest.fixture(scope="module")
def one_device():
  return train(1, accumulation=1)


@pytest.mark.parametrize(("count", "accumulation"), [pytest.param(8, 1, marks=pytest.mark.long), (2, 4)])
def test_devices_and_accumulation_change_nothing(one_device, count, accumulation):
  state, history = train(count, accumulation)
  for one, other in zip(history, one_device[1], strict=True):
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5), one, other)
  jax.tree.map(functools.partial(np.testing.assert_allclose, atol=2e-6), state.params, one_device[0].params)


@pytest.mark.parametrize("parts", [2, 4])
def test_accumulation_computes_one_part_after_the_other(parts):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, accumulation=parts))
  batch = Batch(np.zeros((8, 4, ROW_LENGTH), np.uint16), np.arange(8, dtype=np.int32))
  jaxpr = jax.make_jaxpr(functools.partial(train_step, config, TASK))(abstract_state(config, TASK), batch)
  assert [e.params["length"] for e in jaxpr.eqns if e.primitive.name == "scan"] == [parts]


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_a_state_begins_with_given_parameters(decay):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, ema_decay=decay))
  state, params = abstract_state(config, TASK), {"w": np.array([2.0, 3.0])}
  begun = begin_with(state, params)
  assert begun.params is params and begun.step is state.step and begun.optimizer is state.optimizer
  assert (begun.average is None) == (decay == 0)
  if begun.average is not None:
    np.testing.assert_array_equal(begun.average["w"], params["w"])
    assert begun.average["w"] is not params["w"]


def test_r_drop_has_two_passes_with_other_dropout():
  rows, params = packed(copying_pairs(7)), random_params(CONFIG, TASK)
  keys = jax.random.split(jax.random.key(3), len(rows))

  def sums(keys, **train):
    config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, **train))
    return jax.jit(functools.partial(batch_sums, config))(params, rows, keys)

  of_pass = jax.jit(lambda keys: batch_sums(CONFIG, params, rows, keys))
  one, other = of_pass(keys), of_pass(jax.vmap(lambda key: jax.random.fold_in(key, 2))(keys))
  both, agreeing = (sums(keys, r_drop=alpha) for alpha in (1e-30, 5.0))
  assert abs(one.loss - other.loss) > 1e-3
  for found, *passes in zip(*map(jax.tree.leaves, (both, one, other)), strict=True):
    np.testing.assert_allclose(found, np.mean(passes), rtol=1e-5)
  assert agreeing.loss > both.loss + 1e-3
  # Validation has no dropout, and one pass.
  jax.tree.map(np.testing.assert_array_equal, sums(None, r_drop=5.0), sums(None))


CLIPPED = {"optimizer": Optimizer.ADAMW, "weight_decay": 0.1, "clip_norm": 0.05, "schedule": Schedule.COSINE}


@pytest.mark.long
@pytest.mark.parametrize("recipe", [CLIPPED, {"r_drop": 5.0}], ids=["clipped", "R-Drop"])
def test_recipes_are_the_same_on_eight_devices(recipe):
  """The norm to clip is that of the gradients of all devices together."""
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, steps=STEPS, **recipe))
  packed_rows, found = PackedRows(packed(copying_pairs(60)), PackingReport(), ""), []
  for count in (1, 8):
    step = over(count, functools.partial(train_step, config, TASK))
    batches = Batches(packed_rows, ROWS, config.train.seed, multiple=count)
    state = placed(jax.jit(functools.partial(init_state, config, TASK))(), count)
    for i in range(2):
      state, metrics = step(state, shares(batches[i], count))
      assert metrics["gradient_norm"] > 0.1 and metrics["learning_rate"] > 1e-3
    found.append(jax.device_get(state))
  jax.tree.map(functools.partial(np.testing.assert_allclose, atol=2e-6), found[0].params, found[1].params)


def test_the_loss_falls(one_device):
  losses = [metrics["sums"].loss / metrics["sums"].tokens for metrics in one_device[1]]
  assert np.mean(losses[-3:]) < losses[0] - 0.2


def test_metrics(one_device):
  state, history = one_device
  assert state.step == STEPS and state.step.dtype == np.int32
  batches = Batches(PackedRows(packed(copying_pairs(60)), PackingReport(), ""), ROWS, CONFIG.train.seed)
  for step, metrics in enumerate(history, 1):
    expected = 1e-2 * 3**0.5 * formulas.learning_rate(step, 1, 3)
    assert metrics["learning_rate"] == pytest.approx(expected, rel=1e-6)
    assert 0 < metrics["gradient_norm"] < 100
    assert metrics["sums"].tokens == np.count_nonzero(batches[step - 1].rows[:, TARGET])  # padding is 0
    assert 0 <= metrics["sums"].correct < metrics["sums"].tokens


def test_a_batch_without_a_finite_loss_changes_only_the_number_of_the_step(one_device):
  step, batches = update(), Batches(PackedRows(packed(copying_pairs(60)), PackingReport(), ""), ROWS, CONFIG.train.seed)
  good = jax.device_get(one_device[0])
  broken = jax.tree.map(np.array, good)
  table = broken.params["target_embedding"]["table"]
  table[batches[0].rows[0, TARGET, 0]] = np.inf
  new, metrics = jax.device_get(step(placed(broken), shares(batches[0], 1)))
  assert metrics["skipped"] and new.step == broken.step + 1
  assert all(value == 0 for value in jax.tree.leaves(metrics["sums"]))
  jax.tree.map(np.testing.assert_array_equal, new.replace(step=broken.step), broken)
  # The next update has the learning rate that this one would have had.
  after, metrics = jax.device_get(step(placed(good.replace(step=good.step + 1)), shares(batches[STEPS], 1)))
  without, expected = jax.device_get(step(placed(good), shares(batches[STEPS], 1)))
  assert not metrics["skipped"] and metrics["learning_rate"] == expected["learning_rate"]
  assert after.step == without.step + 1


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_an_update_with_a_gradient_that_is_not_finite_is_skipped_by_itself(weight):
  """At 0 a square root is finite, and its slope is not. The moving average stays as it is, too."""

  def batch_sums(config, params, rows, keys):
    return Sums(jnp.sum(jnp.sqrt(params["w"])), *jnp.float32([2, 1, 3]))

  task = dataclasses.replace(TASK, batch_sums=batch_sums, init_params=lambda *_: {"w": jnp.array([weight, 4.0])})
  config = with_moving_average(0.25)
  before = init_state(config, task).replace(average={"w": jnp.array([5.0, 7.0])})
  batch = Batch(np.zeros((1, 4, ROW_LENGTH), np.uint16), np.zeros(1, np.int32))
  after, metrics = jax.jit(functools.partial(train_step, config, task))(before, batch)
  assert metrics["skipped"] == (weight == 0) and after.step == 1
  assert [float(value) for value in jax.tree.leaves(metrics["sums"])] == ([0] * 4 if weight == 0 else [3, 2, 1, 3])
  parts = [jax.tree.leaves((state.params, state.optimizer, state.average)) for state in (after, before)]
  assert [bool(np.all(one == other)) for one, other in zip(*parts, strict=True)] == [weight == 0] * 6


def test_every_parameter_is_trained(one_device):
  before = random_state(CONFIG, TASK).params  # as in `train`
  for new, old in zip(jax.tree.leaves(one_device[0].params), jax.tree.leaves(before), strict=True):
    assert np.any(new != old) and np.all(np.isfinite(new))


@pytest.fixture(scope="module")
def loss_of():
  """(state, indices of two equal rows in the batch) -> the loss with dropout."""
  rows = np.repeat(packed(copying_pairs(60))[:1], 2, axis=0)
  return lambda state, index: float(update()(placed(state), shares(Batch(rows, np.int32(index)), 1))[1]["sums"].loss)


@pytest.mark.long
def test_dropout_is_keyed_by_a_row_s_place_in_the_whole_batch(loss_of):
  state = init_state(CONFIG, TASK)
  assert loss_of(state, [0, 1]) == loss_of(state, [0, 1])
  assert loss_of(state, [0, 1]) == pytest.approx(loss_of(state, [1, 0]), rel=1e-6)
  assert abs(loss_of(state, [0, 1]) - loss_of(state, [2, 3])) > 1e-3


@pytest.mark.long
def test_dropout_is_another_in_each_step(loss_of):
  state = init_state(CONFIG, TASK)
  assert abs(loss_of(state, [0, 1]) - loss_of(state.replace(step=state.step + 1), [0, 1])) > 1e-3


def test_evaluation_sums_over_devices_without_dropout(params):
  rows = packed(copying_pairs(60))[:8]
  batch = Batch(rows, np.arange(8, dtype=np.int32))
  sums = over(8, functools.partial(eval_step, CONFIG, TASK), out_axes=None)(params, shares(batch, 8))
  expected = jax.jit(lambda rows: batch_sums(CONFIG, params, rows, None))(rows)
  jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5), sums, expected)


def test_the_gradient_is_of_the_mean_over_all_tokens_of_all_devices():
  """Adam would hide a wrong scale, and a mean of means is another gradient: the tokens of devices and parts differ."""
  rows, state = packed(copying_pairs(60))[:8], random_state(CONFIG, TASK)
  rows[5:, TARGET_SEGMENTS, 2:] = 0
  batch = Batch(rows, np.arange(8, dtype=np.int32))
  after, metrics = update(2, accumulation=4)(placed(state, 2), shares(batch, 2))
  _, dropout_key = jax.random.split(jax.random.key(CONFIG.train.seed, impl="threefry2x32"))

  @jax.jit
  @jax.grad
  def gradient_of(params):
    keys = jax.vmap(functools.partial(jax.random.fold_in, jax.random.fold_in(dropout_key, 0)))(batch.indices)
    sums = batch_sums(CONFIG, params, rows, keys)
    return sums.loss / sums.tokens

  expected = gradient_of(state.params)
  norm = np.sqrt(sum(np.sum(np.square(g)) for g in jax.tree.leaves(expected)))
  assert float(metrics["gradient_norm"]) == pytest.approx(float(norm), rel=1e-5)
  first_moment = after.optimizer[0].mu
  found = jax.tree.map(lambda m: m / (1 - CONFIG.train.beta1), first_moment)
  jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-6), found, expected)


def test_the_seed_decides_the_first_parameters():
  def tables(seed):
    config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, seed=seed))
    params = init_params(config, TASK)
    return params["target_embedding"]["table"], params["encoder"]["layers_0"]["attention"]["query"]["kernel"]

  found, again, others = (jax.jit(functools.partial(tables, seed))() for seed in (7, 7, 8))
  jax.tree.map(np.testing.assert_array_equal, found, again)
  assert all(np.any(one != other) for one, other in zip(found, others, strict=True))


def with_moving_average(decay):
  return dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, ema_decay=decay))


@pytest.mark.long
def test_the_moving_average_follows_the_parameters():
  config, rows = with_moving_average(0.25), packed(copying_pairs(60))[:ROWS]
  step = over(1, functools.partial(train_step, config, TASK))
  state, plain = placed(init_state(config, TASK)), placed(init_state(CONFIG, TASK))
  jax.tree.map(np.testing.assert_array_equal, state.average, state.params)
  average = float64(state.params)
  batch = shares(Batch(rows, np.arange(ROWS, dtype=np.int32)), 1)
  for t in range(1, 6):
    (state, _), (plain, _) = step(state, batch), update()(plain, batch)
    d = min(0.25, (1 + t) / (10 + t))
    average = jax.tree.map(lambda a, p, d=d: d * a + (1 - d) * p, average, float64(state.params))
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-6), state.average, average)
  assert state.params_for_decoding is state.average
  jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-6), state.params, plain.params)


def test_without_a_moving_average_the_state_has_no_more_arrays(one_device):
  for state in (abstract_state(CONFIG, TASK), one_device[0]):
    assert state.average is None and state.params_for_decoding is state.params
    assert len(jax.tree.leaves(state)) == len(jax.tree.leaves([state.step, state.params, state.optimizer]))


@pytest.mark.long
@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_an_update_reuses_the_memory_of_the_state(decay):
  """With a moving average, too: no two of its arrays share memory at the start."""
  config = with_moving_average(decay)
  state = jax.jit(lambda: init_state(config, TASK), out_shardings=devices.on_all_devices())()
  batch = shares(Batch(packed(copying_pairs(60))[:8], np.arange(8, dtype=np.int32)), 8)
  new, _ = update_on_devices(config, TASK)(state, batch)
  assert int(new.step) == 1 and all(leaf.is_deleted() for leaf in jax.tree.leaves([state.params, state.average]))


@pytest.mark.long
def test_an_update_is_the_same_whatever_generator_jax_is_told_to_take():
  state = random_state(CONFIG, TASK)
  batch = Batch(packed(copying_pairs(60))[:ROWS], np.arange(ROWS, dtype=np.int32))

  def loss():
    return float(jax.jit(functools.partial(train_step, CONFIG, TASK))(state, batch)[1]["sums"].loss)

  expected = loss()
  with jax.default_prng_impl("rbg"):
    assert loss() == expected
