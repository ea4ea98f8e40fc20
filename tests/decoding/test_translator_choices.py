"""Sampling and forced beginnings of texts, with a tiny Transformer of random weights."""

import dataclasses
import random
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.data.letters import Letters
from tests.decoding.test_translator import Numbers
from transformer_jax.config import DecodeConfig
from transformer_jax.decoding import buckets, choices, prefixes
from transformer_jax.decoding.beam_search import Hypotheses
from transformer_jax.decoding.line_search import LineSearch, Wanted
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.decoding.translator import Translation, Translator
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runtime.errors import InputError

SAMPLING = SamplingOptions(temperature=1.5, top_k=30)


@pytest.fixture(scope="module")
def drawn(translator, lines):
  return list(translator.translate_lines(lines, sampling=SAMPLING, seed=7, n_best=2))


def test_samples_do_not_depend_on_the_other_lines(translator, lines, drawn):
  assert list(translator.translate_lines(lines, sampling=SAMPLING, seed=7, n_best=2, window=5)) == drawn
  for first in (3, 30):
    rest = translator.translate_lines(lines[first:], sampling=SAMPLING, seed=7, n_best=2, first=first + 1)
    assert list(rest) == drawn[first:]
  assert [one for one, _ in drawn] == translator.translate(lines, sampling=SAMPLING, seed=7, return_scores=True)


def test_samples_differ_by_line_number_seed_and_place(translator, lines, drawn):
  kept = [i for i, line in enumerate(lines) if line.strip()]
  twins = translator.translate([lines[0]] * 9, sampling=SAMPLING, seed=7)
  assert len(set(twins)) > 5
  assert sum(drawn[i][0] == drawn[i][1] for i in kept) < 5
  other = translator.translate(lines, sampling=SAMPLING, seed=8, return_scores=True)
  assert sum(drawn[i][0] == other[i] for i in kept) < 5
  for i, line in enumerate(lines):
    if not line.strip():
      assert drawn[i] == [Translation("", 0.0, 0.0, 0)] * 2


def test_a_long_line_has_a_draw_for_each_of_its_parts(translator, lines):
  long = " ".join(lines[:4])
  [[one, other]] = translator.translate_lines([long], sampling=SAMPLING, n_best=2, warn=str)
  assert one.text != other.text and one.tokens > 24


def test_no_two_draws_have_the_same_random_numbers(translator):
  """Whatever their line, part, and number among the draws of a line."""
  requests = []

  class Search:
    def search(self, params, found, options, batch_size):
      requests.extend(found)
      return ((i, Hypotheses(np.ones((1, 1), int), *np.ones((3, 1), int))) for i in range(len(found)))

  options = translator._options(None, None, None, 1, SAMPLING)
  search = LineSearch(Search(), DecodeConfig(max_source_length=7), Letters(), [])
  wanted = Wanted(options, 3, 11, None, None, "split", 2, 5, lambda seconds: True, None, str)
  found = list(search.translate(None, ["a" * size for size in (2, 13, 29)], wanted))
  assert [len(draws) for draws in found] == [3, 3, 3] and len(requests) == 3 * (1 + 3 + 5)
  numbers = [request.numbers for request in requests]
  assert len(set(numbers)) == len(numbers) and {seed for seed, *_ in numbers} == {11}


def test_draws_have_no_unknown_token(translator):
  assert translator._options(None, None, None, 1, SAMPLING).sampling.suppressed == (PAD, UNK, BOS)
  without = dataclasses.replace(SAMPLING, suppressed=(17,))
  assert translator._options(None, None, None, 1, without).sampling.suppressed == (PAD, UNK, BOS, 17)


@pytest.mark.long
def test_temperature_0_is_greedy_search(translator, lines):
  greedy = translator.translate(lines[:9], beam_size=1)
  assert translator.translate(lines[:9], sampling=SamplingOptions(temperature=0.0)) == greedy


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"beam_size": 2}, "beam_size is 2, but must be left out with sampling"),
    ({"patience": 1.0}, "patience is 1.0, but must be left out with sampling"),
    ({"seed": -1}, "seed is -1, but must be 0 or more"),
    ({"n_best": 0}, "n_best is 0, but must be from 1 to"),
    ({"n_best": 1025}, "n_best is 1025, but must be from 1 to 1024"),
  ],
)
def test_options_of_sampling_that_cannot_be_used(translator, options, message):
  unread = iter(["a"])
  with pytest.raises(InputError, match=message):
    translator.translate_lines(unread, sampling=SamplingOptions(), **options)
  assert list(unread) == ["a"]
  with pytest.raises(InputError, match="top_p is 0, but must be above 0"):
    SamplingOptions(top_p=0)


