"""A random model of a tiny vocabulary, whose every sequence can be tried, and searches that are plain."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import LengthPenalty
from transformer_jax.decoding import continuous_batching
from transformer_jax.decoding.beam_search import SearchOptions, beam_search
from transformer_jax.decoding.choices import Choices, restriction
from transformer_jax.paper import formulas

PAD, UNK, BOS, EOS = range(4)
VOCAB = 7


class Toy:
  """P(next token) that depends on everything so far through a hash; one table a sentence."""

  def __init__(self, seed, sentences, eos_bonus=0.0, states=101, vocab=VOCAB):
    logits = np.random.default_rng(seed).normal(size=(sentences, states, vocab)) * 2
    logits[:, :, EOS] += eos_bonus
    self.table = np.array(jax.nn.log_softmax(logits.astype(np.float32)))
    self.states, self.vocab = states, vocab

  def of(self, sentences):
    """The toy of some of the sentences, in another order."""
    toy = Toy(0, 0, states=self.states, vocab=self.vocab)
    toy.table = self.table[list(sentences)]
    return toy

  def log_probs(self, sentence, tokens):
    """The log-probabilities of the next token after these."""
    state = 0
    for position, token in enumerate([BOS, *tokens]):
      state = _next_state(self.states, state, position, token)
    return self.table[sentence, state]

  def log_prob(self, sentence, tokens):
    return sum(float(self.log_probs(sentence, tokens[:i])[token]) for i, token in enumerate(tokens))

  def search(
    self,
    limits,
    beam_size,
    kind=LengthPenalty.GNMT,
    alpha=0.6,
    n_best=1,
    max_length=None,
    slots=None,
    patience=0.0,
    steps=None,
    choices=(None, None),
    sampling=None,
  ):
    """The plain search of all sentences together, or in `slots` slots; the list `steps` gets the positions of each."""
    room = max_length or int(max(limits))
    program = _program(self.states, kind, beam_size, n_best, patience > 0, room, slots, steps is None, sampling)
    _POSITIONS.clear()
    found = jax.device_get(program(self.table, jnp.asarray(limits, jnp.int32), alpha, patience, choices))
    jax.effects_barrier()
    if steps is not None:
      steps.extend(_POSITIONS)
    return found


_POSITIONS = []  # of each step of the latest search


@functools.cache
def _program(states, kind, beam_size, n_best, patient, max_length, slots, silent, sampling):
  """search(table, limits, alpha, patience, choices), compiled once for all tests with these sizes."""
  next_state = functools.partial(_next_state, states)

  def admit(cache, slot, sentence):
    sentences, states = cache
    return sentences.at[slot].set(sentence), states.at[slot].set(0)

  @jax.jit
  def search(table, limits, alpha, patience, choices):
    def step(cache, positions, parents, tokens):
      if not silent:
        jax.debug.callback(lambda positions: _POSITIONS.append(positions.tolist()), positions)
      sentences, states = cache
      states = next_state(jnp.take_along_axis(states, parents, axis=1), positions[:, None], tokens)
      # NaN where no sentence is: nothing of it may be seen.
      return table.at[sentences[:, None], states].get(mode="fill", fill_value=math.nan), (sentences, states)

    options = SearchOptions(beam_size, kind, alpha, n_best, _Positive(patience) if patient else 0.0)
    if slots is None:
      together = jnp.arange(len(limits)), jnp.zeros((len(limits), beam_size), int)
      return beam_search(step, together, limits, max_length, options)
    # Each slot's sentence, here none, and its hypotheses' states.
    empty = jnp.full(slots, len(table)), jnp.full((slots, beam_size), -1)
    restrict = restriction(Choices(*choices), limits, sampling)
    return continuous_batching.search(step, admit, empty, limits, slots, max_length, options, restrict)

  return search


class _Positive:
  """A number above 0 that a program gets as an argument."""

  def __init__(self, value):
    self.value = value

  def __gt__(self, zero):
    return True

  def __mul__(self, other):
    return self.value * other


def _next_state(states, state, position, token):
  return (state * 13 + position * 3 + token * 7 + 5) % states


def sequences(found, sentence):
  """The hypotheses of a sentence as tuples of tokens."""
  return [tuple(tokens[:n].tolist()) for tokens, n in zip(found.tokens[sentence], found.lengths[sentence], strict=True)]


PENALTIES = {LengthPenalty.GNMT: formulas.length_penalty, LengthPenalty.FAIRSEQ: lambda length, alpha: length**alpha}


def exhaustive(toy, sentence, limit, kind, alpha):
  """All (score, tokens), best first."""
  penalty = functools.partial(PENALTIES[kind], alpha=alpha)
  return formulas.exhaustive_search(functools.partial(toy.log_probs, sentence), limit, toy.vocab, penalty)


def reference(toy, sentence, limit, beam_size, kind, alpha, patience=math.inf):
  """All (score, tokens) that end in the beam, best first."""
  penalty = functools.partial(PENALTIES[kind], alpha=alpha)
  return formulas.beam_search(functools.partial(toy.log_probs, sentence), limit, beam_size, penalty, patience)
