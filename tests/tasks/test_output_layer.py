"""The output layer's bias in training, and the decoder's first input."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from tests.model.example import options, random_params
from transformer_jax import registry
from transformer_jax.config import Config, TrainConfig
from transformer_jax.data.segments import decoder_input, segment_positions
from transformer_jax.model.config import ModelConfig, Start
from transformer_jax.model.special_tokens import PAD
from transformer_jax.tasks.translation import TASK, decoder_output


class ItsTarget(nn.Module):
  """A model whose output is the target that it reads."""

  config: ModelConfig

  def __call__(self, source, target, *positions_and_masks, deterministic):
    return target


def test_the_loss_has_the_bias():
  config = Config(
    model=options(num_layers=1, logits_bias=True, start=Start.PAD), train=TrainConfig(label_smoothing=0.0)
  )
  params, model = random_params(config, TASK), registry.module(config.model)
  row = jnp.array([[7, 5, 3, 9, 3, 0], [1, 1, 1, 2, 2, 0], [8, 3, 11, 4, 3, 0], [1, 1, 2, 2, 2, 0]], jnp.uint16)
  sums = jax.jit(functools.partial(TASK.batch_sums, config))(params, row[None], None)

  @jax.jit
  def logits(params):
    return model.apply({"params": params}, decoder_output(model, params, row, None), method="logits")

  found = np.asarray(logits(params), np.float64)
  log_probs = found - np.log(np.sum(np.exp(found), axis=1, keepdims=True))
  expected = -sum(log_probs[place, token] for place, token in enumerate([8, 3, 11, 4, 3]))
  np.testing.assert_allclose(sums.loss, expected, rtol=1e-5)
  assert not np.allclose(params["logits_bias"], 0)


def test_each_segment_begins_with_the_start():
  target, segments = jnp.array([8, 3, 11, 4, 3]), jnp.array([1, 1, 2, 2, 2])
  assert decoder_input(target, segment_positions(segments), PAD).tolist() == [PAD, 8, PAD, 11, 4]


def test_training_reads_the_start_of_the_config_before_each_target():
  row = jnp.array([[7, 5, 3, 9, 3, 0], [1, 1, 1, 2, 2, 0], [8, 3, 11, 4, 3, 0], [1, 1, 2, 2, 2, 0]], jnp.uint16)
  found = decoder_output(ItsTarget(options(start=Start.PAD)), {}, row, None)
  assert found[:5].tolist() == [PAD, 8, PAD, 11, 4]
