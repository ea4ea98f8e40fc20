"""A beam search, step by step: the tree of the hypotheses that it keeps, finishes and prunes.

The functions are those of the compiled search (`decoding/beam_search.py`, `decoding/programs.py`), and so are the
shapes of the arrays, but for the room for an output: a compiled search with patience has less of it. But here Python
makes the steps, which is slow, and looks at the search between them.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import programs
from transformer_jax.decoding.beam_search import (
  Search,
  SearchOptions,
  advance,
  extend,
  is_done,
  length_penalty,
  new_search,
)
from transformer_jax.decoding.line_breaks import without_line_breaks
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import EOS, PAD
from transformer_jax.runtime.values import PyTree

KEPT, FINISHED, PRUNED = "kept", "finished", "pruned"
_PRUNED = 3  # pruned hypotheses of a step that are part of the tree, the most probable ones


class Node(NamedTuple):
  """A hypothesis.

  Attributes:
    parent: the number of the node that it extends by one token; None for the empty hypothesis.
    step: the number of its tokens.
    token: the newest token; the decoder's first input for the empty hypothesis.
    log_prob: log P of all its tokens.
    fate: `kept` in the beam, `finished` with EOS, or `pruned`.
    score: log P over its length penalty if it is finished, else None.
  """

  parent: int | None
  step: int
  token: int
  log_prob: float
  fate: str
  score: float | None = None


class SearchTree(NamedTuple):
  """The hypotheses of a search.

  Attributes:
    nodes: the empty hypothesis, then the hypotheses of each step; of those that were pruned the most probable ones.
    newest: the text of the newest token of each node.
    best: the numbers of the finished hypotheses that the search returns, best first.
    texts: their texts.
    options: the options of the search.
  """

  nodes: list[Node]
  newest: list[str]
  best: list[int]
  texts: list[str]
  options: SearchOptions

  def of_best(self, count: int) -> "SearchTree":
    """The tree with the `count` best hypotheses whose texts differ, as `translate` returns them."""
    different: dict[str, int] = {}
    for number, text in zip(self.best, self.texts, strict=True):
      different.setdefault(text, number)
    chosen = list(different.items())[:count]
    return self._replace(best=[number for _, number in chosen], texts=[text for text, _ in chosen])

  def path(self, number: int) -> list[int]:
    """The numbers of the nodes from the first token of a hypothesis to its last."""
    found: list[int] = []
    parent: int | None = number
    while parent is not None and self.nodes[parent].parent is not None:
      found.append(parent)
      parent = self.nodes[parent].parent
    return found[::-1]

  def tokens(self, number: int) -> list[int]:
    """The tokens of a hypothesis."""
    return [self.nodes[i].token for i in self.path(number)]


def search_tree(
  model: nn.Module,
  options: SearchOptions,
  params: Params,
  tokenizer: Tokenizer,
  source: np.ndarray,
  extra_length: int,
) -> SearchTree:
  """Searches for the best translations of a sentence, and keeps what happens.

  Args:
    model: an encoder-decoder of the registry.
    options: the options of the search.
    params: the model's parameters.
    tokenizer: the model's tokenizer.
    source: `[rows, length]` with EOS: the sentence in each row, as many times as the compiled search has slots. So the
      numbers are the same up to the order of additions.
    extra_length: an output may have this many more tokens than its input.
  """
  limit = jnp.int32(np.sum(source[0] != PAD) + extra_length)
  max_length = source.shape[1] + extra_length
  cache = jax.jit(functools.partial(_first_cache, model, options, max_length))(params, source)
  step = jax.jit(functools.partial(programs.decode_step, model, options))
  search, nodes = new_search(max_length, options), [Node(None, 0, options.start, 0.0, KEPT)]
  beam: list[int | None] = [0] + [None] * (options.beam_size - 1)  # the node of each hypothesis of the beam
  while not is_done(search, limit, options):
    inputs = [jnp.broadcast_to(x, (len(source), *x.shape)) for x in (search.position, *search.beam[2:])]
    log_probs, cache = step(params, cache, *inputs)
    after, ends = _advance(search, log_probs[0], limit, options)
    beam = _grow(nodes, beam, jax.device_get((search, after, ends, log_probs[0])), options, int(limit))
    search = after
  tree = SearchTree(nodes, tokenizer.target.pieces([node.token for node in nodes]), [], [], options)
  numbers = {tuple(tree.tokens(i)): i for i, node in enumerate(nodes) if node.fate == FINISHED}
  tokens, lengths, *_ = jax.device_get(search.finished)
  found = [tuple(row[:length].tolist()) for row, length in zip(tokens, lengths, strict=True) if length]
  return tree._replace(
    best=[numbers[each] for each in found],
    texts=[without_line_breaks(tokenizer.target.decode(each[:-1])) for each in found],
  )


def _first_cache(
  model: nn.Module, options: SearchOptions, max_length: int, params: Params, source: jax.Array
) -> PyTree:
  memories, _ = programs.encode_all(model, params, len(source), source)
  return programs.first_cache(model, params, memories, max_length, options.beam_size)


@jax.jit
def _advance(
  search: Search, log_probs: jax.Array, limit: jax.Array, options: SearchOptions
) -> tuple[Search, jax.Array]:
  """The search after one step, and log P of each hypothesis of the beam that ends in it, -inf where it does not."""
  ends, *_ = extend(search.beam.log_probs, log_probs, search.position + 1 >= limit, options.start)
  return advance(search, log_probs, limit, options), ends


def _grow(
  nodes: list[Node],
  beam: list[int | None],
  states: tuple[Search, Search, np.ndarray, np.ndarray],
  options: SearchOptions,
  limit: int,
) -> list[int | None]:
  """Adds the hypotheses of one step to the nodes, and returns the nodes of the new beam."""
  before, after, ends, log_probs = states
  step = int(after.position)
  chosen: set[tuple[int, int]] = set()
  for place in np.flatnonzero(ends > -np.inf):
    score = ends[place] / length_penalty(options.penalty, options.length_penalty, float(step))
    nodes.append(Node(beam[place], step, EOS, float(ends[place]), FINISHED, float(score)))
    chosen.add((int(place), EOS))
  new_beam: list[int | None] = []
  for log_prob, parent, token in zip(after.beam.log_probs, after.beam.parents, after.beam.last, strict=True):
    new_beam.append(len(nodes) if log_prob > -np.inf else None)
    if log_prob > -np.inf:
      nodes.append(Node(beam[parent], step, int(token), float(log_prob), KEPT))
      chosen.add((int(parent), int(token)))
  candidates = np.asarray(before.beam.log_probs)[:, None] + log_probs
  for place, token in itertools.islice(_others(candidates, chosen, options.never, only_eos=step >= limit), _PRUNED):
    nodes.append(Node(beam[place], step, token, float(candidates[place, token]), PRUNED))
  return new_beam


def _others(
  candidates: np.ndarray, chosen: set[tuple[int, int]], never: tuple[int, ...], only_eos: bool
) -> Iterator[tuple[int, int]]:
  """Yields the place in the beam and the token of each extension that is not chosen, the most probable first."""
  allowed = np.array(candidates)
  allowed[:, list(never)] = -np.inf
  if only_eos:
    allowed[:, [token for token in range(allowed.shape[1]) if token != EOS]] = -np.inf
  for number in np.argsort(-allowed, axis=None, kind="stable"):
    place, token = (int(i) for i in np.unravel_index(number, allowed.shape))
    if allowed[place, token] == -np.inf:
      return
    if (place, token) not in chosen:
      yield place, token
