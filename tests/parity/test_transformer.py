"""Logits and all gradients against `torch.nn.Transformer` with the same weights."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.parity.peer import SEED, assert_close, required, with_noise
from tests.parity.weights import torch_transformer
from transformer_jax.config import Config
from transformer_jax.model import masking
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.transformer import Transformer
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params

torch = required("torch")

# Lengths of the sentences of a batch; the rest of each row is padding.
SOURCE_LENGTHS, TARGET_LENGTHS = (13, 7, 5), (11, 17, 3)


def model_config(**options: bool) -> ModelConfig:
  """The base model's proportions: 8 heads and d_ff = 4 d_model."""
  return ModelConfig(vocab_size=101, num_layers=3, d_model=56, d_ff=224, num_heads=8, dropout=0.0, **options)


def batch() -> dict[str, np.ndarray]:
  """Sentences `[sentences, length]`, padded with tokens that would do harm if anything looked at them."""
  generator = np.random.default_rng(SEED)
  result = {}
  for name, lengths in (("source", SOURCE_LENGTHS), ("target", TARGET_LENGTHS)):
    result[name] = generator.integers(101, size=(len(lengths), max(lengths)))
    result[f"{name}_valid"] = np.arange(max(lengths))[None, :] < np.array(lengths)[:, None]
  return result


def example_params(config: ModelConfig) -> Any:
  return with_noise(init_params(Config(model=config), TASK))


def our_logits(config: ModelConfig, params: Any, inputs: dict[str, Any]) -> jax.Array:
  """`[sentences, target, vocab]`."""
  model = Transformer(config)

  def of_sentence(source, source_valid, target, target_valid):
    hidden = model.apply(
      {"params": params},
      source,
      target,
      jnp.arange(len(source)),
      jnp.arange(len(target)),
      masking.padding_mask(source_valid, source_valid),
      masking.combine(masking.causal_mask(len(target)), masking.padding_mask(target_valid, target_valid)),
      masking.padding_mask(target_valid, source_valid),
    )
    return model.apply({"params": params}, hidden, method="logits")

  return jax.vmap(of_sentence)(inputs["source"], inputs["source_valid"], inputs["target"], inputs["target_valid"])


def peer(config: ModelConfig, weights: dict[str, np.ndarray]) -> Any:
  """The `torch.nn.Transformer` with these weights; as in the paper, no LayerNorm is behind a post-norm stack."""
  nn = torch.nn
  layer = {
    "d_model": config.d_model,
    "nhead": config.num_heads,
    "dim_feedforward": config.d_ff,
    "dropout": 0.0,
    "layer_norm_eps": 1e-6,
    "batch_first": True,
    "norm_first": config.pre_norm,
  }

  def norm() -> Any:
    return nn.LayerNorm(config.d_model, eps=1e-6) if config.pre_norm else None

  encoder = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(**layer), config.num_layers, norm(), enable_nested_tensor=False
  )
  decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), config.num_layers, norm())
  transformer = nn.Transformer(
    config.d_model, config.num_heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
  )
  # It refuses names that are missing and names that it does not know.
  transformer.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
  return transformer


def peer_logits(transformer: Any, table: Any, inputs: dict[str, Any]) -> Any:
  """`[sentences, target, vocab]`; one table serves both embeddings and the output layer."""
  d_model = table.shape[1]
  source_padding, target_padding = ~inputs["source_valid"], ~inputs["target_valid"]

  def embed(tokens: Any) -> Any:
    positions = torch.arange(tokens.shape[1], dtype=torch.float64)[:, None]
    angles = positions / 10_000 ** (torch.arange(0, d_model, 2) / d_model)
    encoding = torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()
    return torch.nn.functional.embedding(tokens, table) * d_model**0.5 + encoding

  length = inputs["target"].shape[1]
  hidden = transformer(
    embed(inputs["source"]),
    embed(inputs["target"]),
    tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
    src_key_padding_mask=source_padding,
    tgt_key_padding_mask=target_padding,
    memory_key_padding_mask=source_padding,
  )
  return hidden @ table.T


@pytest.mark.parametrize("attention_bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("pre_norm", [False, True], ids=["post_norm", "pre_norm"])
def test_logits_and_gradients(pre_norm, attention_bias):
  config, inputs = model_config(pre_norm=pre_norm, attention_bias=attention_bias), batch()
  params = example_params(config)
  valid = inputs["target_valid"]
  # The gradient is that of the sum of the real tokens' logits, each times a random number.
  factors = np.random.default_rng(SEED + 1).standard_normal((*valid.shape, config.vocab_size)).astype(np.float32)
  factors *= valid[:, :, None]

  @jax.jit
  @jax.grad
  def gradients_of(params):
    return jnp.sum(factors * our_logits(config, params, inputs))

  transformer = peer(config, torch_transformer(params))
  table = torch.tensor(np.asarray(params["target_embedding"]["table"]), requires_grad=True)
  logits = peer_logits(transformer, table, {name: torch.from_numpy(array) for name, array in inputs.items()})
  (logits * torch.from_numpy(factors)).sum().backward()

  found = jax.jit(our_logits, static_argnums=0)(config, params, inputs)
  assert_close(np.asarray(found)[valid], logits.detach().numpy()[valid], "logits")
  gradients = gradients_of(params)
  assert_close(gradients["target_embedding"]["table"], table.grad, "table")
  compare(torch_transformer(gradients), transformer, attention_bias)


def compare(gradients: dict[str, np.ndarray], transformer: Any, attention_bias: bool) -> None:
  """Our gradients with those of the transformer's parameters, all of them."""
  expected = {name: parameter.grad.numpy() for name, parameter in transformer.named_parameters()}
  assert gradients.keys() == expected.keys()
  for name, gradient in gradients.items():
    if name.endswith(("in_proj_bias", "out_proj.bias")) and not attention_bias:
      continue  # we have none
    # Query, key and value each have a scale of their own, but for the biases: the gradient of the key's is 0, as
    # softmax does not see it, and what is found there is rounding.
    parts = 3 if name.endswith("in_proj_weight") else 1
    for i, (one, other) in enumerate(zip(np.split(gradient, parts), np.split(expected[name], parts), strict=True)):
      assert_close(one, other, f"{name}, part {i}")
