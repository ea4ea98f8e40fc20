"""Scores while training, of translations that are given."""

import pytest
import sacrebleu

from transformer_jax.config import Config, DataConfig, EvaluateConfig
from transformer_jax.tasks import translation_validation
from transformer_jax.tasks.translation import TASK

PAIRS = [("a", "Der Hund sah „Ihn“ im Park."), ("b", "Drei Katzen schlafen im Haus.")]
TRANSLATIONS = ["der Hund sah „Sie“ im Park.", "Drei Katzen schliefen im Haus."]


class Given:
  """In place of a translator."""

  def __init__(self, *args):
    self.params = None

  def translate(self, sentences):
    assert sentences == [source for source, _ in PAIRS]
    return TRANSLATIONS


@pytest.mark.parametrize(("tokenize", "lowercase"), [("13a", False), ("intl", False), ("char", False), ("13a", True)])
def test_scores_are_with_the_configs_tokenisation_and_case(tokenize, lowercase, monkeypatch):
  monkeypatch.setattr(translation_validation, "Translator", Given)
  config = Config(data=DataConfig(validation=""), evaluate=EvaluateConfig(tokenize=tokenize, lowercase=lowercase))
  scores, found = translation_validation.TranslationValidation(config, TASK, None).translate(None, PAIRS)
  references = [[reference for _, reference in PAIRS]]
  expected = {
    (name, case): sacrebleu.corpus_bleu(TRANSLATIONS, references, tokenize=name, lowercase=case).score
    for name in ("13a", "intl", "char")
    for case in (False, True)
  }
  assert len(set(expected.values())) == len(expected)  # the sentences tell all of them apart
  assert found == TRANSLATIONS
  assert scores.bleu == expected[tokenize, lowercase]
