"""Each model against NumPy, in packed rows and alone, at once and token by token."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import dropout_shapes, float64
from tests.recurrent import reference
from tests.recurrent.example import CONFIGS, LENGTHS, ROW_LENGTH, example, leaves, packed, pairs
from transformer_jax.config import Config, DataConfig, LengthPenalty, TrainConfig
from transformer_jax.data.packing import SOURCE, TARGET_SEGMENTS
from transformer_jax.data.packing import TARGET as TARGET_SIDE
from transformer_jax.decoding import programs
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.model import masking
from transformer_jax.model.config import Dtype
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.recurrent.lstm import State
from transformer_jax.recurrent.stack import Stack
from transformer_jax.tasks.translation import TASK, batch_sums, decoder_output
from transformer_jax.training.initialization import init_params

BEAMS, TARGET = 3, 5


def every(*quick, long=()):
  """Every model; only some of them in each run of the tests, as each takes seconds to compile."""
  marks = dict.fromkeys(CONFIGS, pytest.mark.slow) | dict.fromkeys(long, pytest.mark.long) | dict.fromkeys(quick, ())
  return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in CONFIGS])


def logits_of_row(model, params, row):
  hidden = decoder_output(model, params, row, None)
  return model.apply({"params": params}, hidden, method="logits")


@every("reversed", "luong-general", long=("rnn-context", "bahdanau", "luong-concat"))
def test_each_pair_of_a_packed_row_has_the_logits_of_the_equations(name):
  model, params = example(name)
  sentences = pairs(model.config.vocab_sizes[0])
  row = packed(sentences, rest=9)  # in the padding stands a token that would do harm if anything looked at it
  found = np.asarray(jax.jit(functools.partial(logits_of_row, model))(params, row))
  expected = [reference.logits(model.config, float64(params), *pair) for pair in sentences]
  real = row[TARGET_SEGMENTS] > 0
  assert found.shape == (ROW_LENGTH, 31) and found.dtype == np.float32
  np.testing.assert_allclose(found[real], np.concatenate(expected), atol=1e-5)


@every("reversed", "bahdanau")
def test_tokens_are_enough_for_a_padded_sentence_pair(name):
  """Without positions and masks; the row has one pair and padding."""
  model, params = example(name)
  [pair, *_] = pairs()
  row = packed([pair], rest=PAD)
  source, target = row[SOURCE], row[TARGET_SIDE]
  shifted = np.where(row[TARGET_SEGMENTS], np.concatenate([[BOS], target[:-1]]), PAD)

  @jax.jit
  def logits(params, source, target):
    return model.apply({"params": params}, model.apply({"params": params}, source, target), method="logits")

  expected = reference.logits(model.config, float64(params), *pair)
  np.testing.assert_allclose(logits(params, source, shifted)[: len(pair[1])], expected, atol=1e-5)


@every("luong-concat")
def test_packing_changes_no_gradient(name):
  model, params = example(name)
  config = Config(model=model.config, data=DataConfig(row_length=ROW_LENGTH), train=TrainConfig(label_smoothing=0.1))

  @jax.jit
  @jax.grad
  def gradient(params, rows):
    return batch_sums(config, params, rows, None).loss

  nothing = packed([])
  together = gradient(params, np.stack([packed(pairs()), nothing, nothing]))
  apart = gradient(params, np.stack([packed([pair]) for pair in pairs()]))
  expected = leaves(apart)
  for place, found in leaves(together).items():
    assert np.any(found)
    np.testing.assert_allclose(found, expected[place], atol=2e-5 * np.abs(expected[place]).max(), err_msg=place)


class Sentence:
  """A model and an encoded sentence with padding behind it."""

  def __init__(self, name):
    self.model, self.params = example(name)
    self.source = pairs()[0][0]
    padded = np.concatenate([self.source, np.full(4, 9)])
    self.valid = np.arange(len(padded)) < len(self.source)
    mask = masking.padding_mask(self.valid, self.valid)

    @jax.jit
    def start():
      memory = self.apply(padded, jnp.arange(len(padded)), mask, method="encode")
      return self.apply(
        self.apply(memory, self.valid, method="precompute_cross_attention"), 11, BEAMS, method="init_cache"
      )

    self.cache = start()
    self.decode_step = jax.jit(lambda *args: self.apply(*args, method="decode_step"))

  def apply(self, *args, method):
    return self.model.apply({"params": self.params}, *args, method=method)

  def expected(self, path):
    """Logits behind each token of a path that begins with BOS."""
    return reference.logits(self.model.config, float64(self.params), self.source, np.array([*path[1:], 4]))


@every("lstm-context", "luong-concat", long=("reversed", "bahdanau", "luong-not-fed"))
def test_beams_that_change_places_equal_the_whole_path_of_each(name):
  """Parents are random at every step, and the cache is one that another sentence has used."""
  sentence, generator = Sentence(name), np.random.default_rng(1)
  cache = sentence.cache.replace(state=jax.tree.map(lambda x: x + 1e3, sentence.cache.state))
  paths = np.full((BEAMS, TARGET), BOS)
  for position in range(TARGET):
    parents = generator.integers(BEAMS, size=BEAMS)
    paths = paths[parents]
    if position:
      paths[:, position] = generator.integers(4, 31, size=BEAMS)
    hidden, cache = sentence.decode_step(cache, jnp.int32(position), parents, paths[:, position])
    found = np.asarray(hidden) @ sentence.params["embedding"]["table"].T
    for beam in range(BEAMS):
      expected = sentence.expected(paths[beam, : position + 1])
      np.testing.assert_allclose(found[beam], expected[-1], atol=1e-5)


@every("luong-general")
def test_dropout_is_of_the_row_and_of_nothing_that_goes_on_in_time(name):
  """With one key the first sentence's outputs are the same beside others; with another they are different."""
  model, params = example(name, dropout=0.5)
  function = jax.jit(functools.partial(decoder_output, model))
  row, others = packed(pairs()), packed([pairs()[0], pairs()[2]])
  [first, again, other] = [function(params, r, jax.random.key(k)) for r, k in ((row, 0), (others, 0), (row, 1))]
  length = LENGTHS[0][1]
  np.testing.assert_array_equal(first[:length], again[:length])
  assert np.any(first[:length] != other[:length])


