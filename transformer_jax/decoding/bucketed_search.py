"""The search for many outputs, in batches by the length of their sources, on all local devices.

The sentences of a batch have the bucket's compute shape (`decoding/buckets.py`), and each bucket has one compiled
program (`decoding/programs.py`). An output that its bucket truncates is searched for again in a larger one.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from transformer_jax import registry
from transformer_jax.config import DecodeConfig
from transformer_jax.decoding import buckets, programs
from transformer_jax.decoding.beam_search import Hypotheses, SearchOptions
from transformer_jax.decoding.choices import Choices
from transformer_jax.decoding.continuous_batching import TRUNCATED
from transformer_jax.decoding.translation import require_finite
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runtime import devices, trace_cache
from transformer_jax.runtime.values import PyTree

if TYPE_CHECKING:  # Flax takes a fifth of a second to import, and only tracing needs it
  import flax.linen as nn

# The sentences per slot that a device gets. The sentences in the queue are already encoded, which takes much memory if
# a device has hundreds of slots.
_QUEUE_ON_CPU = 16
_QUEUE = 8
# Each program takes tens of megabytes, and clients of a server choose options.
_MOST_PROGRAMS = 32


class Request(NamedTuple):
  """A request for an output.

  Attributes:
    source: the tokens of its sentence, at most `max_source_length`, with EOS.
    prefix: the tokens with which the output begins; None if no output has a prefix.
    numbers: the seed and the numbers that tell this request apart from all others; None if nothing is drawn.
  """

  source: list[int]
  prefix: list[int] | None
  numbers: tuple[int, ...] | None


class BucketedSearch:
  """The search with one model. A program is compiled for each bucket and each set of options but `length_penalty`.

  Args:
    model: returns the module, an encoder-decoder of the registry or an ensemble; called when a program is traced.
    configs: the model's config, or those of an ensemble's models.
    decode: gives the lengths of sources and outputs.
  """

  def __init__(self, model: Callable[[], "nn.Module"], configs: Sequence[AnyModelConfig], decode: DecodeConfig):
    self._model, self._configs = model, tuple(configs)
    self._longest, self._extra = decode.max_source_length, decode.extra_length
    self._functions: dict[tuple[int, int], Callable] = {}
    self._fitting: dict[tuple[int, int, int], int] = {}  # the slots that an accelerator has room for
    self._programs: set[PyTree] = set()  # what tells them apart: a function has one for each kind of its arguments
    self._lock = threading.Lock()  # batches are searched side by side

  def search(
    self, params: Params, requests: Sequence[Request], options: SearchOptions, batch_size: int | None
  ) -> Iterator[tuple[int, Hypotheses]]:
    """Yields the index of each request with its best hypotheses, in the order in which they are found.

    Args:
      params: the model's parameters, on every local device.
      requests: the outputs to search for; their order changes no result.
      options: the options of the search.
      batch_size: sentences computed side by side on a device; None suits the machine.

    Raises:
      InputError: `batch_size` needs more memory than there is.
      RunError: the model's probabilities are not finite.
    """
    self._forget_if_many()
    row_lengths = {i: len(request.source) for i, request in enumerate(requests)}  # of those that are still to be found
    while row_lengths:
      truncated = []
      for i, hypotheses in self._search_once(params, requests, row_lengths, options, batch_size):
        if hypotheses.lengths[0] == TRUNCATED:
          truncated.append(i)
        else:
          yield i, hypotheses
      row_lengths = {i: buckets.large_enough(len(requests[i].source), self._longest, self._extra) for i in truncated}

  def slots(self, params: Params, options: SearchOptions, length: int, batch_size: int | None = None) -> int:
    """The number of sentences of a bucket that a device decodes side by side.

    Args:
      params: the model's parameters, of which only shapes and types count.
      options: the options of the search.
      length: the bucket's length.
      batch_size: this number. None suits the machine; a search then takes at most half of an accelerator's memory, as
        training has its state there, too.
    """
    rows = batch_size or buckets.rows_at_once(length, self._headroom(options, length))
    memory = None if batch_size or devices.on_cpu() else devices.memory()
    return rows if memory is None else self._that_fit(params, options, length, rows, memory // 2)

  def _that_fit(self, params: Params, options: SearchOptions, length: int, most: int, memory: int) -> int:
    """The slots, at most `most`, for which all searches that run side by side have room in `memory` bytes; or 1."""
    headroom = self._headroom(options, length)

    def count() -> int:
      slots, sizes = most, {"queue": _QUEUE, "headroom": headroom}
      while slots > 1:
        needed = programs.bytes_needed(self._model(), options, params, length, slots=slots, **sizes)
        if devices.concurrency() * needed <= memory:
          break
        slots = max(1, min(slots - 1, slots * memory // (devices.concurrency() * needed)))
      return slots

    key = options.beam_size, length, headroom
    found = self._fitting.get(key)
    if found is None:
      kept = f"slots {self._configs} {key}"
      self._fitting[key] = found = trace_cache.kept_number(count, kept) if self._is_own() else count()
    return found

  def _search_once(
    self,
    params: Params,
    requests: Sequence[Request],
    row_lengths: dict[int, int],
    options: SearchOptions,
    batch_size: int | None,
  ) -> Iterator[tuple[int, Hypotheses]]:
    """Yields the index of each request in `row_lengths` with its best hypotheses, which may be truncated."""
    count, indices = devices.local_device_count(), list(row_lengths)

    def search(batch: buckets.Batch) -> list[tuple[int, Hypotheses]]:
      members = [indices[member] for member in batch.members]
      slots = self.slots(params, options, batch.length, batch_size)
      found = self._search_batch(params, [requests[i] for i in members], batch, options, slots)
      return list(zip(members, found, strict=True))

    batches = buckets.batches(
      list(row_lengths.values()),
      self._longest,
      lambda length: count * self.slots(params, options, length, batch_size),
      queue=_QUEUE_ON_CPU if devices.on_cpu() else _QUEUE,
      concurrency=devices.concurrency(),
    )
    for found in devices.parallel_map(search, batches):
      yield from found

  def _search_batch(
    self, params: Params, requests: Sequence[Request], batch: buckets.Batch, options: SearchOptions, slots: int
  ) -> list[Hypotheses]:
    """The best hypotheses of each request of a batch."""
    count, headroom = devices.local_device_count(), self._headroom(options, batch.length)

    def deal(x: np.ndarray) -> np.ndarray:
      """Sentences are dealt out like cards, so that every device has as many of them."""
      return x.reshape(-1, count, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)

    source = buckets.pad([request.source for request in requests], batch.rows, batch.length, PAD)
    choices = _choices(requests, batch.rows, batch.length + headroom)
    function, state = self._function(slots, headroom), (params, jax.tree.map(np.float32, options))
    kinds = jax.tree.structure((options, choices))
    self._programs.add((kinds, slots, headroom, batch.length, batch.rows))
    by_device = jax.device_get(function(state, devices.shard(jax.tree.map(deal, (source, choices)))))
    together = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(batch.rows, *x.shape[2:]), by_device)
    found = [Hypotheses(*(x[row] for x in together)) for row in range(len(requests))]
    require_finite(all(each.lengths[0] == TRUNCATED or math.isfinite(each.scores[0]) for each in found))
    return found

  def _headroom(self, options: SearchOptions, length: int) -> int:
    """The room for an output beyond the bucket's length, in tokens.

    An exact search and a greedy search have room for all extra tokens: the exact search often needs them, and they cost
    the single hypothesis of the greedy search little.
    """
    hasty = options.beam_size > 1 and options.patience > 0
    return buckets.headroom(length, self._longest, self._extra) if hasty else self._extra

  def _function(self, slots: int, headroom: int) -> Callable:
    key = slots, headroom
    with self._lock:
      if key not in self._functions:
        self._functions[key] = self._made(*key)
      return self._functions[key]

  def _forget_if_many(self) -> None:
    """Forgets all programs if there are many, and all others that JAX has compiled.

    What is being computed goes on, and the next batch compiles its program again.
    """
    with self._lock:
      if len(self._programs) > _MOST_PROGRAMS:
        self._functions.clear()
        self._programs.clear()
        jax.clear_caches()

  def _made(self, slots: int, headroom: int) -> Callable:
    def search(state: tuple[Params, SearchOptions], batch: tuple[jax.Array, Choices]) -> Hypotheses:
      params, options = state
      return programs.search(
        self._model(), options, params, *batch, slots=slots, extra_length=self._extra, headroom=headroom
      )

    function = devices.over_devices(search, out_axes=0, alone=True)
    if not self._is_own():
      return function
    key = f"{self._configs} {slots} {headroom} {self._extra}"
    return trace_cache.kept(function, key, lambda *_: Hypotheses._make(Hypotheses._fields))

  def _is_own(self) -> bool:
    """Whether all that tracing reads is code of this package."""
    places = [registry.family_of(config).module for config in self._configs]
    return trace_cache.is_own(*self._configs) and all(map(trace_cache.is_own_module, places))


def _choices(requests: Sequence[Request], rows: int, length: int) -> Choices:
  """What is chosen for these requests, in rows of `length` tokens; an output with a longer prefix is truncated."""
  forced = [request.prefix[:length] for request in requests if request.prefix is not None]
  numbers = [request.numbers for request in requests if request.numbers is not None]
  return Choices(
    buckets.pad(forced, rows, length, PAD) if forced else None,
    np.array(numbers + [(0,) * len(numbers[0])] * (rows - len(numbers)), np.uint32) if numbers else None,
  )
