"""The code with one thing broken: what the checks of the paper's statements must see."""

import dataclasses
from collections import Counter
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from transformer_jax.data import grammar, trees
from transformer_jax.data.trees import Outcome, Span
from transformer_jax.decoding import beam_search
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation import parseval, scores
from transformer_jax.model import cache
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper.table3 import ROWS
from transformer_jax.paper.table4 import SETTINGS
from transformer_jax.runtime import devices
from transformer_jax.tasks import translation
from transformer_jax.training import chunked_loss, optimizer, step

# As they are before anything is put in their place.
_CONTINUE, _PENALTY = cache.continue_ancestors, beam_search.length_penalty
_DECODE = Transformer.decode
_PRECOMPUTE_CROSS_ATTENTION = Transformer.precompute_cross_attention
_CHUNKED_SUMS, _DECODER_OUTPUT, _TRAIN_STEP = chunked_loss.chunked_sums, translation.decoder_output, step.train_step
_DELINEARISE, _TREE_OF, _CONSTITUENTS = trees.delinearise, grammar.tree_of, parseval.constituents
_SUM, _OPTIMIZER, _BLEU, _OPTIONS = devices.sum_over_devices, optimizer.optimizer, scores._bleu, Translator._options


def causal_encoder(self, mask):
  """All self-attention sees the past only."""
  return mask & jnp.tri(len(mask), dtype=bool)


def decoder_sees_all(self, target, positions, memory, self_mask, cross_mask, *, deterministic=True):
  """Each position of the output attends to all of it."""
  return _DECODE(self, target, positions, memory, jnp.ones_like(self_mask), cross_mask, deterministic=deterministic)


def decoder_sees_one_source_token(self, target, positions, memory, self_mask, cross_mask, *, deterministic=True):
  """Each position of the output attends to the first one of the input alone."""
  first = cross_mask & (jnp.arange(cross_mask.shape[1]) == 0)[None, :]
  return _DECODE(self, target, positions, memory, self_mask, first, deterministic=deterministic)


def unrestricted_encoder(self, source, positions, mask, *, deterministic=True):
  x = self._layer_input(self.target_embedding(source) + self.source_positions(positions), deterministic)
  return self.encoder(x, mask, deterministic=deterministic)


def zero_outer(self, x, features, name):
  """The outer layer of the feed-forward network begins at 0."""
  initial = nn.initializers.zeros if name == "outer" else nn.initializers.glorot_uniform()
  return nn.Dense(features, kernel_init=initial, name=name)(x)


def unscaled_source(self, source, positions, mask, *, deterministic=True):
  x = self._layer_input(self.target_embedding.table[source] + self.source_positions(positions), deterministic)
  return self.encoder(x, mask, deterministic=deterministic)


def bfloat16_softmax(query, key, mask):
  scores = jnp.einsum("qhd,khd->hqk", query, key, preferred_element_type=jnp.float32) * query.shape[-1] ** -0.5
  scores = jnp.where(mask[None], scores, jnp.finfo(jnp.float32).min).astype(jnp.bfloat16)
  return jnp.where(mask[None], jax.nn.softmax(scores), 0).astype(jnp.float32)


def bfloat16_logits(table, hidden, dtype="float32"):
  return jnp.einsum("...d,vd->...v", hidden.astype(dtype), table.astype(dtype)).astype(jnp.float32)


def fast_variance(config):
  """E[x^2] - E[x]^2, which is nothing where the mean is large."""
  return nn.LayerNorm(config.layer_norm_epsilon, dtype=config.dtype.value)


def bfloat16_statistics(config):
  return nn.LayerNorm(config.layer_norm_epsilon, dtype=config.dtype.value, force_float32_reductions=False)


def one_key(self, name):
  """The key of the row, without the module's own place."""
  return self.scope.rngs[name].rng


def no_dropout(model, params, row, key):
  return _DECODER_OUTPUT(model, params, row, None)


def dropout_by_step(config, task, state, batch):
  return _TRAIN_STEP(config, task, state, batch._replace(indices=0 * batch.indices))


