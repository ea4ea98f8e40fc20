"""`config.model.dtype` is the type of every matmul of the language models and of those without attention."""

import collections

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import jaxprs_in_params

from tests.model.example import random_params
from transformer_jax import registry
from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.config import BahdanauConfig, Cell, LuongConfig, SequenceToSequenceConfig
from transformer_jax.training.initialization import abstract_params
from transformer_jax.training.task import task_of

BLOCKS = {"vocab_size": 31, "num_layers": 1, "d_model": 6, "d_ff": 7, "num_heads": 2, "max_positions": 8}
RECURRENT = {"vocab_size": 31, "d_model": 6, "hidden_size": 5, "num_layers": 1}
MODELS = {
  "gpt": (GPTConfig, BLOCKS),
  "bert": (BERTConfig, BLOCKS),
  "elmo": (ELMoConfig, {"vocab_size": 31, "num_layers": 1, "d_model": 6}),
  **{cell.value: (SequenceToSequenceConfig, {**RECURRENT, "cell": cell}) for cell in Cell},
}


def matmuls(jaxpr):
  for equation in jaxpr.eqns:
    if equation.primitive.name in ("dot_general", "shared_matmul"):
      yield tuple(operand.aval.dtype for operand in equation.invars)
    for inner in jaxprs_in_params(equation.params):
      yield from matmuls(inner)


@pytest.mark.parametrize("dtype", Dtype)
@pytest.mark.parametrize("name", MODELS)
def test_every_matmul_has_the_type_of_the_config_and_the_loss_is_float32(name, dtype):
  kind, sizes = MODELS[name]
  config = Config(data=DataConfig(row_length=8), model=kind(**sizes, dtype=dtype), train=TrainConfig(batch_tokens=8))
  task = task_of(config.model)

  def loss(params, rows):
    return task.batch_sums(config, params, rows, None).loss

  rows = jax.ShapeDtypeStruct((1, task.parts, 8), jnp.uint16)
  traced = jax.make_jaxpr(loss)(abstract_params(config, task), rows)
  assert {*matmuls(traced.jaxpr)} == {(jnp.dtype(dtype.value),) * 2}
  assert traced.out_avals[0].dtype == jnp.float32


@pytest.mark.parametrize("kind", [BahdanauConfig, LuongConfig])
def test_attention_of_recurrent_models_is_float32(kind):
  sizes = {key: RECURRENT[key] for key in ("vocab_size", "d_model", "hidden_size")}
  config = Config(
    data=DataConfig(row_length=8), model=kind(**sizes, dtype=Dtype.BFLOAT16), train=TrainConfig(batch_tokens=8)
  )
  task = task_of(config.model)
  rows = jax.ShapeDtypeStruct((1, task.parts, 8), jnp.uint16)
  traced = jax.make_jaxpr(lambda params, rows: task.batch_sums(config, params, rows, None).loss)(
    abstract_params(config, task), rows
  )
  found = collections.Counter(matmuls(traced.jaxpr))
  exact, low = ((jnp.dtype(name),) * 2 for name in ("float32", "bfloat16"))
  assert found.keys() == {exact, low} and found[exact] == 2  # the scores and the context


def sums_of_bfloat16(jaxpr):
  for equation in jaxpr.eqns:
    if equation.primitive.name == "reduce_sum" and equation.invars[0].aval.dtype == jnp.bfloat16:
      yield equation.invars[0].aval.shape
    for inner in jaxprs_in_params(equation.params):
      yield from sums_of_bfloat16(inner)


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_gradients_of_biases_are_sums_in_float32(name):
  kind, sizes = MODELS[name]
  config = Config(
    data=DataConfig(row_length=8), model=kind(**sizes, dtype=Dtype.BFLOAT16), train=TrainConfig(batch_tokens=8)
  )
  task = task_of(config.model)
  rows = jax.ShapeDtypeStruct((3, task.parts, 8), jnp.uint16)
  loss = jax.grad(lambda params, rows: task.batch_sums(config, params, rows, None).loss)
  traced = jax.make_jaxpr(loss)(abstract_params(config, task), rows)
  assert not [*sums_of_bfloat16(traced.jaxpr)]


@pytest.mark.parametrize(("kind", "more"), [(BERTConfig, {}), (BERTClassifierConfig, {"labels": "a,b,c"})])
def test_logits_of_classes_are_not_rounded_to_bfloat16(kind, more):
  config = Config(data=DataConfig(row_length=8), model=kind(**BLOCKS, **more, dtype=Dtype.BFLOAT16))
  params = random_params(config, task_of(config.model))
  tokens, masked = jnp.arange(5, 13), () if more else (jnp.arange(2),)
  module = registry.module(config.model)
  found = module.apply({"params": params}, tokens, tokens % 2, jnp.ones((8, 8), bool), *masked)
  logits = found if more else found[1]
  assert logits.dtype == jnp.float32 and (logits != logits.astype(jnp.bfloat16)).all()
