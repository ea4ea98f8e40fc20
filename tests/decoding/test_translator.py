"""Text to text, with a tiny Transformer of random weights."""

import dataclasses
import inspect
import itertools
import random
import re
import threading

import numpy as np
import pytest

from tests.data.letters import Letters
from transformer_jax import registry
from transformer_jax.config import Corpus, DataConfig, DecodeConfig, LengthPenalty
from transformer_jax.decoding import bucketed_search, buckets, line_search, splitting
from transformer_jax.decoding.beam_search import Hypotheses, SearchOptions
from transformer_jax.decoding.line_warning import LanguageWarning, check_language
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.decoding.translation import different
from transformer_jax.decoding.translator import Translation, Translator
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.transformer import Transformer
from transformer_jax.registry import Family
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError, RunError


@pytest.fixture(scope="module")
def found(translator, lines):
  return translator.translate(lines, return_scores=True)


def test_permuted_lines_give_the_same_bits(translator, lines, found):
  order = random.Random(1).sample(range(len(lines)), len(lines))
  assert translator.translate([lines[i] for i in order], return_scores=True) == [found[i] for i in order]


def test_a_line_alone_gives_the_same_bits(translator, lines, found):
  for i in (0, 20):
    assert translator.translate([lines[i]], return_scores=True) == [found[i]]


def test_windows_change_nothing(translator, lines, found):
  assert [best for [best] in translator.translate_lines(lines, window=5)] == found


