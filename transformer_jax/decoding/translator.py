"""The text-to-text path: the command line, evaluation while training and the Python API all translate here."""

import dataclasses
import functools
import itertools
import logging
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.config.experiment import MOST_ALPHA, MOST_BEAMS
from transformer_jax.data.tokenizer import EOS, PAD, Tokenizer
from transformer_jax.decoding import batch as programs
from transformer_jax.decoding import buckets, long_lines
from transformer_jax.decoding.batch import SearchOptions
from transformer_jax.decoding.beam_search import OUTGROWN
from transformer_jax.decoding.long_lines import Long, Translation
from transformer_jax.decoding.windows import require_text, windows
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError, RunError, require_option

if TYPE_CHECKING:  # orbax takes seconds to import
  from transformer_jax.runs.reading import Step
  from transformer_jax.runs.run import Run

# Everything that ends a line somewhere: bytes of the vocabulary can spell any of them.
_LINE_BREAK = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_WINDOW = 4096
# Sentences computed together on a device: more are a mistake.
MOST_ROWS = 1 << 16
# Sentences that are handed to a device for each one that it decodes at a time: the others wait for their turn there,
# encoded, which takes memory where a device decodes hundreds at a time.
_QUEUE_ON_CPU = 16
_QUEUE = 8
_NOT_FINITE = "the model gives no probabilities but NaN: its training went wrong; use an earlier checkpoint"

_log = logging.getLogger(__name__)


class PairScore(NamedTuple):
  """What the model thinks of a given translation.

  Attributes:
    log_probability: log P(target | source).
    tokens: of the target, with its EOS; exp(-log_probability / tokens) is the perplexity.
  """

  log_probability: float
  tokens: int


