"""An ensemble: several models that translate as one, by the mean of their log-probabilities of the next token."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.tagged import directions_of
from transformer_jax.decoding.beam_search import log_softmax_without
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.params import Params
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import PyTree

if TYPE_CHECKING:  # orbax takes seconds to import
  from transformer_jax.runs.run import Model, Run


@flax.struct.dataclass
class Cache:
  """The decoding cache of one sentence.

  Attributes:
    own: each model's cache, without its memory.
    memory: each model's view of the source.
  """

  own: tuple[PyTree, ...]
  memory: tuple[PyTree, ...]


class Ensemble(nn.Module):
  """Encoder-decoders with one vocabulary, as one model to decode with.

  The next token y after the tokens Y of an output to X has 1/M sum_m log P_m(y | Y, X) over the M models. This is not
  normalised, so that an output's log-probability is the mean of those that the models give it.

  The methods are those of `model.transformer.Transformer`, which documents them. What is an array there is a tuple
  here, with one entry for each model.
  """

  models: tuple[Any, ...]  # encoder-decoders of the registry

  @property
  def config(self) -> AnyModelConfig:
    """The config of the first model; `require_one_vocabulary` compares what decoding reads of it."""
    return self.models[0].config

  def encode(self, source: jax.Array, positions: jax.Array, mask: jax.Array) -> tuple[PyTree, ...]:
    return tuple(model.encode(source, positions, mask) for model in self.models)

  def decode(
    self,
    target: jax.Array,
    positions: jax.Array,
    memory: tuple[PyTree, ...],
    self_mask: jax.Array,
    cross_mask: jax.Array,
  ) -> tuple[jax.Array, ...]:
    return tuple(
      model.decode(target, positions, own, self_mask, cross_mask)
      for model, own in zip(self.models, memory, strict=True)
    )

  def precompute_cross_attention(self, memory: tuple[PyTree, ...], source_valid: jax.Array) -> tuple[PyTree, ...]:
    return tuple(
      model.precompute_cross_attention(own, source_valid) for model, own in zip(self.models, memory, strict=True)
    )

  def init_cache(self, memory: tuple[PyTree, ...], max_length: int, beams: int) -> Cache:
    caches = [model.init_cache(own, max_length, beams) for model, own in zip(self.models, memory, strict=True)]
    return _joined(caches)

  def decode_step(
    self, cache: Cache, position: jax.Array, parents: jax.Array, tokens: jax.Array
  ) -> tuple[tuple[jax.Array, ...], Cache]:
    caches = [dataclasses.replace(own, memory=memory) for own, memory in zip(cache.own, cache.memory, strict=True)]
    steps = [model.decode_step(own, position, parents, tokens) for model, own in zip(self.models, caches, strict=True)]
    return tuple(hidden for hidden, _ in steps), _joined([own for _, own in steps])

  def log_probs(self, hidden: tuple[jax.Array, ...], without: tuple[int, ...] = ()) -> jax.Array:
    """The mean log-probability of each next token: `[..., model]` of each model -> float32 `[..., vocab]`.

    The tokens `without` have no probability in any of the models.
    """
    found = [log_softmax_without(model.logits(own), without) for model, own in zip(self.models, hidden, strict=True)]
    return jnp.mean(jnp.stack(found), axis=0)


def _joined(caches: Sequence[PyTree]) -> Cache:
  own = tuple(dataclasses.replace(cache, memory=None) for cache in caches)
  return Cache(own, tuple(cache.memory for cache in caches))


def require_one_vocabulary(runs: "Sequence[Run]") -> None:
  """Raises InputError unless all have the first run's languages, tags, tokenizer and first token of the decoder."""
  first, *others = runs
  for run in others:
    one, other = (", ".join(f"{a} to {b}" for a, b in sorted(directions_of(each.config.data))) for each in (first, run))
    if one != other:
      raise InputError(
        f"{first.path} translates from {one} and {run.path} from {other}, but the models of an ensemble need the same "
        "languages: leave one of them out"
      )
    if run.config.data.tags != first.config.data.tags:
      tagged, plain = (run, first) if run.config.data.tags else (first, run)
      raise InputError(
        f"{tagged.path} was trained with config.data.tags and {plain.path} without, but the models of an ensemble read "
        "the same lines: leave one of them out"
      )
    if run.tokenizer.fingerprint() != first.tokenizer.fingerprint():
      models = ",".join(name for name in first.tokenizer.files() if name.endswith(".model"))
      raise InputError(
        f"{first.path} and {run.path} have different vocabularies, but the models of an ensemble need the same: train "
        f"one of them with the other's {models} as config.data.tokenizer"
      )
    if run.config.model.start_token != first.config.model.start_token:
      raise InputError(
        f"the decoders of {first.path} and {run.path} begin with different tokens, but those of an ensemble need the "
        "same: train one of them with the other's config.model.start"
      )


def module(configs: Sequence[AnyModelConfig]) -> Ensemble:
  """The ensemble of models with these configs."""
  return Ensemble(tuple(map(registry.module, configs)))


def ensemble(models: "Sequence[Model]") -> tuple[Config, Params]:
  """Config and parameters of an ensemble.

  The config is the first model's. Its lengths are the least of all models', so that each can decode them.
  """
  decode = [model.config.decode for model in models]
  least = {name: min(getattr(each, name) for each in decode) for name in ("max_source_length", "extra_length")}
  config = dataclasses.replace(models[0].config, decode=dataclasses.replace(decode[0], **least))
  params = {f"models_{number}": model.params for number, model in enumerate(models)}
  return config, params