def dropout_by_row(config, task, state, batch):
  return _TRAIN_STEP(config, task, state.replace(step=0 * state.step), batch)


def padding_in_the_loss(logits_of, table, hidden, targets, valid, label_smoothing):
  return _CHUNKED_SUMS(logits_of, table, hidden, targets, jnp.ones_like(valid), label_smoothing)


def no_smoothing(logits_of, table, hidden, targets, valid, label_smoothing):
  return _CHUNKED_SUMS(logits_of, table, hidden, targets, valid, 0.0)


def _mean(gradients: Any, tokens: Any) -> Any:
  return jax.tree.map(lambda g: g / tokens, gradients)


def mean_of_devices(tree):
  """The mean of the devices' mean gradients, times all tokens, from (gradients, sums)."""
  if not isinstance(tree, tuple):
    return _SUM(tree)
  gradients, sums = tree
  total = _SUM(sums)
  means = _SUM(_mean(gradients, sums.tokens))
  return jax.tree.map(lambda mean: mean / _SUM(jnp.ones(())) * total.tokens, means), total


def mean_of_micro_batches(function, batch, parts):
  found = []
  for part in range(parts):
    found.append(function(jax.tree.map(lambda x, part=part: x.reshape(parts, -1, *x.shape[1:])[part], batch)))
  total = jax.tree.map(lambda *x: sum(x), *(sums for _, sums in found))
  means = [_mean(gradients, sums.tokens) for gradients, sums in found]
  return jax.tree.map(lambda *x: sum(x) / parts * total.tokens, *means), total


def usual_beta2(config):
  """Adam's own 0.999."""
  return optax.chain(
    optax.scale_by_adam(0.9, 0.999, 1e-9), optax.scale_by_learning_rate(optimizer.learning_rate(config))
  )


def without_parents(ancestors, position, parents):
  """A hypothesis takes over the past of the one in its own place."""
  return _CONTINUE(ancestors, position, jnp.arange(len(parents)))


def visible_padding(self, memory, source_valid):
  return _PRECOMPUTE_CROSS_ATTENTION(self, memory, jnp.ones_like(source_valid))


def without_alpha(kind, alpha, length):
  return _PENALTY(kind, 0.0, length)


def options_without_alpha(self, beam_size, length_penalty, *others):
  return _OPTIONS(self, beam_size, 0.0, *others)


def stop_by_present_length(search, limit, options):
  """The bound has the penalty of the present length, not of the longest allowed."""
  bound = jnp.max(search.beam.log_probs) / _PENALTY(options.penalty, options.length_penalty, search.position)
  return (bound <= search.finished.scores[-1]) | (search.position >= limit)


def row(name, model=None, train=None):
  """Table 3 with another row."""
  changes = {"model": model, "train": train}
  return ROWS | {name: ROWS[name]._replace(**{key: value for key, value in changes.items() if value is not None})}


def setting(name, **changes):
  """The settings of §6.3's parsers, with another one."""
  fields = {key: getattr(SETTINGS[name], key) | value for key, value in changes.items()}
  return SETTINGS | {name: SETTINGS[name]._replace(**fields)}


def without_repair(text, words):
  """A bracket that is not closed is left out."""
  tree, outcome = _DELINEARISE(text, words)
  return dataclasses.replace(tree, spans=tree.spans[:1]) if outcome is Outcome.REPAIRED else tree, outcome


def with_punctuation(tree, kept):
  return _CONSTITUENTS(tree, [True] * len(kept))


def each_span_once(tree, kept):
  """Constituents without their number."""
  return Counter(set(_CONSTITUENTS(tree, kept)))


def right_branching(number):
  """A grammar without ambiguity."""
  tree = _TREE_OF(number)
  return dataclasses.replace(tree, spans=tuple(Span("S", start, len(tree.words)) for start in range(len(tree.words))))


def lower_case(tokenize, lowercase, *, quiet):
  return _BLEU(tokenize, True, quiet=quiet)


def other_words(tokenize, lowercase, *, quiet):
  return _BLEU("intl", lowercase, quiet=quiet)
