"""LSTM, GRU and simple units over a row of sentences, in both directions, against NumPy loops over each sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import float64, module_params, normal
from tests.recurrent import reference
from transformer_jax.model import masking
from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.gru import GRU
from transformer_jax.recurrent.lstm import LSTM, State
from transformer_jax.recurrent.recurrence import begins, last_read
from transformer_jax.recurrent.rnn import RNN

INPUT, HIDDEN = 5, 7
SEGMENTS = np.array([1] * 4 + [2] + [3] * 6 + [0] * 2)
POSITIONS = np.array([0, 1, 2, 3, 0, *range(6), 0, 1])
LENGTH = len(SEGMENTS)
MASK = masking.segment_mask(SEGMENTS, SEGMENTS)
BOTH_WAYS = pytest.mark.parametrize("reverse", [False, True])


def test_begins():
  starts, ends = (np.flatnonzero(begins(POSITIONS, MASK, reverse=reverse)) for reverse in (False, True))
  assert starts.tolist() == [0, 4, 5, 11]
  assert ends.tolist() == [3, 4, 10, 11, 12]


def test_a_padded_sentence_is_read_from_its_last_real_token():
  valid = np.arange(LENGTH) < 8
  mask = masking.padding_mask(valid, valid)
  starts, ends = (np.flatnonzero(begins(np.arange(LENGTH), mask, reverse=reverse)) for reverse in (False, True))
  assert starts.tolist() == [0]
  assert ends.tolist() == [7, 8, 9, 10, 11, 12]


def test_last_read():
  assert last_read(MASK[:11], reverse=False).tolist() == [3] * 4 + [4] + [10] * 6
  assert last_read(MASK[:11], reverse=True).tolist() == [0] * 4 + [4] + [5] * 6


def sentences(reverse):
  """The places of each sentence's tokens, in the order of reading."""
  for segment in (1, 2, 3):
    places = np.flatnonzero(segment == SEGMENTS)
    yield places[::-1] if reverse else places


@BOTH_WAYS
@pytest.mark.parametrize("begun", [False, True], ids=["zeros", "begun"])
def test_lstm(reverse, begun):
  layer, x = LSTM(INPUT, HIDDEN, Dtype.FLOAT32), normal(0, LENGTH, INPUT)
  restarts = begins(POSITIONS, MASK, reverse=reverse)
  initial = State(normal(1, LENGTH, HIDDEN), normal(2, LENGTH, HIDDEN)) if begun else None
  params = module_params(layer, x, restarts)
  found = jax.jit(lambda: layer.apply({"params": params}, x, restarts, initial, reverse=reverse))()
  for places in sentences(reverse):
    h, c = (part[places[0]] for part in initial) if initial else (np.zeros(HIDDEN), np.zeros(HIDDEN))
    for place in places:
      h, c = reference.lstm_step(float64(params), x[place], h, c)
      np.testing.assert_allclose(found.hidden[place], h, atol=1e-5)
      np.testing.assert_allclose(found.cell[place], c, atol=1e-5)


@pytest.mark.parametrize(
  ("cell", "step", "reverse", "begun"),
  [
    (GRU, reference.gru_step, False, True),
    pytest.param(GRU, reference.gru_step, True, False, marks=pytest.mark.long),
    pytest.param(RNN, reference.rnn_step, False, False, marks=pytest.mark.long),
    (RNN, reference.rnn_step, True, True),
  ],
)
def test_a_layer_with_one_array_as_its_state(cell, step, reverse, begun):
  layer, x = cell(INPUT, HIDDEN, Dtype.FLOAT32), normal(0, LENGTH, INPUT)
  restarts = begins(POSITIONS, MASK, reverse=reverse)
  initial = normal(1, LENGTH, HIDDEN) if begun else None
  params = module_params(layer, x, restarts)
  found = jax.jit(lambda: layer.apply({"params": params}, x, restarts, initial, reverse=reverse))()
  for places in sentences(reverse):
    s = np.zeros(HIDDEN) if initial is None else initial[places[0]]
    for place in places:
      s = step(float64(params), x[place], s)
      np.testing.assert_allclose(found[place], s, atol=1e-5)


def test_a_gate_of_zeros_is_half_open():
  """Computed by hand: f = i = o = 1/2 and g = 0 halve the cell."""
  layer = LSTM(INPUT, HIDDEN, Dtype.FLOAT32)
  params = {"kernel": jnp.zeros((INPUT, 28)), "recurrent": jnp.zeros((HIDDEN, 28)), "bias": jnp.zeros(28)}
  initial = State(jnp.ones((2, HIDDEN)), jnp.full((2, HIDDEN), 4.0))
  restarts = jnp.array([True, False])
  found = jax.jit(lambda: layer.apply({"params": params}, jnp.ones((2, INPUT)), restarts, initial))()
  np.testing.assert_allclose(found.cell[:, 0], [2, 1])
  np.testing.assert_allclose(found.hidden[:, 0], 0.5 * np.tanh([2, 1]), rtol=1e-6)


def test_each_gate_of_a_gru_is_drawn_by_itself():
  layer, x = GRU(INPUT, HIDDEN, Dtype.FLOAT32), jnp.ones((1, INPUT))
  params = jax.device_get(jax.jit(lambda: layer.init(jax.random.key(0), x, jnp.ones(1, bool)))()["params"])
  for gate in (*np.split(params["recurrent"], 2, axis=1), params["proposal"]):
    np.testing.assert_allclose(gate @ gate.T, np.eye(HIDDEN), atol=1e-5)
  assert np.abs(params["kernel"]).max() == pytest.approx(np.sqrt(6 / (INPUT + HIDDEN)), rel=0.1)
  assert not np.any(params["bias"])