# Of the embeddings and between two layers, of source and target, and of what goes into the output layer.
DROPOUTS = {
  "plain": [(13, 5), (13, 5), (13, 7)],
  "reversed": [(13, 5), (13, 7), (13, 5), (13, 7), (13, 7)],
  "gru": [(13, 5), (13, 7), (13, 5), (13, 7), (13, 7)],
  "rnn-context": [(13, 5), (13, 5), (13, 7), (13, 7)],  # and of the context
  "lstm-context": [(13, 5), (13, 7), (13, 5), (13, 7), (13, 7), (13, 7)],
  "bahdanau": [(13, 5), (13, 5), (13, 5)],
  "luong-dot": [(13, 5), (13, 5), (13, 0, 7), (13, 5)],
  "luong-general": [(13, 5), (13, 7), (13, 5), (13, 1, 7), (13, 5)],
  "luong-concat": [(13, 5), (13, 5), (13, 0, 7), (13, 5)],
  "luong-not-fed": [(13, 5), (13, 5), (13, 5)],
}


@every("gru", "reversed", "luong-not-fed", long=CONFIGS)
def test_dropout_is_on_all_that_goes_up_and_of_whole_rows(name):
  """None is of a single position: that would be inside the recurrence."""
  model, params = example(name, dropout=0.5)
  row = packed(pairs())
  assert dropout_shapes(lambda: decoder_output(model, params, row, jax.random.key(0))) == DROPOUTS[name]


@pytest.mark.long
def test_the_decoder_with_input_feeding_uses_its_dropout_factors(monkeypatch):
  """Where all of them are 0, the upper layer reads nothing, whatever its kernel is."""
  model, params = example("luong-general")
  upper, row = params["decoder"]["lstm_1"], packed(pairs())
  other = params | {"decoder": params["decoder"] | {"lstm_1": upper | {"kernel": -upper["kernel"]}}}

  def outputs():
    return [np.asarray(decoder_output(model, each, row, None)) for each in (params, other)]

  assert not np.allclose(*outputs(), atol=1e-3)
  monkeypatch.setattr(
    Stack, "dropout_factors", lambda self, length, *, deterministic: jnp.zeros((length, 1, self.hidden_size))
  )
  np.testing.assert_array_equal(*outputs())


@pytest.mark.long
def test_dropout_scales_what_goes_up_and_nothing_that_goes_on():
  """Three layers over some positions, with known factors, against NumPy."""
  stack = Stack(input_size=5, hidden_size=7, num_layers=3, dropout=0.5, dtype=Dtype.FLOAT32)
  generator = np.random.default_rng(0)
  x, kept = generator.normal(size=(4, 5)), generator.choice([0.0, 2.0], size=(4, 2, 7))
  states = [(generator.normal(size=7), generator.normal(size=7)) for _ in range(3)]
  start = tuple(State(hidden=jnp.array(h, jnp.float32), cell=jnp.array(c, jnp.float32)) for h, c in states)
  params = stack.init(jax.random.key(0), x.astype(np.float32), np.zeros(4, bool), deterministic=True)
  found = start
  for inputs, factors in zip(x, kept, strict=True):
    entered = stack.apply(params, inputs[None].astype(np.float32), method="inputs")[0]
    found = stack.apply(params, found, entered, factors.astype(np.float32), method="advance")
    below = inputs
    for i, (h, c) in enumerate(states):
      states[i] = reference.lstm_step(float64(params["params"])[f"lstm_{i}"], below, h, c)
      below = states[i][0] * (factors[i] if i < 2 else 1)
  for state, (h, c) in zip(found, states, strict=True):
    np.testing.assert_allclose(state.hidden, h, atol=1e-5)
    np.testing.assert_allclose(state.cell, c, atol=1e-5)


