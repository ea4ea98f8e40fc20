"""The validation loss and scores of translations during training; `Translator` translates, as everywhere."""

import math
from collections.abc import Mapping

from transformer_jax.config import BestBy, Config, Corpus
from transformer_jax.data import pipeline
from transformer_jax.data.corpus import groups_of
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation.scores import Scores, exact_match_by_group, score
from transformer_jax.model.params import Params
from transformer_jax.runtime import hosts
from transformer_jax.runtime.errors import InputError, one_line
from transformer_jax.runtime.progress import COLUMNS, say, shortened
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.wording import counted
from transformer_jax.tasks.evaluator import Evaluator
from transformer_jax.tasks.parsing import score_outputs
from transformer_jax.training.task import Task

SAMPLES = 3


class TranslationValidation:
  """The loss on held-out sentence pairs, and scores of their translations.

  Attributes:
    shown: as in `training.task.Validation`. The exact match is shown for numbers only: another text has more than one
      right translation. Of trees the F1 is shown.
    samples: a few sources with their translations and references, as lines of text.
  """

  samples = ""

  def __init__(self, config: Config, task: Task, tokenizer: Tokenizer):
    self._config = config
    self._tokenizer = tokenizer
    self._translator: Translator | None = None
    self._warned: set[str] = set()
    data = config.data
    # A text that cannot be used must be reported now, not after the training.
    self._test = pipeline.read_pairs(data, data.test) if data.test else []
    if data.test and not any(source.strip() for source, _ in self._test):
      raise InputError(f"config.data.test = {data.test} has no sentence to translate: check it, or leave it empty")
    self._test_groups = groups_of(data, data.test) if data.test else []
    self._exact = data.corpus is Corpus.NUMBERS
    exact = {"exact_match": "exact match {:.1%}"} if self._exact else {}
    self.shown: Mapping[str, str] = {"bleu": "BLEU {:.2f}", "chrf": "chrF2 {:.2f}"} | exact
    if data.has_trees:
      self.shown = {"f1": "F1 {:.2f}", "complete_match": "complete match {:.1f}"}
    if data.validation:
      self._evaluator = Evaluator(config, task, data.validation, tokenizer)
      self._pairs = pipeline.read_pairs(data, data.validation, config.evaluate.sentences)

  def measure(self, params: Params) -> JsonObject:
    """The loss, perplexity and accuracy on the whole validation set, and the scores of its first translations.

    `samples` has the first few of them, each with `source`, `translation` and `reference`. If the loss is not finite,
    nothing is translated, and the line has no scores.
    """
    line: JsonObject = {**self._evaluator.means(params)}
    self.samples = ""  # not those of the validation before
    if self._pairs and math.isfinite(line["loss"]):  # a search without probabilities would end the run
      translations = self.translate(params, self._pairs, "validation")
      line["samples"] = _kept(self._pairs, translations)
      trees = self._config.data.has_trees
      if not trees or self._config.train.best_by is BestBy.BLEU:  # which only an older run on trees has
        line |= self.scores(self._pairs, translations).to_dict()
      if trees:
        line |= score_outputs(self._pairs, translations).to_dict()
    return line

  def test(self, params: Params) -> str:
    """The scores of all translations of the test set, and the exact match of each group in it, in words."""
    translations = self.translate(params, self._test, "test")
    if self._config.data.has_trees:
      return str(score_outputs(self._test, translations))
    scores = self.scores(self._test, translations)
    if not self._exact:
      return scores.describe(exact_match=False)
    references = [reference for _, reference in self._test]
    return f"{scores}\n{exact_match_by_group(translations, references, self._test_groups)}"

  def translate(self, params: Params, pairs: list[tuple[str, str]], name: str) -> list[str]:
    if self._translator is None:
      self._translator = Translator(self._config, params, self._tokenizer)
    self._translator.params = params
    warnings: list[LineWarning] = []
    with hosts.collective_errors():
      sources = [source for source, _ in hosts.share(pairs)]
      mine = [best[0].text for best in self._translator.translate_lines(sources, warn=warnings.append)]
    self._say_once(warnings, name)
    translations = hosts.concatenated(mine)
    rows = (row for sample in _kept(pairs, translations) for row in sample.items())
    self.samples = "\n".join(f"  {f'{name}:':13}{shortened(text, COLUMNS - 15)}" for name, text in rows)
    return translations

  def _say_once(self, warnings: list[LineWarning], name: str) -> None:
    """Says the first warning about a text, and how many there are; the next validation would have the same."""
    if warnings and name not in self._warned:
      what = warnings[0].what.replace(": ", ":\n  ")
      more = f"\n  ({counted(len(warnings) - 1, 'more sentences')} like it)" if warnings[1:] else ""
      say(f"config.data.{name}: a sentence {what}{more}")
      self._warned.add(name)

  def scores(self, pairs: list[tuple[str, str]], translations: list[str]) -> Scores:
    evaluate = self._config.evaluate
    references = [reference for _, reference in pairs]
    return score(translations, references, tokenize=evaluate.tokenize, lowercase=evaluate.lowercase)


def _kept(pairs: list[tuple[str, str]], translations: list[str]) -> list[dict[str, str]]:
  """The first translations as the log keeps them."""
  first = list(zip(pairs, translations, strict=True))[:SAMPLES]
  return [
    {"source": one_line(source), "translation": one_line(translation), "reference": one_line(reference)}
    for (source, reference), translation in first
  ]
