"""Outputs of a model as trees, scored."""

import dataclasses

import pytest

from transformer_jax.config import BestBy, Config, Corpus, DataConfig, TrainConfig
from transformer_jax.data.trees import read_trees
from transformer_jax.decoding.translation import Translation
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks import translation_validation
from transformer_jax.tasks.parsing import score_outputs, score_parses
from transformer_jax.tasks.translation import TASK

PAIRS = [
  ("dogs sleep .", "(S (NP NNS )NP (VP VBP )VP . )S"),
  ("a dog sleeps", "(S (NP DT NN )NP (VP VBZ )VP )S"),
  ("go !", "(S (VP VB )VP . )S"),
]
# One as it should be, one to repair, whose constituents are right but for one, and one that is no tree.
OUTPUTS = [PAIRS[0][1], "(S (NP DT NN )NP (NP VBZ )VP )S", "VB"]


def test_scores_and_counts():
  found = score_outputs(PAIRS, OUTPUTS)
  assert found.outcomes == {"whole": 1, "repaired": 1, "refused": 1}
  # Right are 3 + 2 + 0 of 3 + 3 + 2; the outputs have 3 + 3 + 0. A tag of the last one is right.
  assert (found.scores.precision, found.scores.recall) == pytest.approx((100 * 5 / 6, 100 * 5 / 8))
  assert found.to_dict() == {
    "f1": pytest.approx(200 * 5 / 14),
    "precision": pytest.approx(100 * 5 / 6),
    "recall": pytest.approx(100 * 5 / 8),
    "complete_match": pytest.approx(100 / 3),
    "tag_accuracy": 100,
    "sentences": 3,
    "whole": 1,
    "repaired": 1,
    "refused": 1,
  }
  assert str(found).splitlines() == [
    "F1 71.43 (precision 83.33, recall 62.50, labelled, as EVALB)",
    "complete match 33.33, tags 100.00",
    "3 sentences; their outputs: 1 whole, 1 repaired, 1 refused",
  ]


def test_the_trees_are_those_of_the_sentences():
  references = list(read_trees(["(S (NP (NNS dogs)) (VP (VBP sleep)))"], "a tree"))
  scores, trees = score_parses(references, ["(S (NP NNS )NP"])
  assert [*map(str, trees)] == ["(S (NP (NNS dogs)) (XX sleep))"] and scores.outcomes["repaired"] == 1


@pytest.mark.parametrize("target", ["ein Hund schläft", "(S NN )S", ""])
def test_a_reference_that_is_no_tree_of_its_sentence_is_refused(target):
  with pytest.raises(InputError, match="is no tree of 'a dog sleeps'"):
    score_outputs([("a dog sleeps", target)], [""])


class Given:
  """In place of a translator."""

  def __init__(self, *args):
    self.params = None

  def translate_lines(self, sentences, *, warn):
    return ([Translation(text, 0.0, 0.0, 1)] for text in OUTPUTS)


def test_validation_and_test_report_f1(tmp_path, monkeypatch):
  monkeypatch.setattr(translation_validation, "Translator", Given)
  path = tmp_path / "trees.mrg"
  path.write_text("(S (NP (NNS dogs)) (VP (VBP sleep)) (. .))\n(S (NP (DT a) (NN dog)) (VP (VBZ sleeps)))")
  with path.open("a") as file:
    file.write("(S (VP (VB go)) (. !))")
  config = Config(data=DataConfig(corpus=Corpus.TREES, train="", validation="", test=str(path)))
  validation = translation_validation.TranslationValidation(config, TASK, None)
  assert [name.format(71.4286) for name in validation.shown.values()] == ["F1 71.43", "complete match 71.4"]
  assert validation.test(None) == str(score_outputs(PAIRS, OUTPUTS))
  validation._evaluator, validation._pairs = Losses(), PAIRS
  line = validation.measure(None)
  assert line["loss"] == 1 and line["f1"] == pytest.approx(200 * 5 / 14) and line["refused"] == 1
  assert not {"bleu", "chrf"} & {*line} and len(line["samples"]) == 3
  older = dataclasses.replace(config, train=TrainConfig(best_by=BestBy.BLEU))  # new runs are refused
  validation = translation_validation.TranslationValidation(older, TASK, None)
  validation._evaluator, validation._pairs = Losses(), PAIRS
  assert {"bleu", "f1"} <= {*validation.measure(None)}


class Losses:
  def means(self, params):
    return {"loss": 1.0}
