"""A search step by step: its best equals `translate`, its log-probabilities equal those of the given tokens."""

import jax
import numpy as np
import pytest

from tests.decoding.test_translator import Numbers
from transformer_jax.config import LengthPenalty
from transformer_jax.decoding import programs, search_tree
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.decoding.search_tree import FINISHED, KEPT, PRUNED, SearchTree, _others
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.runtime.errors import InputError, RunError

SENTENCE = "abc de"
BEAM = 3


@pytest.fixture(scope="module", params=[pytest.param("long outputs", marks=pytest.mark.long), "short outputs"])
def found(request, translator, params_of_short_outputs):
  """The translator, the tree of a sentence, and its translations."""
  before = translator.params
  if request.param == "short outputs":
    translator.params = params_of_short_outputs
  try:
    tree = translator.search_tree(SENTENCE, beam_size=BEAM, n_best=BEAM)
    [best] = translator.translate([SENTENCE], beam_size=BEAM, n_best=BEAM, return_scores=True)
    yield translator, tree, best
  finally:
    translator.params = before


def test_the_best_equal_translate(found):
  _, tree, translations = found
  assert tree.texts == [translation.text for translation in translations]
  for translation in translations:
    node = tree.nodes[tree.best[tree.texts.index(translation.text)]]
    np.testing.assert_allclose(node.score, translation.score, rtol=1e-5)
    np.testing.assert_allclose(node.log_prob, translation.log_probability, rtol=1e-5)
    assert node.step == translation.tokens == len(tree.tokens(tree.best[tree.texts.index(translation.text)]))


def test_as_many_different_texts_as_are_asked_for():
  tree = SearchTree([], [], [7, 5, 9, 3], ["a", "b", "a", "c"], SearchOptions(4, LengthPenalty.GNMT, 0.6))
  assert [tree.of_best(count).best for count in (1, 2, 3, 9)] == [[7], [7, 5], [7, 5, 3], [7, 5, 3]]
  assert tree.of_best(3).texts == ["a", "b", "c"]


def test_a_step_extends_what_the_beam_kept(found):
  _, tree, _ = found
  assert tree.nodes[0] == (None, 0, BOS, 0.0, KEPT, None)
  for number, node in enumerate(tree.nodes[1:], 1):
    parent = tree.nodes[node.parent]
    assert node.parent < number and parent.fate == KEPT and parent.step == node.step - 1
    assert node.log_prob <= parent.log_prob and node.token not in (BOS, PAD)
    assert (node.fate == FINISHED) == (node.score is not None) and (node.fate != FINISHED or node.token == EOS)
    assert node.fate != KEPT or node.token != EOS
  assert len({(node.parent, node.token) for node in tree.nodes}) == len(tree.nodes)
  for step in range(1, tree.nodes[-1].step + 1):
    by_fate = {
      fate: [node.log_prob for node in tree.nodes if (node.step, node.fate) == (step, fate)]
      for fate in (KEPT, FINISHED, PRUNED)
    }
    assert len(by_fate[KEPT]) <= BEAM and len(by_fate[FINISHED]) <= BEAM and len(by_fate[PRUNED]) <= 3
    # All ends are chosen in the last step.
    assert len(by_fate[PRUNED]) == (3 if by_fate[KEPT] else 0)
    # No pruned extension is more probable than all that were chosen.
    assert max(by_fate[PRUNED], default=-np.inf) <= max(by_fate[KEPT] + by_fate[FINISHED])
    kept = [node.log_prob for node in tree.nodes if (node.step, node.fate) == (step, PRUNED) and node.token != EOS]
    assert max(kept, default=-np.inf) <= min(by_fate[KEPT], default=np.inf)


