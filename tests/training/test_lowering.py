"""The train step of the base model is lowered here for machines that are not here."""

import functools

import jax
import jax.export
import jax.numpy as jnp
import pytest

from configs import base, big
from transformer_jax.config import Config
from transformer_jax.data.batches import Batch
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.runtime import devices
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params
from transformer_jax.training.step import init_state, train_step

ROWS, ROW_LENGTH = 13, 256  # of a device


CUDNN = "__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxBackward"


def lowered(model, platforms):
  assert (model.d_model, model.num_layers, model.vocab_size) == (512, 6, 37_000)
  return lowered_step(Config(model=model), platforms)


def lowered_step(config, platforms):
  count = jax.device_count()
  state = jax.eval_shape(lambda: init_state(config, TASK))
  batch = Batch(
    jax.ShapeDtypeStruct((count, ROWS, 4, ROW_LENGTH), jnp.uint16),
    jax.ShapeDtypeStruct((count, ROWS), jnp.int32),
  )
  step = devices.over_devices(functools.partial(train_step, config, TASK), out_axes=(None, None))
  return jax.export.export(
    jax.jit(lambda state, batch: step(state, batch)),
    platforms=platforms,
    disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(name) for name in CUDNN],
  )(state, batch)


def lines_with(exported, text):
  return [line for line in exported.mlir_module().split("\n") if text in line]


@pytest.mark.long
@pytest.mark.parametrize("dtype", Dtype)
def test_train_step_of_the_base_model(dtype):
  exported = lowered(ModelConfig(dtype=dtype), ["tpu", "cuda"])
  assert exported.platforms == ("tpu", "cuda") and exported.nr_devices == jax.device_count()
  products = lines_with(exported, "stablehlo.dot_general")
  assert len(products) > 100
  assert any("xbf16>" in line for line in products) == (dtype is Dtype.BFLOAT16)


@pytest.mark.long
@pytest.mark.parametrize(("experiment", "width"), [(base, 512), (big, 1024)], ids=["base", "big"])
def test_the_papers_steps_for_eight_tpu_devices(experiment, width):
  """One all-reduce over all devices sums the gradient of each parameter."""
  config = experiment.get_config()
  exported = lowered_step(config, ["tpu"])
  assert exported.platforms == ("tpu",) and exported.nr_devices == 8
  parameters = jax.tree.leaves(jax.eval_shape(lambda: init_params(config, TASK)))
  assert any(shape.shape == (37_000, width) for shape in parameters)
  assert {shape.shape for shape in parameters} <= {aval.shape for aval in exported.in_avals}
  groups = [line for line in lines_with(exported, "replica_groups") if "[[0, 1, 2, 3, 4, 5, 6, 7]]" in line]
  assert len(groups) >= len(parameters)
  assert any("xbf16>" in line for line in lines_with(exported, "stablehlo.dot_general"))


@pytest.mark.long
def test_fused_attention_is_one_call_forward_and_one_backward(monkeypatch):
  cudnn = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
  # It asks the card, of which there is none here.
  for name, answer in {"check_cudnn_version": 91000, "check_compute_capability": True}.items():
    monkeypatch.setattr(cudnn, name, lambda *_, answer=answer: answer)
  model = ModelConfig(dtype=Dtype.BFLOAT16, fused_attention=True)
  exported = lowered(model, ["cuda"])
  plain = lowered(ModelConfig(dtype=Dtype.BFLOAT16), ["cuda"])
  attentions = 3 * model.num_layers
  for name in CUDNN:
    assert len(lines_with(exported, f"@{name}(")) == attentions
    assert not lines_with(plain, f"@{name}(")
  products = [len(lines_with(x, "stablehlo.dot_general")) for x in (plain, exported)]
  assert products[0] - products[1] == 6 * attentions  # the scores and the weighted values, each with two gradients