PREFIXES = ["", "abc de", "gh", "  ", "\N{SNOWMAN}a ", "f"]


@pytest.fixture(scope="module")
def short(lines):
  return [line for line in lines if 0 < len(line.strip()) < 30][: len(PREFIXES)]


def test_translations_begin_with_their_prefixes(translator, short):
  found = translator.translate(short, prefixes=PREFIXES, return_scores=True)
  free = translator.translate(short, return_scores=True)
  order = random.Random(2).sample(range(len(short)), len(short))
  permuted = translator.translate([short[i] for i in order], prefixes=[PREFIXES[i] for i in order], return_scores=True)
  assert permuted == [found[i] for i in order]
  for prefix, one, other in zip(PREFIXES, found, free, strict=True):
    assert one.text.startswith(prefix.strip() and prefix)
    if not prefix.strip():
      assert one.text == other.text and one.score == pytest.approx(other.score, rel=1e-5)


@pytest.mark.long
def test_the_score_is_that_of_the_whole_translation(translator):
  """What is forced is what the free search finds, so nothing changes."""
  numbers = Translator(translator.config, translator.params, Numbers())
  lines = ["17 5 260 33 7", "90 91", "8 300 12"]
  free = numbers.translate(lines, return_scores=True)
  prefixes = [" ".join(each.text.split()[:3]) for each in free]
  assert all(prefixes)
  found = numbers.translate(lines, prefixes=prefixes, return_scores=True)
  for one, other in zip(found, free, strict=True):
    assert one.text == other.text and one.score == pytest.approx(other.score, rel=1e-5)


@pytest.mark.long
def test_a_prefix_and_draws(translator, short):
  found = list(translator.translate_lines(short, prefixes=["abc"] * len(short), sampling=SAMPLING, n_best=3))
  texts = [translation.text for samples in found for translation in samples]
  assert all(text.startswith("abc") for text in texts) and len(set(texts)) > len(short)


def test_lines_are_counted_from_the_first_one(translator):
  with pytest.raises(InputError, match="there are more prefixes than the 1 lines"):
    list(translator.translate_lines(["a"], prefixes=["", ""], first=100, warn=str))
  with pytest.raises(InputError, match="line 101 is of type int"):
    list(translator.translate_lines(["", 3], first=100))


@pytest.mark.parametrize(
  ("texts", "prefixes", "count", "message"),
  [
    (["a", "b", "c"], ["a"], 1, "line 2 has no prefix: give one for each line"),
    (["a"], ["", ""], 1, "there are more prefixes than the 1 lines"),
    (["a", "b"], ["x", "hi " * 30], 1, "line 2 has a prefix of .* tokens, but its translation has at most"),
    (["a", "abcdef " * 40], ["x", "y"], 1, "line 2 has a prefix, but is so long that it would be translated in parts"),
    (["a", "b"], ["x", "y\u2028z"], 1, "line 2 has the prefix 'y.u2028z', but a translation can only have 'y z' there"),
    (["a", "b"], ["x", "\ud800"], 1, "the prefix of line 2 has half of a surrogate pair"),
    (["a", "b"], ["x", 3], 1, "the prefix of line 2 is of type int"),
  ],
)
def test_prefixes_that_cannot_be_used(translator, texts, prefixes, count, message):
  found = []
  with pytest.raises(InputError, match=message):
    found.extend(translator.translate_lines(texts, prefixes=prefixes, warn=str))
  assert len(found) == count


@pytest.mark.parametrize(("size", "fits"), [(6, True), (7, False)])
def test_a_prefix_leaves_room_for_the_end(size, fits):
  """A source of 3 tokens, and 4 more: a translation has at most 7 tokens, of which the last is its end."""
  tokens, error = prefixes.encode(iter(["a" * size]), [[[5, 5, EOS]]], Letters(), 4, 1, pytest.fail)
  assert (tokens, error is None) == ([[ord("a")] * size] if fits else [], fits)


def broken_lines():
  raise InputError("line 1 is not UTF-8")
  yield


@pytest.mark.parametrize(
  ("texts", "options", "message"),
  [(["abcdef " * 40, "a"], {"long": "refuse"}, "line 1 has more than"), (broken_lines(), {}, "line 1 is not UTF-8")],
  ids=["refused", "broken"],
)
def test_an_error_of_the_first_line_is_told_with_prefixes_too(translator, texts, options, message):
  with pytest.raises(InputError, match=message):
    list(translator.translate_lines(texts, prefixes=["x", "y"], **options))