@pytest.mark.long
@pytest.mark.parametrize("batch_size", [1, 7])
def test_batch_sizes_give_the_same_texts_and_almost_the_same_scores(translator, lines, found, batch_size):
  other = translator.translate(lines, return_scores=True, batch_size=batch_size)
  assert [translation.text for translation in other] == [translation.text for translation in found]
  np.testing.assert_allclose([t.score for t in other], [t.score for t in found], rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("batch_size", [None, 1, 7])
def test_short_queues_change_nothing_to_the_last_bit(translator, lines, batch_size, monkeypatch):
  """More lines than one call holds, and fewer slots than a call has lines."""
  expected = translator.translate(lines, return_scores=True, batch_size=batch_size)
  monkeypatch.setattr(bucketed_search, "_QUEUE_ON_CPU", 1)
  assert translator.translate(lines, return_scores=True, batch_size=batch_size) == expected


@pytest.mark.long
def test_several_threads_change_nothing(translator, lines, monkeypatch):
  """The first call is the last that is done."""
  expected = translator.translate(lines, return_scores=True, batch_size=1)
  begun, another_done, calls = itertools.count(), threading.Event(), []
  search_function = translator._bucketed._function

  def delayed(*shape):
    search = search_function(*shape)

    def function(*args):
      call = next(begun)
      found = search(*args)
      if call == 0:
        assert another_done.wait(timeout=60)
      else:
        another_done.set()
      calls.append(call)
      return found

    return function

  monkeypatch.setattr(bucketed_search, "_QUEUE", 1)
  monkeypatch.setattr(devices, "on_cpu", lambda: False)
  monkeypatch.setattr(translator._bucketed, "_function", delayed)
  counts = []
  assert translator.translate(lines, return_scores=True, batch_size=1, progress=counts.append) == expected
  assert sum(counts) == len(lines)
  assert len(calls) > 2 and calls[0] != 0


@pytest.mark.parametrize(
  ("beam_size", "patience", "headroom"), [(4, 0.5, 16), (2, 1.0, 16), (4, 0.0, 50), (1, 1.0, 50)]
)
def test_a_search_with_patience_has_little_headroom(beam_size, patience, headroom):
  decode = DecodeConfig(max_source_length=128, extra_length=50)
  search = bucketed_search.BucketedSearch(lambda: Transformer(ModelConfig()), [ModelConfig()], decode)
  assert search._headroom(SearchOptions(beam_size, LengthPenalty.GNMT, 0.6, patience=patience), 16) == headroom


@pytest.mark.long
@pytest.mark.parametrize("options", [{"patience": 1}, {"patience": 1, "n_best": 3}])
def test_outputs_that_their_bucket_truncates_are_found_in_a_larger_one(
  translator, params_of_short_outputs, lines, options, monkeypatch
):
  decode = dataclasses.replace(translator._config.decode, extra_length=19)
  config = dataclasses.replace(translator._config, decode=decode)
  other = Translator(config, params_of_short_outputs, translator._tokenizer)
  texts = [_texts_and_tokens(found) for found in other.translate(lines, return_scores=True, **options)]

  large_enough, asked = buckets.large_enough, []
  monkeypatch.setattr(
    buckets, "large_enough", lambda length, *rest: asked.append(length) or large_enough(length, *rest)
  )
  monkeypatch.setattr(buckets, "headroom", lambda length, longest, extra: extra if length == longest else 0)
  other = Translator(config, params_of_short_outputs, translator._tokenizer)
  counts = []
  found = other.translate(lines, return_scores=True, progress=counts.append, **options)
  assert 0 < len(asked) < len(lines)
  assert [_texts_and_tokens(translation) for translation in found] == texts
  assert sum(counts) == len(lines)
  order = random.Random(1).sample(range(len(lines)), len(lines))
  assert other.translate([lines[i] for i in order], return_scores=True, **options) == [found[i] for i in order]
  assert other.translate([lines[20]], return_scores=True, **options) == [found[20]]


def _texts_and_tokens(found):
  translations = found if isinstance(found, list) else [found]
  return [(translation.text, translation.tokens) for translation in translations]


@pytest.mark.long
@pytest.mark.parametrize("patience", [1, 0.3])
def test_patience_gives_complete_translations_that_are_not_better(translator, params_of_short_outputs, lines, patience):
  def configured(patience):
    decode = dataclasses.replace(translator._config.decode, length_penalty=2.0, patience=patience)
    config = dataclasses.replace(translator._config, decode=decode)
    return Translator(config, params_of_short_outputs, translator._tokenizer)

  both = [configured(0.0), configured(float(patience))]
  patient, hasty = (translator.translate(lines, return_scores=True) for translator in both)
  assert both[0].translate(lines[:7], return_scores=True, patience=patience) == hasty[:7]
  assert both[1].translate(lines[:7], return_scores=True, patience=0) == patient[:7]
  for line, quick, best in zip(lines, hasty, patient, strict=True):
    assert (quick.tokens > 0) == bool(line.strip())
    assert quick.score == pytest.approx(gnmt(quick, 2.0))
    in_parts = len(translator._tokenizer.encode(line)) > 23
    assert quick.score <= best.score or in_parts  # the score of a whole is not the sum of its parts'
  assert patience == 1 or hasty != patient


class Numbers(Letters):
  """A tokenizer of texts that are the tokens' numbers: what the search finds is what `score` is given."""

  longest_piece = 4

  def encode_batch(self, texts):
    return [[int(word) for word in text.split()] for text in texts]

  def decode(self, ids):
    return " ".join(map(str, ids))


@pytest.mark.long
@pytest.mark.parametrize("renormalize", [False, True])
def test_score_of_a_translation_is_the_searchs_log_probability(translator, renormalize):
  config = translator.config
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, renormalize=renormalize))
  numbers = Translator(config, translator.params, Numbers())
  generator = random.Random(2)
  lines = [numbers._tokenizer.decode(generator.choices(range(4, 311), k=k)) for k in (1, 2, 7, 13, 19, 23)]
  found = numbers.translate(lines, n_best=3, return_scores=True)
  pairs = [(line, translation.text) for line, best in zip(lines, found, strict=True) for translation in best]
  expected = [translation for best in found for translation in best]
  assert len(pairs) == 3 * len(lines)
  scores = numbers.score(pairs)
  assert [score.tokens for score in scores] == [translation.tokens for translation in expected]
  np.testing.assert_allclose(
    [score.log_probability for score in scores], [t.log_probability for t in expected], rtol=1e-5
  )


@pytest.mark.long
def test_of_hypotheses_with_equal_texts_the_best_stays_in_its_place(translator, monkeypatch):
  monkeypatch.setattr(translator._tokenizer, "decode", lambda tokens: "ab"[tokens[0] % 2])
  for best in translator.translate(["abc", "de fg", "h"], n_best=3, return_scores=True):
    every = [t.score for t in best]
    assert every == sorted(every, reverse=True)
    assert len({t.text for t in best}) == len(best) <= 2
  assert different([Translation(text, score, 0.0, 1) for text, score in (("a", -1.0), ("b", -2.0), ("a", -3.0))]) == [
    Translation("a", -1.0, 0.0, 1),
    Translation("b", -2.0, 0.0, 1),
  ]


