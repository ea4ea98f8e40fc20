"""Translation of lines as they come: windows of lines, the parts of long ones, forced prefixes and samples."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from transformer_jax.config import DecodeConfig
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import long_lines, prefixes
from transformer_jax.decoding.beam_search import Hypotheses, SearchOptions
from transformer_jax.decoding.bucketed_search import BucketedSearch, Request
from transformer_jax.decoding.line_breaks import without_line_breaks
from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.decoding.long_lines import REFUSE, SPLIT
from transformer_jax.decoding.sampling import require_seed
from transformer_jax.decoding.translation import Translation, different
from transformer_jax.decoding.windows import windows
from transformer_jax.model.params import Params
from transformer_jax.runtime.errors import InputError, require_option, require_whole

WINDOW = 4096
# More sentences at a time on a device are taken for a mistake.
_MOST_ROWS = 1 << 16


@dataclasses.dataclass(frozen=True)
class Wanted:
  """What `Translator.translate_lines` is asked for, with the names of its arguments."""

  options: SearchOptions
  n_best: int
  seed: int
  prefixes: Iterator[str] | None
  batch_size: int | None
  long: str
  window: int
  first: int
  more: Callable[[float], bool]
  progress: Callable[[int], object] | None
  warn: Callable[[LineWarning], object]

  def __post_init__(self) -> None:
    require_batch_size(self.batch_size)
    require_seed(self.seed)
    require_whole("window", self.window)
    require_whole("first", self.first)
    require_option("window", self.window, self.window > 0, "positive")
    require_option("first", self.first, self.first > 0, "positive")
    require_option("long", self.long, self.long in (SPLIT, REFUSE), "split or refuse")


class LineSearch:
  """Searches for the translations of lines.

  Args:
    bucketed: the search of sentences that are given as tokens.
    decode: the limits of lengths.
    tokenizer: the run's tokenizer.
    tags: the tags with which a line may begin, if the model knows several target languages.
  """

  def __init__(self, bucketed: BucketedSearch, decode: DecodeConfig, tokenizer: Tokenizer, tags: Sequence[str]):
    self._bucketed, self._decode, self._tokenizer, self._tags = bucketed, decode, tokenizer, tags

  def translate(self, params: Params, lines: Iterable[str], wanted: Wanted) -> Iterator[list[Translation]]:
    """Translates the lines of each window; raises a window's error after its lines."""
    longest = self._decode.max_source_length
    long, first = wanted.long, wanted.first
    # A window has as many translations in memory, however many are drawn of each line.
    window = max(1, wanted.window // wanted.n_best) if wanted.options.sampling else wanted.window
    for texts, broken in windows(lines, window, wanted.more, first):
      parts, error = long_lines.parts(texts, self._tokenizer.source, longest, long, first, wanted.warn, self._tags)
      forced = None
      if wanted.prefixes is not None:
        extra, target = self._decode.extra_length, self._tokenizer.target
        forced, refused = prefixes.encode(wanted.prefixes, parts, target, extra, first, wanted.warn)
        parts, error = parts[: len(forced)], refused or error
      for samples in self._search(params, parts, forced, wanted, first):
        found = [long_lines.joined(sample, wanted.options) for sample in samples]
        one_each = [best for best, *_ in found]
        yield one_each if wanted.options.sampling else different(found[0])[: wanted.n_best]
      if error := error or broken:
        raise error
      first += len(texts)
    if wanted.prefixes is not None and next(wanted.prefixes, None) is not None:
      raise InputError(f"there are more prefixes than the {first - wanted.first} lines: give one for each line")

  def _search(
    self, params: Params, parts: list[list[list[int]]], forced: list[list[int]] | None, wanted: Wanted, first: int
  ) -> list[list[list[list[Translation]]]]:
    """The best translations of each part of each sample of each line; without sampling a line has one sample."""
    sampling, progress = wanted.options.sampling, wanted.progress or (lambda count: None)
    samples = wanted.n_best if sampling else 1
    lines = [i for i, sentence in enumerate(parts) for _ in range(samples * len(sentence))]  # of each output
    requests = [
      Request(
        tokens,
        None if forced is None else forced[i],
        (wanted.seed, (first + i) % 2**32, part, sample) if sampling else None,
      )
      for i, sentence in enumerate(parts)
      for sample in range(samples)
      for part, tokens in enumerate(sentence)
    ]
    found: list[list[Translation]] = [[]] * len(requests)
    missing = Counter(lines)
    for i, hypotheses in self._bucketed.search(params, requests, wanted.options, wanted.batch_size):
      found[i] = self._translations(hypotheses)
      missing[lines[i]] -= 1
      progress(int(missing[lines[i]] == 0))
    progress(len(parts) - len(missing))  # the lines without a search; last, as the clock of the rate waits for a line
    results = iter(found)
    return [[[next(results) for _ in sentence] for _ in range(samples)] for sentence in parts]

  def _translations(self, hypotheses: Hypotheses) -> list[Translation]:
    """One output's hypotheses as text."""
    return [
      Translation(
        without_line_breaks(self._tokenizer.target.decode(tokens[: length - 1].tolist())),
        float(score),
        float(log_prob),
        int(length),
      )
      for tokens, length, log_prob, score in zip(*hypotheses, strict=True)
      if length > 0
    ]


def require_batch_size(batch_size: int | None) -> None:
  """Raises InputError if it is not a number of sentences to compute side by side; None is the default."""
  if batch_size is not None:
    require_whole("batch_size", batch_size)
    require_option("batch_size", batch_size, 0 < batch_size <= _MOST_ROWS, f"from 1 to {_MOST_ROWS}")
