"""GPT against NumPy, and what makes it a language model: no look ahead, and the same text one token at a time."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.language import example
from tests.model.example import float64, random_params
from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.data.blocks import SEGMENTS, TOKENS, pack_blocks
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.language.gpt import GPT
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.special_tokens import BOS
from transformer_jax.paper import formulas
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.causal import TASK, batch_sums, output
from transformer_jax.training.initialization import init_params

ROW_LENGTH = 13
CONFIG = Config(
  data=DataConfig(row_length=ROW_LENGTH), model=example.GPT, train=TrainConfig(batch_tokens=26, label_smoothing=0.0)
)
TEXTS = [[5, 9, 11, 30, 4], [7, 8], [4, 5, 6, 21, 22, 23]]


@pytest.fixture(scope="module", params=[False, True], ids=["post_norm", "pre_norm"])
def gpt(request):
  """The config, the module, and parameters in which nothing is 0 or 1."""
  config = example.options(CONFIG, model=example.options(example.GPT, pre_norm=request.param))
  return config, GPT(config.model), random_params(config, TASK)


def test_a_table_of_positions_takes_any_width():
  """Only pairs of sine and cosine need an even one."""
  model = example.options(example.GPT, d_model=9, num_heads=3, d_ff=7)
  positions = jnp.arange(7)
  made = jax.eval_shape(GPT(model).init, jax.random.key(0), positions, positions, jnp.ones((7, 7), bool))
  assert made["params"]["positions"]["table"].shape == (19, 9)
  with pytest.raises(InputError, match=r"config\.model\.d_model is 9, but must be even, as positions are pairs"):
    ModelConfig(d_model=9, num_heads=3)
  assert ModelConfig(d_model=9, num_heads=3, learned_positions=True).d_model == 9


@pytest.fixture(scope="module")
def logits_of(gpt):
  _, model, params = gpt

  @jax.jit
  def logits_of(row):
    return model.apply({"params": params}, output(model, params, row, None), method="logits")

  return logits_of


def test_tables_begin_small():
  names = ("embedding", "positions")
  for table in jax.jit(lambda: [init_params(CONFIG, TASK)[name]["table"] for name in names])():
    assert np.std(table) == pytest.approx(0.02, rel=0.15)


def test_packed_texts_have_the_logits_that_numpy_gives_each_alone(gpt, logits_of):
  config, _, params = gpt
  logits, start = logits_of(example.row_of(TEXTS, ROW_LENGTH)), 0
  for text in TEXTS:
    expected = example.gpt(config.model, float64(params), np.array([BOS, *text[:-1]]))
    np.testing.assert_allclose(logits[start : start + len(text)], expected, atol=5e-5)
    start += len(text)


def test_later_tokens_and_other_texts_change_nothing(logits_of):
  row = example.row_of(TEXTS, ROW_LENGTH)
  before = logits_of(row)
  changed = row.copy()
  changed[TOKENS, 3:5] = 19, 20  # of the first text
  after = logits_of(changed)
  np.testing.assert_array_equal(after[:4], before[:4])
  assert np.all(np.any(after[4] != before[4], axis=-1))
  np.testing.assert_array_equal(after[5:], before[5:])


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_loss_is_the_mean_over_the_tokens_of_all_texts(gpt, smoothing):
  config, _, params = gpt
  config = dataclasses.replace(config, train=dataclasses.replace(config.train, label_smoothing=smoothing))
  rows = np.stack([example.row_of(TEXTS, ROW_LENGTH), example.row_of(TEXTS[:2] + TEXTS[:1], ROW_LENGTH)])
  rows[1, SEGMENTS, 9:] = 0
  expected = 0.0
  texts = [*TEXTS, *TEXTS[:2], TEXTS[0][:2]]
  for text in texts:
    logits = example.gpt(config.model, float64(params), np.array([BOS, *text[:-1]]))
    expected += formulas.cross_entropy(logits, text, smoothing)
  sums = jax.jit(lambda rows: batch_sums(config, params, rows, None))(rows)
  assert float(sums.tokens) == sum(map(len, texts))
  assert float(sums.loss) == pytest.approx(expected, rel=1e-5)
  assert sums.others == {}


def test_one_token_at_a_time_is_all_at_once(gpt, logits_of):
  """With three hypotheses that swap places: each is the continuation of the one it came from."""
  _, model, params = gpt
  texts = np.array([[5, 9, 11, 30], [5, 9, 12, 13], [5, 17, 4, 6]])
  parents = [[0, 0, 0], [0, 0, 0], [0, 1, 2], [2, 0, 1]]
  order = [2, 0, 1]  # of the texts after the last step
  variables = {"params": params}
  cache = jax.jit(lambda: model.apply(variables, 7, 3, method="init_cache"))()

  @jax.jit
  def step(cache, position, parents, tokens):
    hidden, cache = model.apply(variables, cache, position, parents, tokens, method="decode_step")
    return model.apply(variables, hidden, method="logits"), cache

  for position in range(4):
    inputs = np.full(3, BOS) if position == 0 else texts[:, position - 1]
    if position == 3:
      inputs = inputs[order]
    logits, cache = step(cache, jnp.int32(position), jnp.array(parents[position]), jnp.array(inputs))
  for beam, text in enumerate(texts[order]):
    row = np.zeros((2, ROW_LENGTH), np.int64)
    row[TOKENS, :4], row[SEGMENTS, :4] = text, 1
    np.testing.assert_allclose(logits[beam], logits_of(row)[3], atol=2e-5)


def test_each_text_of_a_row_begins_with_the_token_of_the_config():
  """Also the rest of one that began in the row before. The token of an imported vocabulary is another one than BOS."""
  config = dataclasses.replace(CONFIG, model=example.options(example.GPT, begin=17, end=19))
  params, expected = random_params(config, TASK), 0.0
  long = np.resize(TEXTS[0], ROW_LENGTH + 5)
  texts = [(np.array(TEXTS[1]), True), (long, True)]
  rows = np.concatenate([*pack_blocks(texts, ROW_LENGTH, PackingReport(), np.int32)])
  rest = ROW_LENGTH - len(TEXTS[1])
  for text in (TEXTS[1], long[:rest], long[rest:]):
    logits = example.gpt(config.model, float64(params), np.array([17, *text[:-1]]))
    expected += formulas.cross_entropy(logits, text, 0.0)
  sums = jax.jit(lambda rows: batch_sums(config, params, rows, None))(rows)
  assert float(sums.loss) == pytest.approx(expected, rel=1e-5)
