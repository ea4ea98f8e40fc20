"""Where the language models have dropout, and none of it without a key."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.language import example
from tests.model.example import dropout_shapes, float64, random_params, recorded_dropout
from transformer_jax import registry
from transformer_jax.config import Config, DataConfig
from transformer_jax.language.config import BERTClassifierConfig, ELMoConfig
from transformer_jax.model.special_tokens import BOS
from transformer_jax.paper import formulas
from transformer_jax.tasks import bidirectional, causal, classification, masked
from transformer_jax.training.initialization import init_params
from transformer_jax.training.task import task_of

LENGTH = 13
RATES = {"dropout": 0.5, "attention_dropout": 0.25}
CLASSES = BERTClassifierConfig(**dataclasses.asdict(example.BERT), labels="a,b,c")
# Of d_model = 22 and 2 heads: the embeddings, attention's weights, and both sub-layers.
BLOCK = [(2, LENGTH, LENGTH), (LENGTH, 22), (LENGTH, 22)]
ONE_TEXT = np.array([[5] * LENGTH, [1] * LENGTH])
ONE_SENTENCE = np.array([[5] * LENGTH, [1] * LENGTH, [0] * LENGTH])


OF_BLOCKS = {
  "gpt": (example.options(example.GPT, **RATES), causal.output, ONE_TEXT, [(LENGTH, 22), *BLOCK]),
  "bert": (example.options(example.BERT, **RATES), masked.outputs, ONE_SENTENCE, [(LENGTH, 22), *BLOCK]),
  "classes": (example.options(CLASSES, **RATES), classification.logits, ONE_SENTENCE, [(LENGTH, 22), *BLOCK, (22,)]),
}
ELMO = ELMoConfig(31, num_layers=2, d_model=11, dropout=0.5), bidirectional.layers, ONE_TEXT, 4 * [(LENGTH, 11)]


def zeros(config):
  params = jax.eval_shape(
    lambda: init_params(Config(data=DataConfig(row_length=LENGTH), model=config), task_of(config))
  )
  return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), params)


@pytest.mark.parametrize("off", RATES)
@pytest.mark.parametrize("name", OF_BLOCKS)
def test_each_rate_is_that_of_its_place(name, off):
  """Attention's is that of its weights, and the other one that of all else."""
  config, forward, row, expected = OF_BLOCKS[name]
  config = dataclasses.replace(config, **{off: 0.0})
  found = dropout_shapes(lambda: forward(registry.module(config), zeros(config), jnp.array(row), jax.random.key(0)))
  weights = (2, LENGTH, LENGTH)
  assert found == [shape for shape in expected if (shape == weights) == (off == "dropout")] != []


@pytest.mark.parametrize(
  ("config", "forward", "row", "expected"), [*OF_BLOCKS.values(), ELMO], ids=[*OF_BLOCKS, "elmo"]
)
def test_dropout_is_where_the_paper_says(config, forward, row, expected):
  params, model = zeros(config), registry.module(config)
  assert dropout_shapes(lambda: forward(model, params, jnp.array(row), jax.random.key(0))) == expected
  assert dropout_shapes(lambda: forward(model, params, jnp.array(row), None)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_the_first_dropout_is_of_the_whole_sum_and_behind_berts_layer_norm(name):
  config, forward, row, _ = OF_BLOCKS[name]
  params = random_params(Config(data=DataConfig(row_length=LENGTH), model=config), task_of(config))
  results, model = [], registry.module(config)
  record = recorded_dropout(lambda: results.append(forward(model, params, jnp.array(row), jax.random.key(0))))
  tables = float64(params if name == "gpt" else params["trunk"])
  tokens = np.array([BOS] + [5] * (LENGTH - 1)) if name == "gpt" else np.asarray(results[0][0].tokens)
  expected = tables["embedding"]["table"][tokens] + tables["positions"]["table"][:LENGTH]
  if name == "bert":
    expected = formulas.layer_norm(tables["embedding_norm"], expected + tables["sides"]["table"][0], 1e-12)
  np.testing.assert_allclose(record[0][0], expected, atol=1e-5)
