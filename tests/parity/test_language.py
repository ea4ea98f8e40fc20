"""GPT and BERT against Hugging Face Transformers with the same weights: logits, features, and gradients."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.parity.language_outputs import LENGTHS, batch
from tests.parity.language_weights import bert_weights, gpt2_weights, gpt_weights
from tests.parity.peer import assert_close, required, with_noise
from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.language.bert import BERT
from transformer_jax.language.config import BERTConfig, GPTConfig
from transformer_jax.language.gpt import GPT
from transformer_jax.model import masking
from transformer_jax.training.initialization import init_params
from transformer_jax.training.task import task_of

torch = required("torch")
transformers = required("transformers")

VOCAB, LENGTH = 101, max(LENGTHS)
SIZES = {
  "vocab_size": VOCAB,
  "num_layers": 2,
  "d_model": 56,
  "d_ff": 224,
  "num_heads": 7,
  "max_positions": 23,
  "dropout": 0.0,
  "attention_dropout": 0.0,
}
GPT_CONFIG, BERT_CONFIG = GPTConfig(**SIZES), BERTConfig(**SIZES)


def example_params(model: Any) -> Any:
  config = Config(data=DataConfig(row_length=23), model=model, train=TrainConfig(batch_tokens=23))
  return with_noise(init_params(config, task_of(config.model)))


def factors(shape: tuple[int, ...]) -> np.ndarray:
  """The gradient is that of the sum of the results, each times a random number."""
  return np.random.default_rng(6).standard_normal(shape).astype(np.float32)


def loaded(peer: Any, weights: dict[str, np.ndarray], *, buffers: tuple[str, ...] = ()) -> Any:
  """The peer with our weights: all of its parameters, and none that it does not know."""
  missing, unexpected = peer.load_state_dict({name: torch.tensor(x) for name, x in weights.items()}, strict=False)
  assert not unexpected and all(name.endswith(buffers) for name in missing), (missing, unexpected)
  return peer.eval()


def assert_same_gradients(gradients: dict[str, np.ndarray], peer: Any, without: tuple[str, ...] = ()) -> None:
  expected = {name: x.grad.numpy() for name, x in peer.named_parameters() if x.grad is not None}
  assert {name for name in gradients if not name.endswith(without)} == set(expected)
  for name, gradient in expected.items():
    # Queries, keys and values may share a matrix, and each has a scale of its own. The gradient of the keys' biases
    # is 0, as softmax does not see them, and what is found there is rounding.
    joined = "c_attn" in name
    ours, theirs = (np.split(x, 3, axis=-1) if joined else [x] for x in (gradients[name], gradient))
    for part, (one, other) in enumerate(zip(ours, theirs, strict=True)):
      if (joined and part == 1 and one.ndim == 1) or name.endswith("key.bias"):
        assert np.max(np.abs(one)) < 1e-4 and np.max(np.abs(other)) < 1e-4
      else:
        assert_close(one, other, f"{name}, part {part}")


def gpt_peer(config: GPTConfig) -> Any:
  sizes = {"n_embd": config.d_model, "n_layer": config.num_layers, "n_head": config.num_heads}
  sizes |= {"vocab_size": VOCAB, "n_positions": config.max_positions}
  dropouts = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
  if config.pre_norm:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **dropouts, n_inner=config.d_ff))
  assert config.d_ff == 4 * config.d_model  # which it cannot choose
  return transformers.OpenAIGPTLMHeadModel(
    transformers.OpenAIGPTConfig(**sizes, **dropouts, afn="gelu")
  )  # the tanh one


@pytest.mark.parametrize("pre_norm", [False, True], ids=["openai-gpt", "gpt2"])
def test_gpt(pre_norm):
  config = dataclasses.replace(GPT_CONFIG, pre_norm=pre_norm)
  params, model, (tokens, valid) = example_params(config), GPT(config), batch(VOCAB)

  def logits_of(params):
    def of_text(tokens, valid):
      mask = masking.combine(masking.causal_mask(LENGTH), masking.padding_mask(valid, valid))
      hidden = model.apply({"params": params}, tokens, jnp.arange(LENGTH), mask)
      return model.apply({"params": params}, hidden, method="logits")

    return jax.vmap(of_text)(tokens, valid)

  weights = gpt2_weights if pre_norm else gpt_weights
  peer = loaded(gpt_peer(config), weights(params), buffers=("attn.bias", "attn.masked_bias", "position_ids"))
  expected = peer(torch.from_numpy(tokens)).logits
  scale = factors((*tokens.shape, VOCAB)) * valid[:, :, None]
  (expected * torch.from_numpy(scale)).sum().backward()

  assert_close(np.asarray(jax.jit(logits_of)(params))[valid], expected.detach().numpy()[valid], "logits")
  gradients = jax.jit(jax.grad(lambda params: jnp.sum(scale * logits_of(params))))(params)
  assert_same_gradients(weights(gradients), peer, without=("lm_head.weight",))


def test_bert():
  params, model, (tokens, valid) = example_params(BERT_CONFIG), BERT(BERT_CONFIG), batch(VOCAB)
  sides = (np.arange(LENGTH)[None, :] >= np.array([[4], [3], [9]])).astype(np.int64)

  def outputs_of(params):
    def of_text(tokens, sides, valid):
      mask = masking.padding_mask(valid, valid)
      features, following = model.apply({"params": params}, tokens, sides, mask, jnp.arange(LENGTH))
      return model.apply({"params": params}, features, method="logits"), following

    return jax.vmap(of_text)(tokens, sides, valid)

  config = transformers.BertConfig(
    vocab_size=VOCAB,
    hidden_size=BERT_CONFIG.d_model,
    num_hidden_layers=BERT_CONFIG.num_layers,
    num_attention_heads=BERT_CONFIG.num_heads,
    intermediate_size=BERT_CONFIG.d_ff,
    max_position_embeddings=BERT_CONFIG.max_positions,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
  )
  peer = loaded(transformers.BertForPreTraining(config), bert_weights(params), buffers=("position_ids",))
  expected = peer(
    torch.from_numpy(tokens),
    attention_mask=torch.from_numpy(valid.astype(np.int64)),
    token_type_ids=torch.from_numpy(sides),
  )
  scales = factors((*tokens.shape, VOCAB)) * valid[:, :, None], factors((len(LENGTHS), 2))
  peers = expected.prediction_logits, expected.seq_relationship_logits
  sum((logits * torch.from_numpy(scale)).sum() for logits, scale in zip(peers, scales, strict=True)).backward()

  logits, following = jax.jit(outputs_of)(params)
  assert_close(np.asarray(logits)[valid], peers[0].detach().numpy()[valid], "masked tokens")
  assert_close(following, peers[1].detach(), "next sentence")

  def weighted(params):
    return sum(jnp.sum(scale * found) for found, scale in zip(outputs_of(params), scales, strict=True))

  gradients = bert_weights(jax.jit(jax.grad(weighted))(params))
  # The table is used twice there under one name, and its output bias has two names.
  assert_same_gradients(gradients, peer, without=("decoder.weight", "decoder.bias"))
