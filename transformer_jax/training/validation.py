"""Validation loss and translations while training, by the same path as everywhere."""

import functools
from typing import Any

import jax

from transformer_jax import hosts, parallel
from transformer_jax.config import Config
from transformer_jax.data import pipeline
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation.scores import Scores, score
from transformer_jax.progress import say
from transformer_jax.training.loss import Sums
from transformer_jax.training.metrics import means
from transformer_jax.training.step import Params, eval_step

SAMPLES = 3


class Validation:
  """Held-out data of a run, and the compiled functions that measure on it."""

  def __init__(self, config: Config, tokenizer: Tokenizer):
    self._config = config
    self._tokenizer = tokenizer
    self._step = parallel.over_devices(functools.partial(eval_step, config), out_axes=None)
    self._translator: Translator | None = None
    data = config.data
    if data.validation:
      packed = pipeline.packed_rows(data, data.validation, tokenizer)
      left_out = packed.report.left_out(data.longest)
      if left_out:
        say(f"validation loss is of {packed.report.pairs:,} pairs{left_out}")
      size = -(-min(config.train.batch_tokens // data.row_length, len(packed.rows)) // parallel.device_count())
      self._batches = pipeline.in_order(packed, size * parallel.device_count())
      self._pairs = pipeline.read_pairs(data, data.validation, config.evaluate.sentences)

  def measure(self, params: Params) -> dict[str, Any]:
    """Loss, perplexity and accuracy of the whole validation set, and scores of its first translations."""
    total = None
    for batch in self._batches:
      share = len(batch.places) // jax.process_count()
      mine = slice(jax.process_index() * share, (jax.process_index() + 1) * share)
      sums: Sums = jax.device_get(self._step(params, parallel.shard(jax.tree.map(lambda x, mine=mine: x[mine], batch))))
      total = sums if total is None else jax.tree.map(lambda a, b: a + b, total, sums)
    assert total is not None
    line: dict[str, Any] = means(total)
    if self._pairs:
      scores, _ = self.translate(params, self._pairs)
      line |= scores.to_dict()
    return line

  def test(self, params: Params) -> Scores:
    """Scores of all translations of the test set, with samples."""
    pairs = pipeline.read_pairs(self._config.data, self._config.data.test)
    scores, translations = self.translate(params, pairs)
    for (source, reference), translation in list(zip(pairs, translations, strict=True))[:SAMPLES]:
      say(f"  {source}\n    translation: {translation}\n    reference:   {reference}")
    return scores

  def translate(self, params: Params, pairs: list[tuple[str, str]]) -> tuple[Scores, list[str]]:
    if self._translator is None:
      self._translator = Translator(self._config, params, self._tokenizer)
    self._translator.params = params
    with hosts.together():
      mine = self._translator.translate([source for source, _ in hosts.share(pairs)])
    translations = hosts.concatenated(mine)
    evaluate = self._config.evaluate
    references = [reference for _, reference in pairs]
    return score(translations, references, tokenize=evaluate.tokenize, lowercase=evaluate.lowercase), translations
