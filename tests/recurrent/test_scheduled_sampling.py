"""The decoder's inputs of scheduled sampling against NumPy, and updates on any number of devices."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import long
from tests.model.example import float64
from tests.on_devices import over, shares
from tests.recurrent import reference
from tests.recurrent.example import CONFIGS, ROW_LENGTH, example, packed, pairs
from transformer_jax.config import Config, DataConfig, Decay, TrainConfig
from transformer_jax.data.batches import Batch
from transformer_jax.data.packing import INPUTS, TARGET, TARGET_SEGMENTS
from transformer_jax.data.segments import decoder_input, segment_positions
from transformer_jax.model import masking
from transformer_jax.model.special_tokens import BOS, PAD
from transformer_jax.paper.formulas import softmax
from transformer_jax.tasks import translation
from transformer_jax.tasks.translation import TASK, chosen_rows
from transformer_jax.training.scheduled_sampling import forcing_probability
from transformer_jax.training.step import init_state, train_step


def drawn(logits, uniform):
  """The first token whose cumulative probability is above the number."""
  p = softmax(np.where(np.isin(np.arange(len(logits)), (PAD, BOS)), -np.inf, logits))
  return int(np.searchsorted(np.cumsum(p), uniform, side="right"))


@pytest.mark.parametrize(
  "name",
  ["rnn-context", *long(("reversed", "bahdanau", "luong-general"))],
)
def test_the_inputs_are_the_reference_or_drawn_from_the_equations(name):
  """In a packed row, sentence by sentence; each drawn token is an input of what is drawn after it."""
  model, params = example(name)
  row, generator = packed(pairs(), rest=9), np.random.default_rng(3)
  forced, uniform = generator.random(ROW_LENGTH) < 0.4, generator.random(ROW_LENGTH).astype(np.float32)
  source, source_segments, target, target_segments = jnp.asarray(row, jnp.int32)
  positions = segment_positions(target_segments)

  @jax.jit
  def choose(params):
    inputs = (source, decoder_input(target, positions, BOS), segment_positions(source_segments), positions)
    masks = (
      masking.segment_mask(source_segments, source_segments),
      masking.segment_mask(target_segments, source_segments),
    )
    return model.apply({"params": params}, *inputs, *masks, forced, uniform, method="choose_inputs")

  found, place = np.asarray(choose(params)), 0
  for sentence, words in pairs():
    inputs = [BOS]
    for t in range(1, len(words)):
      logits = reference.logits(model.config, float64(params), sentence, np.array([*inputs[1:], 4]))
      inputs.append(int(words[t - 1]) if forced[place + t] else drawn(logits[-1], uniform[place + t - 1]))
    assert found[place : place + len(words)].tolist() == inputs
    place += len(words)


def config_with(decay, k=1.0):
  model = dataclasses.replace(CONFIGS["gru"], dropout=0.3)
  return Config(
    data=DataConfig(row_length=ROW_LENGTH),
    model=model,
    train=TrainConfig(
      batch_tokens=8 * ROW_LENGTH, warmup_steps=2, peak_learning_rate=0.05, scheduled_sampling=decay, sampling_k=k
    ),
  )


def rows_of_steps(config):
  """The rows that updates 1 and 60 get of two rows that are equal."""
  _, params = example("gru")
  rows = np.stack([packed(pairs())] * 2)
  keys = jax.random.split(jax.random.key(0), 2)
  choose = jax.jit(functools.partial(chosen_rows, config))
  return rows, [np.asarray(choose(params, rows, keys, jnp.int32(step))) for step in (1, 60)]


@pytest.mark.long
def test_the_models_own_tokens_become_more():
  rows, [early, late] = rows_of_steps(config_with(Decay.LINEAR, k=100.0))
  reference_inputs = np.asarray(
    decoder_input(rows[0, TARGET], segment_positions(jnp.asarray(rows[0, TARGET_SEGMENTS])), BOS)
  )
  for found in (early, late):
    np.testing.assert_array_equal(found[:, :INPUTS], rows)
  own = [(found[:, INPUTS] != reference_inputs) & (rows[:, TARGET_SEGMENTS] > 0) for found in (early, late)]
  assert np.sum(own[0]) <= 1 < 3 <= np.sum(own[1])
  assert np.any(late[0, INPUTS] != late[1, INPUTS])  # another place in the batch is another draw


def test_teacher_forcing_leaves_the_rows_as_they_are():
  config, rows = config_with(Decay.NONE), np.stack([packed(pairs())])
  assert chosen_rows(config, {}, rows, jax.random.split(jax.random.key(0), 1), jnp.int32(3)) is rows


class Coins:
  """Stands for a model: instead of the decoder's inputs it returns the coins, and the numbers that draw its tokens."""

  def __init__(self, config):
    self.config = config

  def apply(self, variables, *arguments, method):
    assert method == "choose_inputs"
    *_, forced, uniform = arguments
    return jnp.stack([forced.astype(jnp.float32), uniform])


def thrown(keys, step, decay=Decay.LINEAR):
  """The coins and the numbers at a step, `[rows, row_length]` each, of rows with these keys."""
  config = config_with(decay, k=100.0)
  probability = forcing_probability(config.train, step)
  model: Any = Coins(config.model)
  row = jnp.asarray(packed(pairs()))
  inputs = functools.partial(translation._chosen_inputs, model, {}, probability, row)
  return np.asarray(jax.jit(jax.vmap(inputs))(keys)).swapaxes(0, 1)