def test_hypotheses_with_equal_texts_leave_room_for_others(translator, monkeypatch):
  """As many different texts as are wanted, where the beam has them."""
  [first, second, third] = translator.translate(["abc de"], n_best=3)[0]
  decode = translator._tokenizer.decode
  monkeypatch.setattr(translator._tokenizer, "decode", lambda tokens: decode(tokens).replace(second, first))
  assert translator.translate(["abc de"], n_best=2) == [[first, third]]


@pytest.mark.parametrize(("words", "fits"), [(28, True), (29, False)])
def test_what_fits_can_be_scored(translator, monkeypatch, words, fits):
  """A sentence may have 24 tokens and 5 more, its end among them."""
  numbers = Translator(translator.config, translator.params, Numbers())
  monkeypatch.setattr(buckets, "scores", lambda lengths, *_: [0.0] * len(lengths))
  text = " ".join(["7"] * words)
  for pair in ((text, "5"), ("5", text)):
    assert numbers.fits([("5", "5"), pair]) == fits
    if fits:
      assert [each.tokens for each in numbers.score([pair])] == [len(pair[1].split()) + 1]
    else:
      with pytest.raises(InputError, match="pair 1 has a sentence of 30 tokens, but at most 29 can be read"):
        numbers.score([pair])


def test_scores_of_pairs_do_not_depend_on_each_other(translator, lines):
  pairs = list(itertools.pairwise(lines))
  assert translator.score(pairs[::-1]) == translator.score(pairs)[::-1]


def test_empty_lines_are_empty_translations(lines, found):
  for line, translation in zip(lines, found, strict=True):
    assert (translation == Translation("", 0.0, 0.0, 0)) == (not line.strip())


def test_nothing_gives_nothing(translator):
  assert translator.translate([]) == []
  assert translator.score([]) == []


@pytest.mark.long
def test_n_best_differ_and_begin_with_the_best(translator, lines, found):
  for line, best, first in zip(lines, translator.translate(lines, n_best=3, return_scores=True), found, strict=True):
    texts = [translation.text for translation in best]
    assert len(set(texts)) == len(texts)
    assert 1 <= len(texts) <= 3
    scores = [translation.score for translation in best]
    assert scores == sorted(scores, reverse=True)
    assert best[0].score >= first.score or not line.strip()
    assert all(translation.score == pytest.approx(gnmt(translation, 0.6)) for translation in best)


def gnmt(translation, alpha):
  return translation.log_probability / ((5 + translation.tokens) / 6) ** alpha


@pytest.mark.long
def test_the_configs_kind_of_length_penalty_is_that_of_the_search(translator, lines):
  decode = dataclasses.replace(translator._config.decode, penalty=LengthPenalty.FAIRSEQ, length_penalty=0.7)
  config = dataclasses.replace(translator._config, decode=decode)
  other = Translator(config, translator.params, translator._tokenizer)
  [best] = other.translate(lines[:1], return_scores=True)
  assert best.tokens > 1
  assert best.score == pytest.approx(best.log_probability / best.tokens**0.7)


@pytest.mark.long
def test_another_length_penalty_needs_no_other_program(translator, lines, monkeypatch):
  """A program is traced when it is made."""
  traced, search = [], bucketed_search.programs.search
  monkeypatch.setattr(bucketed_search.programs, "search", lambda *args, **kw: traced.append(1) or search(*args, **kw))
  fresh = Translator(translator.config, translator.params, translator._tokenizer)
  for alpha in (1.7, 0.2, 0):
    found = fresh.translate(lines[:1], beam_size=3, n_best=3, length_penalty=alpha, return_scores=True)
    assert [each.score for each in found[0]] == [pytest.approx(gnmt(each, alpha)) for each in found[0]]
    assert len(traced) == 1
  fresh.translate(lines[:1], beam_size=2)
  assert len(traced) == 2


def test_plain_results_are_the_texts(translator, lines, found):
  assert translator.translate(lines) == [translation.text for translation in found]