@pytest.mark.parametrize(
  ("second", "prefixes", "message", "count"),
  [("", None, "line 3 has more than", 2), ("a", ["", "y\u2028z"], "line 2 has the prefix", 1)],
)
def test_of_several_errors_that_of_the_first_line_is_told(translator, second, prefixes, message, count):
  def lines():
    yield from ["", second, "abcdef " * 40]
    raise InputError("line 4 is bad")

  found = []
  with pytest.raises(InputError, match=message):
    found.extend(translator.translate_lines(lines(), prefixes=prefixes, long="refuse", warn=str))
  assert len(found) == count


def test_an_empty_line_stays_empty_and_its_prefix_is_told_of(translator):
  warnings = []
  found = translator.translate_lines(["", "a"], prefixes=["x", "y"], warn=warnings.append)
  assert next(found)[0].text == ""
  assert warnings == ["line 1 is empty, and so is its translation: its prefix is not used"]


def test_a_prefix_that_ends_with_a_space_is_told(translator, lines):
  warnings = []
  prefixes = ["ab ", "ab", " "]
  list(translator.translate_lines(lines[:3], prefixes=prefixes, warn=warnings.append))
  [warning] = warnings
  assert warning == "line 1 has a prefix that ends with a space, which belongs to the next word: leave it out"


@pytest.mark.long
def test_long_prefixes_are_found_in_a_larger_bucket(translator, params_of_short_outputs, short, monkeypatch):
  """The search has little headroom at first, so the prefix does not fit."""
  decode = dataclasses.replace(translator.config.decode, extra_length=40, max_source_length=64)
  other = Translator(
    dataclasses.replace(translator.config, decode=decode), params_of_short_outputs, translator._tokenizer
  )
  prefix = "".join(random.Random(3).choices("abcdefghij", k=38))
  larger, large_enough = [], buckets.large_enough
  monkeypatch.setattr(buckets, "large_enough", lambda *args: larger.append(args) or large_enough(*args))
  [found] = other.translate(["a"], prefixes=[prefix], patience=1)
  assert found.startswith(prefix) and len(larger) == 1


def test_a_seed_has_its_generator_whatever_jax_is_told():
  """Of `rbg` all rows of a batch would take the numbers of the first one's key."""
  with jax.default_prng_impl("rbg"):
    found = jax.random.key_data(choices._key(jnp.arange(4, dtype=jnp.uint32)))
  np.testing.assert_array_equal(found, jax.random.key_data(choices._key(jnp.arange(4, dtype=jnp.uint32))))


class Shifted(Letters):
  """With other numbers."""

  def encode_batch(self, texts):
    return [[token + 1 for token in tokens] for tokens in super().encode_batch(texts)]

  def decode(self, ids):
    return super().decode([token - 1 for token in ids])


def test_a_prefix_has_the_tokens_of_the_targets_vocabulary(translator):
  requests = []

  class Search:
    def search(self, params, found, options, batch_size):
      requests.extend((request.source, request.prefix) for request in found)
      return ((i, Hypotheses(np.ones((1, 1), int), *np.ones((3, 1), int))) for i in range(len(found)))

  sides = SimpleNamespace(source=Letters(), target=Shifted())
  options = translator._options(None, None, None, 1)
  wanted = Wanted(options, 1, 0, iter(["cd", ""]), None, "split", 2, 1, lambda seconds: True, None, str)
  list(LineSearch(Search(), DecodeConfig(), sides, []).translate(None, ["ab", "ef"], wanted))
  assert requests == [([97, 98, EOS], [100, 101]), ([101, 102, EOS], [])]


@pytest.mark.parametrize(
  ("last", "message"),
  [
    ([], "line 15 has no prefix"),
    (["y\u2028z"], "line 15 has the prefix"),
    ([3], "the prefix of line 15 is of type int"),
  ],
)
def test_lines_with_prefixes_are_counted_over_windows(translator, last, message):
  class Search:
    def search(self, params, found, options, batch_size):
      return ((i, Hypotheses(np.ones((1, 1), int), *np.ones((3, 1), int))) for i in range(len(found)))

  given, warnings, found = iter(["x", "x", "x ", "x", *last]), [], []
  options = translator._options(None, None, None, 1)
  wanted = Wanted(options, 1, 0, given, None, "split", 2, 11, lambda seconds: True, None, warnings.append)
  with pytest.raises(InputError, match=message):
    found.extend(LineSearch(Search(), DecodeConfig(), Letters(), []).translate(None, ["a"] * 5, wanted))
  assert len(found) == 4 and [warning.line for warning in warnings] == [13]