KEYS = jax.random.split(jax.random.key(7), 997)


@pytest.mark.parametrize(("step", "probability"), [(1, 0.99), (37, 0.63), (90, 0.1)])
def test_a_coin_comes_up_where_a_number_of_its_own_is_below_the_probability(step, probability):
  """That is 1 - step / 100. The share is met within five standard deviations."""
  coins, uniform = thrown(KEYS, step)
  numbers = np.stack([jax.random.uniform(jax.random.fold_in(key, 1), (2 * ROW_LENGTH,)) for key in KEYS[:17]])
  np.testing.assert_array_equal(coins[:17], numbers[:, :ROW_LENGTH] < probability)
  np.testing.assert_array_equal(uniform[:17], numbers[:, ROW_LENGTH:])
  count = coins.size
  assert abs(coins.mean() - probability) < 5 * math.sqrt(probability * (1 - probability) / count)
  assert abs(uniform.mean() - 0.5) < 5 * math.sqrt(1 / 12 / count)
  together = np.mean((coins - probability) * (uniform - 0.5))  # of independent ones 0
  assert abs(together) < 5 * math.sqrt(probability * (1 - probability) / 12 / count)
  assert len(np.unique(uniform)) > 0.99 * count  # each place and each row has a number of its own


@pytest.mark.parametrize("number", [0.0, np.nextafter(np.float32(1), np.float32(0))])
@pytest.mark.parametrize(("step", "coin"), [(0, 1), (100, 0), (5000, 0)])
def test_a_probability_of_0_or_1_leaves_nothing_to_chance(monkeypatch, step, coin, number):
  """Not even where the random number is the smallest or the largest of [0, 1)."""
  monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jnp.full(shape, number, jnp.float32))
  coins, _ = thrown(KEYS[:2], step)
  np.testing.assert_array_equal(coins, np.full((2, ROW_LENGTH), coin))


def test_rows_are_those_of_teacher_forcing_at_probability_1_and_the_models_own_at_0():
  """The first token of a sentence is always BOS."""
  config, (model, params) = config_with(Decay.LINEAR, k=100.0), example("gru")
  rows, choose = np.stack([packed(pairs())] * 2), jax.jit(functools.partial(chosen_rows, config))
  forced, own = (np.asarray(choose(params, rows, KEYS[:2], jnp.int32(step)))[:, INPUTS] for step in (0, 100))
  ends = np.cumsum([0, *(len(words) for _, words in pairs())])
  for row, keys in zip(own, KEYS, strict=False):
    _, uniform = jax.random.uniform(jax.random.fold_in(keys, 1), (2, ROW_LENGTH))
    for (sentence, words), begin in zip(pairs(), ends, strict=False):
      inputs = [BOS]
      for t in range(1, len(words)):
        logits = reference.logits(model.config, float64(params), sentence, np.array([*inputs[1:], 4]))
        inputs.append(drawn(logits[-1], uniform[begin + t - 1]))
      assert row[begin : begin + len(words)].tolist() == inputs
  for row in forced:
    for (_, words), begin in zip(pairs(), ends, strict=False):
      assert row[begin : begin + len(words)].tolist() == [BOS, *words[:-1]]


@pytest.mark.long
def test_an_update_samples_by_the_number_of_those_before_it():
  """Here only step 7 leaves tokens in the rows."""
  task = dataclasses.replace(
    TASK, chosen_rows=lambda config, params, rows, keys, step: jnp.where(step == 7, rows, jnp.zeros_like(rows))
  )
  config = config_with(Decay.INVERSE_SIGMOID)
  update = jax.jit(functools.partial(train_step, config, task))
  state = init_state(config, task)
  batch = Batch(np.stack([packed(pairs())]), np.arange(1, dtype=np.int32))
  for step in (0, 6, 7, 8):
    _, metrics = update(dataclasses.replace(state, step=jnp.int32(step)), batch)
    assert (float(metrics["sums"].loss) > 0) == (step == 7)


def trained(config, count, updates=4, state=None):
  """The state after some updates on `count` devices."""
  generator = np.random.default_rng(0)
  state = state or init_state(config, TASK)
  step = over(count, functools.partial(train_step, config, TASK))
  orders = [generator.permutation(3) for _ in range(8)]
  rows = np.stack([packed([pairs()[i] for i in order[: 1 + n % 3]]) for n, order in enumerate(orders)])
  batch = shares(Batch(rows, np.arange(8, dtype=np.int32)), count)
  for _ in range(updates):
    state = jax.device_get(step(state, batch)[0])
  return state


@pytest.mark.long
def test_devices_and_a_stop_change_nothing():
  """With dropout and with half of the tokens drawn; another decay gives other parameters."""
  config = config_with(Decay.INVERSE_SIGMOID)
  one = trained(config, 1)
  for other in (trained(config, 8), trained(config, 1, 2, state=trained(config, 1, 2))):
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=2e-6), one.params, other.params)
  forced = trained(config_with(Decay.NONE), 1)
  assert any(
    np.any(np.abs(a - b) > 1e-4) for a, b in zip(*map(jax.tree.leaves, (one.params, forced.params)), strict=True)
  )