def test_a_long_line_is_translated_in_parts(translator):
  warnings = []
  line = "abc ade fgh. jihb aab cae! ihg fed cba. bbb cih"
  parts = splitting.split(line, 23, lambda text: len(translator._tokenizer.encode(text)))
  assert len(parts) > 1
  [[whole]] = translator.translate_lines([line], warn=warnings.append)
  of_parts = translator.translate(parts, return_scores=True)
  assert whole.text == " ".join(part.text for part in of_parts)
  assert whole.tokens == sum(part.tokens for part in of_parts)
  assert whole.log_probability == pytest.approx(sum(part.log_probability for part in of_parts))
  assert whole.score == pytest.approx(gnmt(whole, 0.6))
  [warning] = warnings
  assert warning == (
    f"line 1 has more than config.decode.max_source_length = 24 tokens: it is translated in {len(parts)} parts"
  )


def test_the_warning_counts_lines_over_windows(translator, lines):
  warnings = []
  translations = list(
    translator.translate_lines(["a", "b", "c", "", "abcdefghij" * 20], window=2, warn=warnings.append)
  )
  assert len(translations) == 5
  assert [warning.split(" has ")[0] for warning in warnings] == ["line 5"]


def test_a_line_break_in_the_output_becomes_a_space(translator, lines, monkeypatch):
  monkeypatch.setattr(translator._tokenizer, "decode", lambda tokens: "a\nb\rc\u2028d\x85e")
  assert translator.translate(lines[:1]) == ["a b c d e"]


def test_progress_adds_up_to_the_lines(translator, lines):
  counts = []
  translator.translate([*lines, "abcdefghij" * 20], progress=counts.append)
  assert sum(counts) == len(lines) + 1


def test_the_first_progress_is_of_a_line_that_was_searched(translator, lines):
  """It starts the clock of the rate, which leaves out compilation."""
  counts = []
  translator.translate(["", lines[0], ""], progress=counts.append)
  assert [count for count in counts if count] == [1, 2]


def test_an_error_of_the_input_comes_after_the_lines_before_it(translator, lines, found):
  def broken():
    yield from lines[:5]
    raise InputError("line 6 is bad")

  results = []
  with pytest.raises(InputError, match="line 6"):
    for [best] in translator.translate_lines(broken(), window=3):
      results.append(best)
  assert results == found[:5]


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"beam_size": 0}, "beam_size is 0, but must be from 1 to 1024"),
    ({"beam_size": 1025}, "beam_size is 1025, but must be from 1 to 1024"),
    ({"n_best": 4}, "n_best is 4, but must be from 1 to the beam size, which is 3"),
    ({"length_penalty": -1.0}, "length_penalty is -1.0"),
    ({"length_penalty": float("nan")}, "length_penalty is nan"),
    ({"length_penalty": 60}, "length_penalty is 60, but must be from 0 to 5"),
    ({"patience": -1.0}, "patience is -1.0, but must be from 0 to 1,000,000"),
    ({"patience": float("nan")}, "patience is nan"),
    ({"batch_size": 0}, "batch_size is 0"),
    ({"beam_size": 2.0}, "beam_size is 2.0, but must be a whole number"),
    ({"beam_size": True}, "beam_size is True, but must be a whole number"),
    ({"n_best": "2"}, "n_best is '2', but must be a whole number"),
    ({"batch_size": 8.0}, "batch_size is 8.0, but must be a whole number"),
    ({"seed": 1.5}, "seed is 1.5, but must be a whole number"),
    ({"window": 10.0}, "window is 10.0, but must be a whole number"),
    ({"seed": -1}, "seed is -1, but must be 0 or more"),
    ({"seed": 2**32}, "seed is 4294967296, but must be 0 or more, and below"),
    ({"window": 0}, "window is 0, but must be positive"),
    ({"first": 0}, "first is 0, but must be positive"),
    ({"first": -1}, "first is -1, but must be positive"),
    ({"long": "cut"}, "long is cut, but must be split or refuse"),
  ],
)
def test_options_that_cannot_be_used(translator, lines, options, message):
  """The call refuses them: it reads no line, and nobody has to ask for the first translation."""
  unread = iter(lines)
  with pytest.raises(InputError, match=message):
    translator.translate_lines(unread, **options)
  assert list(unread) == lines