def test_dropout_factors_are_of_each_position_and_layer():
  stack = Stack(input_size=5, hidden_size=7, num_layers=3, dropout=0.5, dtype=Dtype.FLOAT32)
  rngs = {"dropout": jax.random.key(0)}
  factors = jax.jit(lambda: stack.apply({}, 97, deterministic=False, method="dropout_factors", rngs=rngs))()
  assert factors.shape == (97, 2, 7) and set(np.unique(factors)) == {0.0, 2.0}
  assert np.any(factors[:, 0] != factors[:, 1]) and np.any(factors[0] != factors[1])
  assert np.mean(factors) == pytest.approx(1, abs=0.15)
  assert stack.apply({}, 97, deterministic=True, method="dropout_factors") is None


@pytest.mark.slow
def test_bfloat16():
  model, params = example("luong-concat")
  low, _ = example("luong-concat", dtype=Dtype.BFLOAT16)
  row = packed(pairs())
  exact, rounded = (np.asarray(jax.jit(functools.partial(logits_of_row, m))(params, row)) for m in (model, low))
  assert rounded.dtype == np.float32
  error = np.sqrt(np.mean((rounded - exact) ** 2)) / np.std(exact)
  assert 1e-4 < error < 0.02  # products round to 2^-9, and a state is the sum of some of them


@every("luong-dot")
def test_beam_search_finds_what_exhaustive_search_finds(name):
  """With 4 words (UNK is one) and outputs of at most 3 tokens there are 1 + 4 + 16 translations, and room for all."""
  model, params = example(name, vocab_size=7)
  options = SearchOptions(beam_size=21, penalty=LengthPenalty.GNMT, length_penalty=0.6, n_best=21)
  source = np.array([[5, EOS, PAD], [6, EOS, PAD]])
  search = functools.partial(programs.search, model, options, slots=2, extra_length=1)
  found = jax.jit(search)(params, source)
  words = (1, 4, 5, 6)
  assert not {PAD, BOS, EOS} & set(words)
  targets = [(*path, EOS) for length in range(3) for path in itertools.product(words, repeat=length)]
  padded = np.array([[*target, *[PAD] * (3 - len(target))] for target in targets])
  score = jax.jit(functools.partial(programs.score, model))
  for i in range(2):
    log_probs = score(params, (np.broadcast_to(source[i], (len(padded), 3)), padded))
    scores = np.asarray(log_probs) / ((5 + np.array([len(target) for target in targets])) / 6) ** 0.6
    order = np.argsort(-scores)
    np.testing.assert_allclose(found.scores[i], scores[order], atol=1e-5)
    assert [tuple(t[t != PAD]) for t in np.asarray(found.tokens[i])] == [targets[k] for k in order]


@pytest.mark.long
@pytest.mark.parametrize(("name", "cell", "inputs"), [("luong-dot", "lstm", 5), ("rnn-context", "rnn", 5 + 7)])
def test_initial_parameters(name, cell, inputs):
  """Matrices of gates are drawn one by one, and only an LSTM's forget gates have a bias at first."""
  params = leaves(jax.jit(lambda: init_params(Config(model=CONFIGS[name]), TASK))())
  gates = {"lstm": 4, "rnn": 1}[cell]
  for place, x in params.items():
    if "bias" in place:
      np.testing.assert_array_equal(x, [0] * 7 + [1] * 7 + [0] * 14 if cell == "lstm" else [0] * 7)
    if "recurrent" in place:
      for gate in np.split(x, gates, axis=1):
        np.testing.assert_allclose(gate @ gate.T, np.eye(7), atol=1e-5)
  kernel = params[f"['decoder']['{cell}_0']['kernel']"]
  assert np.abs(kernel).max() == pytest.approx(np.sqrt(6 / (inputs + 7)), rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize(
  ("name", "place", "inputs"),
  [("bahdanau", "['context']['kernel']", 14), ("luong-dot", "['input_feeding']['kernel']", 5)],
)
def test_each_gate_of_another_input_is_drawn_by_itself(name, place, inputs):
  params = leaves(jax.jit(lambda: init_params(Config(model=CONFIGS[name]), TASK))())
  [found] = [array for path, array in params.items() if path.endswith(place)]
  assert np.abs(found).max() == pytest.approx(np.sqrt(6 / (inputs + 7)), rel=0.1)
