"""Translation of text: the command line, validation and the Python API all translate here."""

import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.config.experiment import MOST_ALPHA, MOST_BEAMS, MOST_NUMBER
from transformer_jax.data.tagged import tags_of
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import buckets, programs
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.decoding.bucketed_search import BucketedSearch
from transformer_jax.decoding.line_search import WINDOW, LineSearch, Wanted, require_batch_size
from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.decoding.long_lines import REFUSE, SPLIT, has_no_text
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.decoding.translation import Probability, Translation, require_finite
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import EOS, PAD, UNK
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError, require_option, require_whole
from transformer_jax.runtime.texts import require_several, require_text

if TYPE_CHECKING:  # orbax takes seconds to import, Flax a fifth of a second; a cached translation needs neither
  import flax.linen as nn

  from transformer_jax.decoding.attention import Attention
  from transformer_jax.decoding.next_token import NextToken
  from transformer_jax.decoding.search_tree import SearchTree
  from transformer_jax.runs.run import Run
  from transformer_jax.runs.steps import Step

_log = logging.getLogger(__name__)


class Translator:
  """Translates with a trained model, on all local devices.

  A translation and its score depend on the sentence alone, to the last bit: not
  on the sentences around it, nor on their order. (`batch_size` chooses other
  compute shapes: scores are equal up to rounding, and now and then a text differs.)

  Args:
    config: the run's configuration; `config.decode` holds the defaults of the search.
    params: the model's parameters.
    tokenizer: the run's tokenizer.
    step: the update at which the checkpoint was written, if the parameters come from one.
    models: the configs of an ensemble's models, if the parameters are those of an ensemble.

  Options of the methods:
    beam_size, length_penalty, patience: replace the values of `config.decode`.
    n_best: translations wanted for each line, at most `beam_size`, best first; fewer if the search finds fewer
      different ones. A line in parts has the best ones of all parts first, then the second ones, and so on.
    sampling: draws `n_best` outputs for each line, at most 1,024, at random instead of searching for them; excludes
      `beam_size` and `patience`. They come as they were drawn, with equal ones. An empty line has as many empty ones;
      in a search it has one.
    seed: the seed of the draws. A draw depends on the seed, the number of the line and its own number.
    prefixes: a text for each line, with which its translation begins; a blank one forces nothing. Its tokens are the
      tokenizer's, and its last word may go on. Scores are those of the whole translation.
    batch_size: sentences computed side by side on a device; None suits a text, and on a CPU 1 is the quickest for a
      single sentence.
    progress: is called with the number of lines finished since the last call.
  """

  def __init__(
    self,
    config: Config,
    params: Params,
    tokenizer: Tokenizer,
    step: int | None = None,
    *,
    models: Sequence[AnyModelConfig] = (),
  ):
    self._config = config
    self.step = step
    self.steps = (step,)  # of an ensemble, each model's
    self._models = tuple(models)
    self._tokenizer = tokenizer
    self._tags = tags_of(config.data)
    self._bucketed = BucketedSearch(lambda: self._model, models or [config.model], config.decode)
    self._lines = LineSearch(self._bucketed, config.decode, tokenizer, self._tags)
    self._score = devices.over_devices(self._log_probs, out_axes=0, alone=True)
    self.params = params

  @functools.cached_property
  def _model(self) -> "nn.Module":
    if not self._models:
      return registry.module(self._config.model)
    from transformer_jax.decoding import ensemble

    return ensemble.module(self._models)

  @classmethod
  def load(
    cls, workdir: "Run | str | os.PathLike | Sequence[Run | str | os.PathLike]", *, step: "Step" = "last"
  ) -> "Translator":
    """The translator of a run, or of several as an ensemble (`decoding/ensemble.py`).

    Args:
      workdir: the run folder, or the run that `runs.open` made of it; a list of them for an ensemble. An ensemble has
        the config of the first, with the least `max_source_length` and `extra_length` of all.
      step: which checkpoint of each: its number, `last`, or `best`, by validation.

    Raises:
      InputError: not a run folder, a damaged or edited one, a model that does not translate, no such checkpoint, or
        runs with different vocabularies, languages or `data.tags`, or different tokens that their decoders begin with.
      RunError: the checkpoint is damaged; of `last`, every one is.
    """
    from transformer_jax import runs  # imports orbax, which takes seconds

    one = isinstance(workdir, runs.Run | str | os.PathLike)
    opened = [runs.open(each) for each in ([workdir] if one else workdir)]
    if not opened:
      raise InputError("load was given an empty list: give it at least one run folder")
    if len(opened) == 1:
      return cls(*opened[0].model("translate", step))
    from transformer_jax.decoding import ensemble

    ensemble.require_one_vocabulary(opened)
    models = [run.model("translate", step) for run in opened]
    config, params = ensemble.ensemble(models)
    translator = cls(config, params, models[0].tokenizer, models=[model.config.model for model in models])
    translator.steps = tuple(model.step for model in models)
    return translator

  @property
  def config(self) -> Config:
    """The run's configuration, of an ensemble that of the first with the least lengths; do not change it."""
    return self._config

  @property
  def params(self) -> Params:
    """The parameters, on every local device; they may be replaced by others of the same model."""
    return self._params

  @params.setter
  def params(self, params: Params) -> None:
    self._params = devices.replicate(params)

  def translate(
    self,
    sentences: Sequence[str],
    *,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    patience: float | None = None,
    n_best: int = 1,
    sampling: SamplingOptions | None = None,
    seed: int = 0,
    prefixes: Iterable[str] | None = None,
    return_scores: bool = False,
    batch_size: int | None = None,
    progress: Callable[[int], object] | None = None,
  ) -> list[Any]:
    """Translates a list of sentences; the docstring of `Translator` describes the options.

    Returns:
      A `str` for each sentence; with `return_scores` a `Translation`; with
      `n_best` above 1 a list of them, best first, or in the order in which they are drawn.

    Raises:
      InputError: an option cannot be used, or a sentence is no text.
      RunError: the model's probabilities are not finite.
    """
    found = self.translate_lines(
      require_several(sentences, "sentences"),
      beam_size=beam_size,
      length_penalty=length_penalty,
      patience=patience,
      n_best=n_best,
      sampling=sampling,
      seed=seed,
      prefixes=prefixes,
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
    sampling: SamplingOptions | None = None,
    seed: int = 0,
    prefixes: Iterable[str] | None = None,
    batch_size: int | None = None,
    long: str = SPLIT,
    window: int = WINDOW,
    first: int = 1,
    more: Callable[[float], bool] = lambda seconds: True,
    progress: Callable[[int], object] | None = None,
    warn: Callable[[LineWarning], object] = _log.warning,
  ) -> Iterator[list[Translation]]:
    """Translates lines as they come, in windows of some thousands, and yields the translations of each in their order.

    The longest line bounds the memory. The docstring of `Translator` describes the options that this one does not.

    Args:
      lines: one sentence each, without a line's end; an empty one has an empty translation with score 0.
      long: `split` translates a line of more than `config.decode.max_source_length` tokens in parts, with a warning;
        `refuse` raises InputError.
      window: lines that are read before the first is translated.
      first: the number of the first line, in warnings, errors and draws.
      more: tells whether another line comes within a number of seconds; if not, the lines so far are translated.
      warn: is called with each warning.

    Raises:
      InputError: an option cannot be used; or, after the lines before it, a line is refused or cannot be read.
      RunError: the model's probabilities are not finite.
    """
    options = self._options(beam_size, length_penalty, patience, n_best, sampling)
    forced = None if prefixes is None else iter(require_several(prefixes, "prefixes"))
    wanted = Wanted(options, n_best, seed, forced, batch_size, long, window, first, more, progress, warn)
    return self._lines.translate(self._params, require_several(lines, "lines"), wanted)

  def score(self, pairs: Iterable[tuple[str, str]], *, batch_size: int | None = None) -> list[Probability]:
    """The log-probability of each target sentence given its source.

    Args:
      pairs: sources and targets.
      batch_size: pairs computed side by side on a device; None suits a text.

    Raises:
      InputError: `batch_size` cannot be used, a pair is no two texts, or a sentence has more than
        `config.decode.max_source_length` + `config.decode.extra_length` tokens.
      RunError: the model's probabilities are not finite.
    """
    require_batch_size(batch_size)
    sources, targets = self._encode_pairs(pairs)
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    for number, length in enumerate(lengths, 1):
      self._require_length(f"pair {number}", length)

    def rows(length: int) -> int:
      return devices.local_device_count() * (batch_size or buckets.rows_at_once(length, 0))

    def log_probs(batch: buckets.Batch) -> np.ndarray:
      both = ([side[i] for i in batch.members] for side in (sources, targets))
      pairs = tuple(buckets.pad(side, batch.rows, batch.length, PAD) for side in both)
      return jax.device_get(self._score(self._params, devices.shard(pairs))).reshape(-1)

    found = buckets.scores(lengths, self._longest, rows, log_probs)
    return [Probability(log_prob, len(target)) for log_prob, target in zip(found, targets, strict=True)]

  def fits(self, pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether `score` takes all these pairs, or one has a sentence that is too long for it.

    Raises:
      InputError: a pair is no two texts.
    """
    return all(len(tokens) <= self._longest for side in self._encode_pairs(pairs) for tokens in side)

  def attention(self, source: str, target: str | None = None, *, most: int | None = None) -> "Attention":
    """Where each head looks at each position, if `target` is written for `source`.

    Args:
      source: a sentence.
      target: its translation, of which the tokens are those of the tokenizer; None is the model's own translation.
      most: the most weights that may be computed; more raise InputError. None is any number.

    Returns:
      The weights of encoder, decoder and cross-attention. A recurrent model has cross-attention alone, as one layer
      with one head.

    Raises:
      InputError: a text is too long, the model has no attention, or this is an ensemble.
      RunError: a weight is not finite.
    """
    from transformer_jax.decoding.attention import attention_of_pair

    if self._models:
      raise InputError("an ensemble has the attention of each of its models, and none of its own: load one model alone")
    own = target is None
    if target is None:
      [[best]] = self.translate_lines([source], long=REFUSE, warn=lambda warning: None)
      target = best.text
    [sources], [targets] = self._encode_pairs([(source, target)])
    if own and len(targets) > self._longest:  # a byte that is no character has three tokens when it is read again
      raise InputError(
        f"the model's own translation has {len(targets)} tokens when it is read again, but at most {self._longest} can "
        "be read: give a target, or train longer"
      )
    self._require_length("the sentence pair", max(len(sources), len(targets)))
    params = devices.on_first_device(self._params)
    return attention_of_pair(self._model, params, self._tokenizer, sources, targets, most)

  def next_token(self, source: str, prefix: str = "") -> "NextToken":
    """The probability of each token to come next, when the translation of `source` begins with `prefix`.

    Raises:
      InputError: the source is empty, a text is too long, or this is an ensemble.
      RunError: the model's probabilities are not finite.
    """
    from transformer_jax.decoding.next_token import after_pair

    if self._models:
      raise InputError("the probabilities of the next token are given for one model alone: load one without the others")
    [sources], [written] = self._encode_pairs([(source, prefix)])
    if has_no_text(source, sources[:-1], self._tokenizer.source, self._tags):
      raise InputError("the sentence is empty, so there is nothing to translate: give another one")
    self._require_length("the sentence pair", max(len(sources), len(written)))
    params, without = devices.on_first_device(self._params), SearchOptions.of(self._config).without
    return after_pair(self._model, params, self._tokenizer, sources, written[:-1], without)

  def search_tree(
    self,
    source: str,
    *,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    patience: float | None = None,
    n_best: int = 1,
  ) -> "SearchTree":
    """The beam search that `translate` makes for a sentence, step by step.

    Its numbers are those of `translate` up to the order of additions in float32. The docstring of `Translator`
    describes the options.

    Raises:
      InputError: the sentence is empty or too long, or an option cannot be used.
      RunError: the model's probabilities are not finite.
    """
    from transformer_jax.decoding.search_tree import search_tree

    options, decode = self._options(beam_size, length_penalty, patience, n_best), self._config.decode
    require_text(source, "the sentence")
    [tokens] = _with_eos(self._tokenizer.source, [source])
    if has_no_text(source, tokens[:-1], self._tokenizer.source, self._tags):
      raise InputError("the sentence is empty, and an empty sentence is translated without a search: give another one")
    if len(tokens) > decode.max_source_length:
      raise InputError(
        f"the sentence has {len(tokens)} tokens, but at most {decode.max_source_length} "
        "(config.decode.max_source_length) are translated in one search: shorten it"
      )
    [batch] = buckets.batches([len(tokens)], decode.max_source_length, lambda length: 1)
    params = devices.on_first_device(self._params)
    slots = self._bucketed.slots(params, options, batch.length)
    rows = buckets.pad([tokens] * slots, slots, batch.length, PAD)
    found = search_tree(self._model, options, params, self._tokenizer, rows, decode.extra_length)
    require_finite(bool(found.best))
    return found.of_best(n_best)

  def _log_probs(self, params: Params, pairs: tuple[jax.Array, jax.Array]) -> jax.Array:
    """log P of each pair, by the probabilities of the search."""
    without = SearchOptions.of(self._config).without
    return programs.score(self._model, params, pairs, without)

  def _options(
    self,
    beam_size: int | None,
    length_penalty: float | None,
    patience: float | None,
    n_best: int,
    sampling: SamplingOptions | None = None,
  ) -> SearchOptions:
    decode = self._config.decode
    require_whole("n_best", n_best)
    if sampling is not None:
      require_option("n_best", n_best, 0 < n_best <= MOST_BEAMS, f"from 1 to {MOST_BEAMS} for samples")
      for name, value in (("beam_size", beam_size), ("patience", patience)):
        require_option(name, value, value is None, "left out with sampling, which has no beam")
      beam_size = n_best = 1  # each draw is a search of its own
    beam_size = decode.beam_size if beam_size is None else beam_size
    require_whole("beam_size", beam_size)
    alpha = decode.length_penalty if length_penalty is None else length_penalty
    require_option("beam_size", beam_size, 0 < beam_size <= MOST_BEAMS, f"from 1 to {MOST_BEAMS}")
    patience = decode.patience if patience is None else patience
    require_option("length_penalty", alpha, 0 <= alpha <= MOST_ALPHA, f"from 0 to {MOST_ALPHA}")
    require_option("patience", patience, 0 <= patience <= MOST_NUMBER, f"from 0 to {MOST_NUMBER:,}")
    require_option(
      "n_best", n_best, 0 < n_best <= beam_size, f"from 1 to the beam size, which is {beam_size} (or raise it)"
    )
    # Different tokens can spell the same text, so that n_best different texts may need more hypotheses.
    kept = 1 if n_best == 1 else beam_size
    options = dataclasses.replace(
      SearchOptions.of(self._config), beam_size=beam_size, length_penalty=alpha, n_best=kept, patience=patience
    )
    if sampling is None:
      return options
    suppressed = tuple(sorted({*sampling.suppressed, *options.never, UNK}))
    return dataclasses.replace(options, sampling=dataclasses.replace(sampling, suppressed=suppressed))

  def _encode_pairs(self, pairs: Iterable[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]]]:
    """The tokens of all sources and of all targets."""
    pairs = list(pairs)
    for number, pair in enumerate(pairs, 1):
      if not isinstance(pair, Sequence | np.ndarray) or isinstance(pair, str) or len(pair) != 2:
        raise InputError(f"pair {number} is {pair!r}, but must be a source and its target")
      for text in pair:
        require_text(text, f"pair {number}")
    sources = _with_eos(self._tokenizer.source, [source for source, _ in pairs])
    return sources, _with_eos(self._tokenizer.target, [target for _, target in pairs])

  @property
  def _longest(self) -> int:
    """The most tokens of a given sentence or translation."""
    return self._config.decode.max_source_length + self._config.decode.extra_length

  def _require_length(self, pair: str, length: int) -> None:
    if length > self._longest:
      raise InputError(
        f"{pair} has a sentence of {length} tokens, but at most {self._longest} can be read "
        "(config.decode.max_source_length + config.decode.extra_length): shorten it"
      )


def _with_eos(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
  return [[*tokens, EOS] for tokens in tokenizer.encode_batch(texts)]
