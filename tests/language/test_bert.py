"""BERT against NumPy; how tokens are masked; and that each loss is a mean over all devices and micro-batches."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.language import example
from tests.model.example import float64, random_params
from tests.on_devices import over, shares
from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.data.batches import Batch
from transformer_jax.data.next_sentence import LABEL, TOKEN_TYPES, TOKENS, next_sentence_rows
from transformer_jax.language import bert
from transformer_jax.language.bert import BERT
from transformer_jax.model.special_tokens import CLS, FIRST_PIECE, MASK, SEP
from transformer_jax.paper import formulas
from transformer_jax.tasks.masked import TASK, batch_sums, counts, fixed_key, masked, outputs, predicted
from transformer_jax.training.step import init_state, train_step
from transformer_jax.training.sums import means

ROW_LENGTH, VOCAB, ROWS = 17, 31, 8
CONFIG = Config(
  data=DataConfig(row_length=ROW_LENGTH),
  model=example.BERT,
  train=TrainConfig(batch_tokens=ROWS * ROW_LENGTH, warmup_steps=3, peak_learning_rate=1e-2, label_smoothing=0.0),
)


def example_rows() -> np.ndarray:
  """Rows `[8, 3, 17]` of different numbers of tokens; the last two are empty."""
  generator = np.random.default_rng(0)
  documents = [[generator.integers(FIRST_PIECE, VOCAB, n).tolist() for n in (3, 5, 2, 6)] for _ in range(4)]
  rows = np.stack([row for row, _ in next_sentence_rows(documents, ROW_LENGTH, 4)][:ROWS]).astype(np.uint16)
  rows[-2:] = 0
  return rows


@pytest.fixture(scope="module")
def params():
  return random_params(CONFIG, TASK)


@pytest.mark.parametrize(
  ("pre_norm", "smoothing"),
  [(False, 0.3), *(pytest.param(pre_norm, 0.0, marks=pytest.mark.long) for pre_norm in (False, True))],
)
def test_losses_are_those_of_numpy(pre_norm, smoothing):
  """That of the masked tokens is smoothed, that of the next sentence never is."""
  model = example.options(example.BERT, pre_norm=pre_norm)
  config = dataclasses.replace(CONFIG, model=model, train=dataclasses.replace(CONFIG.train, label_smoothing=smoothing))
  params, rows = random_params(config, TASK), example_rows()
  sums = jax.jit(lambda rows: batch_sums(config, params, rows, None))(rows)
  every = jax.jit(jax.vmap(lambda row: outputs(BERT(model), params, row, None)[0]))(rows)
  masked_loss, next_loss, right = [], [], 0
  for number, row in enumerate(rows[:-2].astype(np.int64)):
    chosen = jax.tree.map(lambda x, number=number: np.asarray(x[number]), every)
    end = int(np.sum(row[TOKEN_TYPES] > 0))
    tokens = np.asarray(chosen.tokens)[:end]
    logits, following = example.bert(model, float64(params), tokens, np.maximum(row[TOKEN_TYPES][:end] - 1, 0))
    for place, target in zip(chosen.positions[chosen.valid], chosen.targets[chosen.valid], strict=True):
      z = logits[int(place)]
      assert int(target) == row[TOKENS, int(place)]
      masked_loss.append(formulas.cross_entropy(z[None], [int(target)], smoothing))
      right += np.argmax(z) == int(target)
    next_loss.append(np.log(np.exp(following).sum()) - following[row[LABEL, 0]])
  assert float(sums.tokens) == len(masked_loss) and float(sums.others["next"].tokens) == len(next_loss)
  assert float(sums.loss) == pytest.approx(sum(masked_loss), rel=1e-4)
  assert float(sums.others["next"].loss) == pytest.approx(sum(next_loss), rel=1e-4)
  assert float(sums.correct) == right
  line = means(jax.device_get(sums))
  assert line["loss"] == pytest.approx(np.mean(masked_loss), rel=1e-4)
  assert line["next_loss"] == pytest.approx(np.mean(next_loss), rel=1e-4)


def test_masks_have_the_papers_frequencies():
  length, vocab_size, draws = 103, 1009, 3000
  row = np.zeros((3, length), np.int32)
  row[TOKENS, :90], row[TOKEN_TYPES, :90] = np.arange(500, 590), 1
  row[TOKENS, [0, 40, 89]] = CLS, SEP, SEP
  keys = jax.random.split(jax.random.key(0), draws)
  found = jax.jit(jax.vmap(lambda key: masked(jnp.array(row), key, vocab_size)))(keys)
  valid, positions = np.asarray(found.valid), np.asarray(found.positions)
  assert np.all(valid.sum(axis=1) == 13)  # 15% of 87
  for i in range(0, draws, 300):
    chosen = positions[i][valid[i]]
    assert len(set(chosen)) == 13
    assert np.all(np.delete(np.asarray(found.tokens[i]), chosen) == np.delete(row[TOKENS], chosen))
  assert np.all(np.asarray(found.targets)[valid] == row[TOKENS][positions[valid]])
  frequency = np.bincount(positions[valid], minlength=length) / draws
  allowed = np.setdiff1d(np.arange(90), [0, 40, 89])
  assert not np.any(np.delete(frequency, allowed))
  np.testing.assert_allclose(frequency[allowed], 13 / 87, atol=5 * np.sqrt(0.15 * 0.85 / draws))
  shown = np.take_along_axis(np.asarray(found.tokens), positions, axis=1)[valid]
  targets, total = np.asarray(found.targets)[valid], valid.sum()
  same, hidden = np.mean(shown == targets), np.mean(shown == MASK)
  assert hidden == pytest.approx(0.8, abs=5 * np.sqrt(0.16 / total))
  assert same == pytest.approx(0.1 + 0.1 / vocab_size, abs=5 * np.sqrt(0.09 / total))
  others = shown[(shown != MASK) & (shown != targets)]
  assert others.min() >= FIRST_PIECE and len(np.unique(others)) > 0.9 * vocab_size


@pytest.mark.parametrize("tokens", [0, 1, 2, 3, 13, 14])
def test_how_many_are_predicted(tokens):
  row = np.zeros((3, 23), np.int32)
  row[TOKENS, : tokens + 2], row[TOKEN_TYPES, : tokens + 2] = 9, 1
  row[TOKENS, 0], row[TOKENS, tokens + 1] = CLS, SEP
  may, count = jax.jit(predicted)(row)
  assert int(may.sum()) == tokens
  assert int(count) == (0 if tokens == 0 else max(1, round(0.15 * tokens)))
  chosen = jax.jit(masked, static_argnums=2)(row, jax.random.key(0), VOCAB)
  assert int(chosen.valid.sum()) == int(count)


@pytest.mark.long
def test_validation_masks_a_row_always_alike(params):
  rows = example_rows().astype(np.int32)
  assert len({tuple(jax.random.key_data(fixed_key(jnp.array(row))).tolist()) for row in rows[:-2]}) == len(rows) - 2
  loss = jax.jit(lambda rows: batch_sums(CONFIG, params, rows, None).loss)
  assert float(loss(rows)) == pytest.approx(float(loss(rows[::-1])), rel=1e-6)


@pytest.mark.long
def test_counts_are_known_before_the_losses(params):
  rows = example_rows()
  keys = jax.random.split(jax.random.key(3), ROWS)
  sums = jax.jit(lambda: batch_sums(CONFIG, params, rows, keys))()
  expected = counts(CONFIG, jnp.array(rows))
  assert float(sums.tokens) == float(expected["tokens"])
  assert float(sums.others["next"].tokens) == float(expected["next"]) == ROWS - 2


@pytest.mark.long
@pytest.mark.parametrize(("count", "accumulation"), [(4, 1), (2, 2)])
def test_the_gradient_is_of_the_sum_of_both_means(count, accumulation):
  """Rows differ in their masked tokens, and two are empty: means of means would be others."""
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, accumulation=accumulation))
  state, rows = init_state(config, TASK), example_rows()
  batch = shares(Batch(rows, np.arange(ROWS, dtype=np.int32)), count)
  step = over(count, functools.partial(train_step, config, TASK))
  after, metrics = step(state, batch)

  _, dropout_key = jax.random.split(jax.random.key(config.train.seed, impl="threefry2x32"))
  step_key = jax.random.fold_in(dropout_key, 0)
  keys = jax.vmap(lambda place: jax.random.fold_in(step_key, place))(jnp.arange(ROWS))

  @jax.jit
  @jax.grad
  def gradient_of(params):
    sums = batch_sums(config, params, rows, keys)
    return sums.loss / sums.tokens + sums.others["next"].loss / sums.others["next"].tokens

  expected = gradient_of(state.params)
  found = jax.tree.map(lambda m: m / (1 - config.train.beta1), after.optimizer[0].mu)
  jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-6), found, expected)
  norm = np.sqrt(sum(np.sum(np.square(g)) for g in jax.tree.leaves(expected)))
  assert float(metrics["gradient_norm"]) == pytest.approx(float(norm), rel=1e-5)


def test_training_draws_other_masks_with_each_key(params):
  row = jnp.array(example_rows()[0])
  draw = jax.jit(jax.vmap(lambda key: outputs(BERT(CONFIG.model), params, row, key)[0]))
  keys = jax.random.split(jax.random.key(0), 50)
  chosen, again = draw(keys), draw(keys)
  places = {tuple(sorted(of[valid].tolist())) for of, valid in zip(chosen.positions, chosen.valid, strict=True)}
  assert len(places) > 5
  np.testing.assert_array_equal(chosen.tokens, again.tokens)


def test_layers_behind_the_encoder_begin_small():
  kernel = bert._dense(53, example.BERT).init(jax.random.key(0), jnp.ones((1, 47)))["params"]["kernel"]
  assert np.std(kernel) == pytest.approx(0.02, rel=0.1)
