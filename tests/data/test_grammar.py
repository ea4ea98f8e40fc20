"""The embedded treebank: its splits, its ambiguities and what decides them."""

from collections import defaultdict

import pytest

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import grammar
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.trees import Span, linearise
from transformer_jax.runtime.errors import InputError


@pytest.fixture(scope="module")
def trees():
  return [grammar.tree_of(number) for number in range(4000)]


def test_a_sentence_is_a_function_of_its_number():
  assert str(grammar.tree_of(5)) == (
    "(S (NP (NP (DT the) (NN goat)) (PP (IN of) (NP (DT the) (NN valley)))) "
    "(VP (VBD picked) (PRT (RP up)) (NP (DT the) (NN chair))) (. .))"
  )


def test_the_same_tags_have_several_trees_but_the_same_words_have_one(trees):
  of_tags, of_words = defaultdict(set), defaultdict(set)
  for tree in trees:
    of_tags[tree.tags].add(tree.spans)
    of_words[tree.words].add(tree.spans)
  assert sum(len(spans) > 1 for spans in of_tags.values()) > 100
  assert all(len(spans) == 1 for spans in of_words.values())


def is_phrase(tree, start, end):
  return Span("NP", start, end) in tree.spans


def test_verbs_and_instruments_decide_where_with_belongs(trees):
  """`hit the man with the hammer` and `saw the man with the hammer`."""
  seen = set()
  for tree in trees:
    for start in range(len(tree.words) - 5):
      verb, _, noun, preposition, _, tool = tree.words[start : start + 6]
      pattern = preposition == "with" and tree.tags[start : start + 3] == ("VBD", "DT", "NN")
      if pattern and verb in grammar._INSTRUMENTS and tool in grammar._NOUNS["tool"]:
        belongs_to_noun = is_phrase(tree, start + 1, start + 6)
        assert belongs_to_noun == (tool not in grammar._INSTRUMENTS[verb])
        assert noun in grammar._NOUNS["person"] or not belongs_to_noun
        seen.add(belongs_to_noun)
  assert seen == {True, False}


def test_kinds_decide_what_an_adjective_belongs_to(trees):
  """`old men and women` and `old men and dogs`."""
  seen = set()
  for tree in trees:
    for start in range(len(tree.words) - 3):
      if tree.tags[start : start + 4] == ("JJ", "NNS", "CC", "NNS"):
        words = tree.words[start + 1], tree.words[start + 3]
        first, second = [kind for word in words for kind, nouns in grammar._PLURALS.items() if word in nouns]
        assert is_phrase(tree, start, start + 4)
        assert is_phrase(tree, start, start + 2) == is_phrase(tree, start + 3, start + 4) == (first != second)
        seen.add(first == second)
  assert seen == {True, False}


@pytest.mark.long
def test_no_sentence_is_in_two_splits():
  splits = {name: [tree.words for tree in grammar.trees_of(name)] for name in grammar.SENTENCES}
  assert {name: len(set(split)) for name, split in splits.items()} == grammar.SENTENCES
  assert {name: len(split) for name, split in splits.items()} == grammar.SENTENCES
  assert len(set().union(*splits.values())) == sum(grammar.SENTENCES.values())
  assert {word for split in splits.values() for words in split for word in words} == {
    word for words in splits["train"] for word in words
  }


def test_the_corpus_has_sentences_with_linearised_trees(monkeypatch):
  monkeypatch.setitem(grammar.SENTENCES, "test", 20)
  grammar._pairs.cache_clear()
  corpus = open_corpus(DataConfig(corpus=Corpus.GRAMMAR), "test")
  assert list(corpus) == [(" ".join(tree.words), linearise(tree)) for tree in grammar.trees_of("test")]
  grammar._pairs.cache_clear()
  other = open_corpus(DataConfig(corpus=Corpus.GRAMMAR), "validation")
  assert corpus.fingerprint() != other.fingerprint() and corpus.name == "the split 'test' of the grammar"
  with pytest.raises(InputError, match="no split 'dev'"):
    open_corpus(DataConfig(corpus=Corpus.GRAMMAR), "dev")


def test_verbs_decide_where_a_place_belongs(trees):
  """`met the dog in the park`, `liked the dog in the park`; `took the book from the park`, `... from the village`."""
  seen = set()
  for tree in trees:
    for start in range(len(tree.words) - 5):
      if tree.tags[start : start + 6] != ("VBD", "DT", "NN", "IN", "DT", "NN"):
        continue
      verb, _, _, preposition, _, place = tree.words[start : start + 6]
      if preposition == "in" and verb in (*grammar._EVENTS, *grammar._STATES):
        belongs_to_noun = verb in grammar._STATES
      elif preposition == "from" and verb in grammar._TAKES:
        belongs_to_noun = place in grammar._NOUNS["town"]
      else:
        continue
      longest = max(span.end for span in tree.spans if span[:2] == ("NP", start + 1))
      assert (longest >= start + 6) == belongs_to_noun
      seen.add((preposition, belongs_to_noun))
  assert len(seen) == 4