@pytest.mark.parametrize("name", ["translate", "translate_lines", "search_tree"])
def test_help_describes_each_option(name):
  method = getattr(Translator, name)
  here, there = inspect.getdoc(method), inspect.getdoc(Translator)
  assert re.search(r"[Tt]he docstring of `Translator`\s+describes the options", here)
  for option in list(inspect.signature(method).parameters)[2:]:
    described = rf"^  (\w+, )*{option}(, \w+)*: "
    assert re.search(described, f"{here}\n{there}", re.MULTILINE) or f"`{option}`" in here, option


def test_other_bad_input(translator):
  for call, name in (
    (lambda: translator.translate("a sentence"), "sentences"),
    (lambda: translator.translate_lines("a line"), "lines"),
    (lambda: translator.translate(["a", "b"], prefixes="ab"), "prefixes"),
  ):
    with pytest.raises(InputError, match=rf"{name} is one str, but must be several: write \[{name}\]"):
      call()
  with pytest.raises(InputError, match=r"pair 2 has a sentence of .* tokens, but at most 29 can be read"):
    translator.score([("a", "b"), ("a", "abcdefghij" * 20)])
  for pairs in (("a source", "its target"), [("a", "b", "c")], [["a"]], [None], [3], [{"a", "b"}]):
    with pytest.raises(InputError, match=r"pair 1 is .* but must be a source and its target"):
      translator.score(pairs)


def test_a_model_without_probabilities_is_an_error(translator, lines):
  params = translator.params
  try:
    translator.params = {**params, "decoder": _nan(params["decoder"])}
    for use in (
      lambda: translator.translate(lines[:1]),
      lambda: translator.score([(lines[0], lines[0])]),
      lambda: translator.attention(lines[0], lines[0]),
    ):
      with pytest.raises(RunError, match="NaN"):
        use()
  finally:
    translator.params = params


def _nan(tree):
  return {key: _nan(value) for key, value in tree.items()} if isinstance(tree, dict) else tree * float("nan")


def test_programs_are_forgotten_when_there_are_many(translator, monkeypatch):
  """Each beam size and length has one, and clients of a server choose them."""
  cleared = []
  monkeypatch.setattr(bucketed_search.jax, "clear_caches", lambda: cleared.append(1))
  search = bucketed_search.BucketedSearch(lambda: None, [], translator.config.decode)
  search._functions["f"] = search._programs
  for count in range(1, 40):
    search._forget_if_many()
    search._programs.add(count)
    assert len(search._programs) <= 33 and ("f" in search._functions) == (count < 34)
  assert cleared == [1]


@pytest.mark.long
def test_each_length_counts_as_a_program(translator):
  translator.translate(["a", "abcabc" * 4])
  lengths = {length for kinds, slots, headroom, length, rows in translator._bucketed._programs}
  assert len(lengths) > 1


def test_a_window_of_draws_has_fewer_lines(translator, monkeypatch):
  sizes = []
  monkeypatch.setattr(line_search, "windows", lambda lines, window, more, first: sizes.append(window) or iter(()))
  for n_best, sampling in ((3, SamplingOptions()), (1, SamplingOptions()), (3, None), (50, SamplingOptions())):
    list(translator.translate_lines(["a"], window=20, n_best=n_best, sampling=sampling))
  assert sizes == [6, 20, 20, 1]


def test_each_part_of_a_line_has_the_tag_of_its_language(translator, monkeypatch):
  data = DataConfig(corpus=Corpus.TEXT, train="a:en-de;b:en-fr", tags=True)
  config = dataclasses.replace(translator.config, data=data)
  other = Translator(config, translator.params, translator._tokenizer)
  asked, warnings = [], []

  def search(params, requests, *_):
    asked.extend(other._tokenizer.decode(request.source[:-1]) for request in requests)
    yield from ((i, Hypotheses(np.ones((1, 1), int), *np.ones((3, 1), int))) for i in range(len(requests)))

  monkeypatch.setattr(other._bucketed, "search", search)
  list(other.translate_lines(["<2de> " + "abc ade fgh jihb aab cae " * 3, "abc"], warn=warnings.append))
  *parts, last = asked
  assert len(parts) > 1 and all(part.startswith("<2de> ") for part in parts) and last == "abc"
  assert [warning.line for warning in warnings] == [1, 2]
  assert "begins with none of <2de>, <2fr>" in warnings[1]


