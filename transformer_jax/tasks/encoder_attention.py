"""The attention of BERT, pre-trained or fine-tuned, over one sentence."""

import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.labelled import sentence_rows
from transformer_jax.data.next_sentence import TOKEN_TYPES, TOKENS
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.attention import Attention, cut, weights_by_kind
from transformer_jax.language.bert import BERT, BERTClassifier
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.texts import require_text


def _trunk(model: BERT | BERTClassifier, tokens: jax.Array, mask: jax.Array) -> jax.Array:
  return model.trunk(tokens, jnp.zeros_like(tokens), mask, deterministic=True)


def encoder_attention(config: Config, params: Params, tokenizer: Tokenizer, sentence: str) -> Attention:
  """Where each head of BERT looks at each position of a sentence: the weights of the encoder.

  Raises:
    InputError: the sentence is longer than a row, or no text.
    RunError: a weight is not finite.
  """
  require_text(sentence, "the sentence")
  length = config.data.row_length
  [row], [shortened] = sentence_rows(tokenizer, [sentence], length)
  if shortened:
    raise InputError(
      f"the sentence has more than {length - 2} tokens, as many as config.data.row_length = {length} allows: shorten it"
    )
  valid = row[TOKEN_TYPES] > 0
  ids, mask = jnp.asarray(row[TOKENS], jnp.int32), masking.padding_mask(valid, valid)
  found = weights_by_kind(registry.module(config.model), params, ids, mask, method=_trunk)
  tokens = ["[CLS]", *tokenizer.pieces(row[TOKENS, valid][1:-1].tolist()), "[SEP]"]
  return Attention(tuple(tokens), (), (), cut(found, len(tokens), 0))