class Translator:
  """Translates with a trained model, on all local devices.

  A translation and its score depend on the sentence alone, to the last bit: not
  on the sentences around it, nor on their order. (`batch_size` chooses other
  compute shapes, with the same texts and with scores equal up to rounding.)

  Args:
    config: of the run; `config.decode` holds the defaults of the search.
    params: the model's parameters.
    tokenizer: of the run.
    step: of the checkpoint, if the parameters come from one.
  """

  def __init__(self, config: Config, params: Any, tokenizer: Tokenizer, step: int | None = None):
    self._config = config
    self.step = step
    self._model = registry.module(config.model)
    self._tokenizer = tokenizer
    self._searches: dict[tuple[SearchOptions, int], Callable] = {}
    self._score = devices.over_devices(functools.partial(programs.score, self._model), out_axes=0, alone=True)
    self.params = params

  @classmethod
  def load(cls, workdir: "Run | str | os.PathLike", *, step: "Step" = "last") -> "Translator":
    """The translator of a run.

    Args:
      workdir: the run folder, or the run that `runs.open` made of it.
      step: which checkpoint: its number, `last`, or `best`, by validation loss.

    Raises:
      InputError: not a run folder, or no such checkpoint in it.
      RunError: the checkpoint is damaged; of `last`, every one is.
    """
    from transformer_jax import runs  # imports orbax, which takes seconds

    return cls(*runs.open(workdir).model("translate", step))

  @property
  def config(self) -> Config:
    """Of the run, to be read only."""
    return self._config

  @property
  def params(self) -> Any:
    """The parameters, on every local device; may be set to others of the same model."""
    return self._params

  @params.setter
  def params(self, params: Any) -> None:
    self._params = devices.replicate(params)

  def translate(
    self,
    sentences: Sequence[str],
    *,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    patience: float | None = None,
    n_best: int = 1,
    return_scores: bool = False,
    batch_size: int | None = None,
    progress: Callable[[int], object] | None = None,
  ) -> list[Any]:
    """Translates a list of sentences; the arguments are those of `translate_lines`.

    Returns:
      A `str` for each sentence; with `return_scores` a `Translation`; with
      `n_best` above 1 a list of them, best first.
    """
    if isinstance(sentences, str):
      raise InputError("translate takes a list of sentences: write translate([sentence])")
    found = self.translate_lines(
      sentences,
      beam_size=beam_size,
      length_penalty=length_penalty,
      patience=patience,
      n_best=n_best,
      batch_size=batch_size,
      progress=progress,
    )
    results = [best if return_scores else [translation.text for translation in best] for best in found]
    return results if n_best > 1 else [best[0] for best in results]

  def translate_lines(
    self,
    lines: Iterable[str],
    *,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    patience: float | None = None,
    n_best: int = 1,
    batch_size: int | None = None,
    long: str = Long.SPLIT.value,
    window: int = _WINDOW,
    more: Callable[[float], bool] = lambda seconds: True,
    progress: Callable[[int], object] | None = None,
    warn: Callable[[str], object] = _log.warning,
  ) -> Iterator[list[Translation]]:
    """Translates lines as they come, in windows of some thousands.

    An empty line has an empty translation with score 0. Memory is bounded by
    the longest line, not by their number.

    Args:
      lines: sentences.
      beam_size: hypotheses kept in the search; 1 is greedy.
      length_penalty: its exponent alpha.
      patience: `config.decode.patience`: 1 ends a search early, 0 when nothing better is possible.
      n_best: translations wanted for each line, at most `beam_size`.
      batch_size: sentences computed together on a device; None suits the machine.
      long: what becomes of a line with more than `config.decode.max_source_length` tokens: `split`, it is translated in
        parts, with a warning, or `refuse`, an InputError.
      window: lines that are read before the first is translated.
      more: whether another line can be had within so many seconds; those that came are not kept waiting for it.
      progress: is told how many more lines are done.
      warn: is told about lines that are translated in parts.

    Returns:
      For each line, in order, its `n_best` best translations, best first; fewer
      where there are not so many different ones.

    Raises:
      InputError: an option cannot be used, or a line is refused. The latter,
        like an InputError of `lines`, is raised when the lines before are
        translated.
      RunError: the model gives no probabilities.
    """
    options = self._options(beam_size, length_penalty, patience, n_best)
    require_option(
      "batch_size", batch_size, batch_size is None or 0 < batch_size <= MOST_ROWS, f"from 1 to {MOST_ROWS}"
    )
    require_option("window", window, window > 0, "positive")
    require_option("long", long, long in [kind.value for kind in Long], "split or refuse")
    longest = self._config.decode.max_source_length

    def translations() -> Iterator[list[Translation]]:
      first = 1
      for texts, broken in windows(lines, window, more):
        parts, refused = long_lines.parts(texts, self._tokenizer, longest, Long(long), first, warn)
        for found in self._search(parts, options, batch_size, progress or (lambda count: None)):
          yield long_lines.different(long_lines.joined(found, options))[:n_best]
        if error := refused or broken:
          raise error
        first += len(texts)

    return translations()

  def score(self, pairs: Iterable[tuple[str, str]], *, batch_size: int | None = None) -> list[PairScore]:
    """The log-probability of each target sentence given its source.

    Raises:
      InputError: a sentence has more than `config.decode.max_source_length` +
        `config.decode.extra_length` tokens.
    """
    require_option(
      "batch_size", batch_size, batch_size is None or 0 < batch_size <= MOST_ROWS, f"from 1 to {MOST_ROWS}"
    )
    pairs = list(pairs)
    for number, pair in enumerate(pairs, 1):
      if isinstance(pair, str) or len(pair) != 2:
        raise InputError(f"pair {number} is {pair!r}, but must be a source and its target")
      for text in pair:
        require_text(text, f"pair {number}")
    sources, targets = (self._encode([pair[side] for pair in pairs]) for side in (0, 1))
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    longest = self._config.decode.max_source_length + self._config.decode.extra_length
    for number, length in enumerate(lengths, 1):
      if length > longest:
        raise InputError(
          f"pair {number} has a sentence of {length} tokens, but at most {longest} can be scored "
          "(config.decode.max_source_length + config.decode.extra_length): split it"
        )
    log_probs = [0.0] * len(pairs)
    count = devices.local_device_count()
    for index, rows, length in buckets.batches(
      lengths, longest, lambda length: count * self._slots(length, 0, batch_size)
    ):
      batch = [buckets.pad([side[i] for i in index], rows, length, PAD) for side in (sources, targets)]
      found = jax.device_get(self._score(self._params, devices.shard(tuple(batch)))).reshape(-1)
      for i, log_prob in zip(index, found, strict=False):
        if not math.isfinite(log_prob):
          raise RunError(_NOT_FINITE)
        log_probs[i] = float(log_prob)
    return [PairScore(log_prob, len(target)) for log_prob, target in zip(log_probs, targets, strict=True)]

  def _options(
    self, beam_size: int | None, length_penalty: float | None, patience: float | None, n_best: int
  ) -> SearchOptions:
    decode = self._config.decode
    beam_size = decode.beam_size if beam_size is None else beam_size
    alpha = decode.length_penalty if length_penalty is None else length_penalty
    require_option("beam_size", beam_size, 0 < beam_size <= MOST_BEAMS, f"from 1 to {MOST_BEAMS}")
    patience = decode.patience if patience is None else patience
    require_option("length_penalty", alpha, 0 <= alpha <= MOST_ALPHA, f"from 0 to {MOST_ALPHA}")
    require_option("patience", patience, 0 <= patience < math.inf, "0 or more")
    require_option("n_best", n_best, 0 < n_best <= beam_size, f"from 1 to beam_size, which is {beam_size}")
    # Different tokens can spell the same text, so that n_best different texts may need more hypotheses.
    kept = 1 if n_best == 1 else beam_size
    return SearchOptions(beam_size, decode.penalty, alpha, kept, decode.extra_length, patience)

  def _encode(self, texts: Sequence[str]) -> list[list[int]]:
    return [[*tokens, EOS] for tokens in self._tokenizer.encode_batch(texts)]

  def _search(
    self,
    parts: list[list[list[int]]],
    options: SearchOptions,
    batch_size: int | None,
    progress: Callable[[int], object],
  ) -> list[list[list[Translation]]]:
    """For each part of each line its best translations."""
    flat = [(line, tokens) for line, sentence in enumerate(parts) for tokens in sentence]
    found: list[list[Translation]] = [[]] * len(flat)
    waiting = Counter(line for line, _ in flat)
    progress(len(parts) - len(waiting))
    for i, translations in self._found([tokens for _, tokens in flat], options, batch_size):
      found[i] = translations
      waiting[flat[i][0]] -= 1
      progress(int(waiting[flat[i][0]] == 0))
    results = iter(found)
    return [list(itertools.islice(results, len(sentence))) for sentence in parts]

  def _found(
    self, sources: Sequence[list[int]], options: SearchOptions, batch_size: int | None
  ) -> Iterator[tuple[int, list[Translation]]]:
    """The number of each source with its best translations, in the order in which they are found.

    A source whose translation outgrows its bucket's room is searched for again in a larger bucket.
    """
    count, longest = devices.local_device_count(), self._config.decode.max_source_length

    def translate(batch: buckets.Batch) -> tuple[list[int], list[list[Translation] | None]]:
      source = buckets.pad([sources[numbers[i]] for i in batch.members], batch.rows, batch.length, PAD)
      source = source.reshape(-1, count, batch.length).swapaxes(0, 1)  # dealt out: each device has as many as another
      with_room = dataclasses.replace(options, room=self._room(options, batch.length))
      function = self._search_function(with_room, slots(batch.length))
      by_device = jax.device_get(function(self._params, devices.shard(source.reshape(batch.rows, batch.length))))
      hypotheses = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(batch.rows, *x.shape[2:]), by_device)
      rows = range(len(batch.members))
      return batch.members, [self._texts(jax.tree.map(lambda x, row=row: x[row], hypotheses)) for row in rows]

    def slots(length: int) -> int:
      return self._slots(length, self._room(options, length), batch_size)

    # The sources to search for, and how long the rows are to be that hold them.
    numbers, lengths = list(range(len(sources))), [len(source) for source in sources]
    while numbers:
      outgrown = []
      batches = buckets.batches(
        lengths, longest, lambda length: count * slots(length), queue=_queue(), at_a_time=devices.at_a_time()
      )
      for members, translations in devices.at_once(translate, batches):
        for i, translation in zip((numbers[member] for member in members), translations, strict=True):
          if translation is None:
            outgrown.append(i)
          else:
            yield i, translation
      numbers = outgrown
      lengths = [buckets.larger(len(sources[i]), longest, options.extra_length) for i in numbers]

  def _room(self, options: SearchOptions, length: int) -> int:
    """Places that a bucket has for an output beyond its length.

    All at once for an exact search, which often uses them, and a greedy one, of whose one hypothesis they cost little.
    """
    longest, extra = self._config.decode.max_source_length, options.extra_length
    hasty = options.beam_size > 1 and options.patience > 0
    return buckets.room(length, longest, extra) if hasty else extra

  def _slots(self, length: int, room: int, batch_size: int | None) -> int:
    """Sentences of a bucket that a device decodes side by side, with room for so many more tokens of an output."""
    return batch_size or buckets.rows_at_once(length, room, cpu=devices.on_cpu())

  def _search_function(self, options: SearchOptions, slots: int) -> Callable:
    if (options, slots) not in self._searches:
      function = functools.partial(programs.search, self._model, options, slots)
      self._searches[options, slots] = devices.over_devices(function, out_axes=0, alone=True)
    return self._searches[options, slots]

  def _texts(self, hypotheses: programs.Hypotheses) -> list[Translation] | None:
    """One sentence's hypotheses as text; None where the search was given up."""
    if hypotheses.lengths[0] == OUTGROWN:
      return None
    if not math.isfinite(hypotheses.scores[0]):
      raise RunError(_NOT_FINITE)
    return [
      Translation(
        _LINE_BREAK.sub(" ", self._tokenizer.decode(tokens[: length - 1].tolist())),
        float(score),
        float(log_prob),
        int(length),
      )
      for tokens, length, log_prob, score in zip(*hypotheses, strict=True)
      if length > 0
    ]


def _queue() -> int:
  return _QUEUE_ON_CPU if devices.on_cpu() else _QUEUE