def test_a_warning_names_a_few_of_many_tags():
  warnings = []
  tags = [f"<2{'x' * 99}{number}>" for number in range(100)]
  check_language("a", None, tags, 7, warnings.append)
  [warning] = warnings
  assert warning.line == 7 and len(str(warning)) < 1000 and ", ...: its translation" in str(warning)


def test_pairs_are_scored_in_batches_of_the_size_that_is_given(translator, monkeypatch):
  rows = []
  monkeypatch.setattr(
    buckets, "scores", lambda lengths, longest, of_length, log_probs: rows.append(of_length(16)) or []
  )
  translator.score([], batch_size=3)
  assert rows == [8 * 3]


def test_a_kept_search_is_that_of_its_models_and_sizes(monkeypatch):
  """Models with other heads have parameters of the same shapes."""
  monkeypatch.setattr(bucketed_search.trace_cache, "kept", lambda function, key, result: key)

  def key(heads=(8,), slots=2, headroom=5, extra=7):
    models = [ModelConfig(num_heads=count) for count in heads]
    return bucketed_search.BucketedSearch(lambda: None, models, DecodeConfig(extra_length=extra))._made(slots, headroom)

  keys = [key(), key(heads=(4,)), key(heads=(8, 8)), key(heads=(8, 4)), key(slots=3), key(headroom=6), key(extra=8)]
  assert len({*keys}) == 7 and key() == keys[0]


class OwnConfig(ModelConfig):
  """Of a family of another package."""


def test_a_search_with_a_model_from_elsewhere_is_not_kept(monkeypatch):
  """Its code, which may change, is in no key."""
  own = Family(f"{__name__}:OwnConfig", "own:Own")
  monkeypatch.setattr(registry, "_FAMILIES", registry._FAMILIES | {"own": own})
  monkeypatch.setattr(bucketed_search.trace_cache, "kept", lambda *_: "kept")
  found = [
    bucketed_search.BucketedSearch(lambda: None, models, DecodeConfig())._made(2, 5)
    for models in ([ModelConfig()], [OwnConfig()], [ModelConfig(), OwnConfig()])
  ]
  assert [each == "kept" for each in found] == [True, False, False]


def test_each_beam_size_counts_as_a_program_and_a_search_forgets_many(translator, monkeypatch):
  def stops(*_):
    raise InputError("as it happens")

  search = bucketed_search.BucketedSearch(lambda: None, [translator.config.model], translator.config.decode)
  monkeypatch.setattr(search, "_function", lambda *_: stops)
  monkeypatch.setattr(bucketed_search.jax, "clear_caches", lambda: None)
  for count in range(1, 40):
    options = SearchOptions(count, LengthPenalty.GNMT, 0.6)
    with pytest.raises(InputError, match="as it happens"):
      list(search.search(None, [bucketed_search.Request([5, 3], None, None)], options, 1))
    assert len(search._programs) == (count if count <= 33 else count - 33)


def test_a_search_for_one_translation_need_not_finish_the_others(translator):
  assert [translator._options(None, None, None, wanted).n_best for wanted in (1, 2, 3)] == [1, 3, 3]


@pytest.mark.parametrize(("codes", "told"), [([], False), ([">>fr<<"], False), ([">>fr<<", ">>de<<"], True)])
def test_only_a_model_of_several_languages_needs_a_code(codes, told):
  tokenizer, warnings = Letters(), []
  tokenizer.codes = codes
  check_language("a", tokenizer, [], 1, warnings.append)
  assert [type(warning) for warning in warnings] == [LanguageWarning] * told  # which the commands count


def test_pairs_may_be_rows_of_an_array(translator):
  """As those of a table."""
  pairs = [("abc", "de"), ("f", "ghij")]
  assert translator.fits(np.array(pairs)) and translator.fits(np.array(pairs, object))


def test_numbers_of_numpy_are_numbers(translator):
  assert translator.translate([""], beam_size=np.int64(2), n_best=np.int64(2), seed=np.uint8(3)) == [[""]]
