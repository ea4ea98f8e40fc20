"""Any model as boxes, by its config."""

from transformer_jax import registry
from transformer_jax.inside import language_parts, recurrent_parts
from transformer_jax.inside.parts import ModelParts
from transformer_jax.inside.transformer_parts import transformer
from transformer_jax.language.config import BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.model.config import AnyModelConfig, ModelConfig
from transformer_jax.recurrent.config import BahdanauConfig, LuongConfig, SequenceToSequenceConfig
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.trace_cache import is_own


def model_parts(model: AnyModelConfig) -> ModelParts:
  """The boxes of a model.

  Raises:
    InputError: the model is of a family of another package.
  """
  if not is_own(model):
    raise InputError(
      f"config.model.family is {registry.name_of(model)}, a family of another package, which cannot be drawn: take a "
      "config of this package"
    )
  match model:
    case ModelConfig():
      return transformer(model)
    case GPTConfig():
      return language_parts.gpt(model)
    case BERTConfig():
      return language_parts.bert(model)
    case ELMoConfig():
      return language_parts.elmo(model)
    case SequenceToSequenceConfig() | LuongConfig():
      return recurrent_parts.stacks(model)
    case BahdanauConfig():
      return recurrent_parts.bahdanau(model)
  raise NotImplementedError(f"boxes of the family {registry.name_of(model)}")