def test_log_probabilities_equal_those_of_given_tokens(found):
  translator, tree, _ = found
  source = [*translator._tokenizer.source.encode(SENTENCE), EOS]
  numbers = range(1, len(tree.nodes))
  targets = np.zeros((len(numbers), max(node.step for node in tree.nodes)), np.int32)
  for row, number in zip(targets, numbers, strict=True):
    tokens = tree.tokens(number)
    row[: len(tokens)] = tokens
  sources = np.tile(np.array(source, np.int32), (len(numbers), 1))
  score = jax.jit(lambda params, pairs: programs.score(translator._model, params, pairs))
  expected = score(jax.device_get(translator.params), (sources, targets))
  np.testing.assert_allclose([tree.nodes[number].log_prob for number in numbers], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_one_hypothesis_is_a_line(translator):
  tree = translator.search_tree(SENTENCE, beam_size=1)
  assert tree.texts == translator.translate([SENTENCE], beam_size=1)
  chosen = [node for node in tree.nodes if node.fate != PRUNED]
  assert [node.step for node in chosen][: len(tree.path(tree.best[0])) + 1] == list(range(tree.nodes[-1].step + 1))


def test_a_tag_alone_is_an_empty_sentence(translator, monkeypatch):
  """As for `translate`."""
  monkeypatch.setattr(translator, "_tags", ["<2de>"])
  for use in (translator.search_tree, translator.next_token):
    with pytest.raises(InputError, match="the sentence is empty"):
      use("<2de> ")


@pytest.mark.parametrize(
  ("sentence", "options", "message"),
  [
    (" ", {}, "the sentence is empty"),
    ("ab " * 99, {}, "the sentence has .* tokens, but at most 24"),
    ("ab", {"beam_size": 0}, "beam_size is 0"),
    ("ab\ud800", {}, "half of a surrogate pair"),
  ],
)
def test_mistakes_are_named(translator, sentence, options, message):
  with pytest.raises(InputError, match=message):
    translator.search_tree(sentence, **options)


@pytest.mark.long
@pytest.mark.parametrize("options", [{"length_penalty": 2.0}, {"patience": 0.3}])
def test_the_options_are_those_of_translate(translator, params_of_short_outputs, options):
  before, translator.params = translator.params, params_of_short_outputs
  try:
    tree = translator.search_tree(SENTENCE, beam_size=BEAM, n_best=BEAM, **options)
    [best] = translator.translate([SENTENCE], beam_size=BEAM, n_best=BEAM, return_scores=True, **options)
    default = translator.search_tree(SENTENCE, beam_size=BEAM, n_best=BEAM)
  finally:
    translator.params = before
  assert tree.texts == [found.text for found in best]
  alpha = options.get("length_penalty", translator.config.decode.length_penalty)
  for number, found in zip(tree.best, best, strict=True):
    node = tree.nodes[number]
    np.testing.assert_allclose(node.score, found.score, rtol=1e-5)
    np.testing.assert_allclose(node.score, node.log_prob / ((5 + node.step) / 6) ** alpha, rtol=1e-5)
  assert default.nodes != tree.nodes


def test_of_the_pruned_the_most_probable_come_first():
  """PAD, UNK, BOS, EOS and two words, after two hypotheses."""
  log_probs = np.log([[0.05, 0.1, 0.1, 0.3, 0.2, 0.25], [0.05, 0.15, 0.1, 0.1, 0.4, 0.2]])
  found = list(_others(log_probs, {(0, EOS), (1, 4)}, (PAD, BOS), only_eos=False))
  assert found == [(0, 5), (0, 4), (1, 5), (1, 1), (0, 1), (1, EOS)]
  assert list(_others(log_probs, {(1, EOS)}, (PAD, BOS), only_eos=True)) == [(0, EOS)]


def test_a_search_that_finds_nothing_is_an_error(translator, monkeypatch):
  monkeypatch.setattr(search_tree, "search_tree", lambda *_: SearchTree([], [], [], [], None))
  with pytest.raises(RunError, match="NaN"):
    translator.search_tree(SENTENCE)


@pytest.mark.parametrize(("words", "fits"), [(23, True), (24, False)])
def test_a_sentence_may_have_24_tokens_with_its_end(translator, monkeypatch, words, fits):
  numbers = Translator(translator.config, translator.params, Numbers())
  monkeypatch.setattr(search_tree, "search_tree", lambda *_: SearchTree([], [], [7], ["x"], None))
  sentence = " ".join(["7"] * words)
  if fits:
    assert numbers.search_tree(sentence).texts == ["x"]
  else:
    with pytest.raises(InputError, match="the sentence has 25 tokens, but at most 24"):
      numbers.search_tree(sentence)
