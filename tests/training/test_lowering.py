"""The train step of the base model is lowered here for machines that are not here."""

import dataclasses
import functools

import jax
import jax.export
import jax.numpy as jnp
import pytest

from transformer_jax import parallel
from transformer_jax.config import Config
from transformer_jax.data.pipeline import Batch
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.training.step import init_state, train_step

ROWS, ROW_LENGTH = 13, 256  # of a device


@pytest.mark.parametrize("dtype", Dtype)
def test_train_step_of_the_base_model(dtype):
  config = Config(model=dataclasses.replace(ModelConfig(), dtype=dtype))
  assert (config.model.d_model, config.model.num_layers, config.model.vocab_size) == (512, 6, 37_000)
  devices = jax.device_count()
  state = jax.eval_shape(lambda: init_state(config))
  batch = Batch(
    jax.ShapeDtypeStruct((devices, ROWS, 4, ROW_LENGTH), jnp.uint16),
    jax.ShapeDtypeStruct((devices, ROWS), jnp.int32),
  )
  step = parallel.over_devices(functools.partial(train_step, config), out_axes=(None, None))
  exported = jax.export.export(jax.jit(lambda state, batch: step(state, batch)), platforms=["tpu", "cuda"])(
    state, batch
  )
  assert exported.platforms == ("tpu", "cuda") and exported.nr_devices == devices
  products = [line for line in exported.mlir_module().split("\n") if "stablehlo.dot_general" in line]
  assert len(products) > 100
  assert any("xbf16>" in line for line in products) == (dtype is Dtype.BFLOAT16)
