"""Hostile lines are translated, or refused with one sentence, and never change their neighbours."""

import contextlib
import functools
import itertools
import sys

import jax
import numpy as np
import pytest

from tests.nasty import PIECES
from transformer_jax.config import Config, DecodeConfig, LengthPenalty
from transformer_jax.decoding import buckets, programs
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.decoding.bucketed_search import BucketedSearch
from transformer_jax.decoding.line_breaks import without_line_breaks
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.model.transformer import Transformer
from transformer_jax.runtime import devices, trace_cache
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params

LINE_BREAKS = set("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")


@pytest.mark.long
def test_nasty_lines_are_translated_line_by_line_and_change_no_other(translator):
  usual = ["abc de", "f ghij", "ab cd ef"]
  alone = translator.translate(usual, return_scores=True)
  nasty = [piece for piece in PIECES if not piece.strip()] + [" " * 100_000]
  nasty += ["".join(PIECES[i::9]) for i in range(9)] + ["a\nb", "x" * 99, "\u2581" * 9]
  lines = [line for one in nasty for line in (one, usual[len(one) % 3])]
  found = translator.translate(lines, return_scores=True)
  assert len(found) == len(lines)
  for line, translation in zip(lines, found, strict=True):
    assert not LINE_BREAKS & set(translation.text)
    translation.text.encode()
    assert (translation.tokens > 0) == bool(line.strip())
  assert found[1::2] == [alone[len(one) % 3] for one in nasty]


@pytest.mark.parametrize("line", ["a\ud800b", "\udfff"])
def test_a_lone_surrogate_is_one_sentence(translator, line):
  for action in (lambda: translator.translate(["a", line]), lambda: translator.score([("a", "b"), ("a", line)])):
    with pytest.raises(InputError, match=r"(line|pair) 2 has half of a surrogate pair, U\+D") as caught:
      action()
    str(caught.value).encode()


def test_refused_lines_come_after_the_lines_before_them(translator):
  lines = ["abc", "de", "x" * 500, "f"]
  results = []
  with pytest.raises(InputError, match=r"line 3 has more than config\.decode\.max_source_length = 24 tokens"):
    results.extend(translator.translate_lines(lines, long="refuse"))
  assert [best for [best] in results] == translator.translate(lines[:2], return_scores=True)
  with pytest.raises(InputError, match="long is cut, but must be split or refuse"):
    translator.translate_lines(lines, long="cut")


@pytest.mark.long
@pytest.mark.parametrize(
  ("length", "beams", "extra", "vocab_size"),
  [(512, 1, 5, 997), (16, 200, 5, 997), (16, 3, 5, 99_991), (16, 7, 2003, 97)],
  ids=["encoder", "decoder", "logits", "cache"],
)
def test_what_a_search_needs_is_near_what_the_compiler_takes(length, beams, extra, vocab_size, monkeypatch):
  """Each case has another array that is the largest."""
  config = ModelConfig(vocab_size=vocab_size, num_layers=1, d_model=16, d_ff=29, num_heads=4)
  options = SearchOptions(beams, LengthPenalty.GNMT, 0.6)
  search = jax.jit(functools.partial(programs.search, Transformer(config), options, slots=2, extra_length=extra))
  params = jax.eval_shape(lambda: init_params(Config(model=config), TASK))
  lowered = search.lower(params, jax.ShapeDtypeStruct((4, length), np.int32))
  taken = lowered.compile().memory_analysis().temp_size_in_bytes
  monkeypatch.setattr(devices, "concurrency", lambda: 3)
  for memory, enough in ((3 * taken, False), (6 * taken, True)):
    monkeypatch.setattr(devices, "memory", lambda memory=memory: memory)
    jax.clear_caches()
    with contextlib.nullcontext() if enough else pytest.raises(InputError, match="to search for the translations of 2"):
      search.lower(params, jax.ShapeDtypeStruct((4, length), np.int32))


def test_searches_that_memory_cannot_hold_are_refused_before_they_begin(translator, monkeypatch):
  monkeypatch.setattr(devices, "memory", lambda: 10_000)
  with pytest.raises(InputError, match=r"to search for the translations of .* takes .* GB, but there are 0\.0"):
    translator.translate(["abc"], beam_size=7)


@pytest.mark.parametrize(
  ("dtype", "vocab_size", "memory"), [(Dtype.FLOAT32, 311, 10**7), (Dtype.BFLOAT16, 9973, 10**8)]
)
def test_an_accelerator_takes_as_many_sentences_as_half_of_its_memory_holds(dtype, vocab_size, memory, monkeypatch):
  """A search for more would be refused, though nobody has asked for so many. In bfloat16 it copies the output layer."""
  model = ModelConfig(vocab_size=vocab_size, num_layers=1, d_model=64, d_ff=29, num_heads=2, dtype=dtype)
  decode = DecodeConfig(beam_size=3, extra_length=5, max_source_length=24)
  options, length, headroom = SearchOptions(3, LengthPenalty.GNMT, 0.6), 16, 5
  params = jax.eval_shape(lambda: init_params(Config(model=model), TASK))
  monkeypatch.setattr(devices, "on_cpu", lambda: False)
  monkeypatch.setattr(devices, "concurrency", lambda: 2)

  def slots(memory, **given):
    monkeypatch.setattr(devices, "memory", lambda: memory)
    return BucketedSearch(lambda: Transformer(model), [model], decode).slots(params, options, length, **given)

  def is_refused(slots, memory):
    monkeypatch.setattr(devices, "memory", lambda: memory)
    search = functools.partial(programs.search, Transformer(model), options, slots=slots, extra_length=headroom)
    with contextlib.suppress(InputError):
      jax.eval_shape(search, params, jax.ShapeDtypeStruct((8 * slots, length), np.int32))
      return False
    return True

  most = buckets.rows_at_once(length, headroom)
  assert slots(None) == slots(10**12) == most and slots(1) == 1 and slots(1, batch_size=53) == 53
  fitting = slots(memory)
  assert 7 < fitting < most
  assert not is_refused(fitting, memory // 2) and is_refused(fitting + fitting // 7, memory // 2)


def test_only_the_buckets_of_the_sentences_are_looked_at():
  """On an accelerator a look traces the model."""
  looked = []

  def slots(length):
    looked.append(length)
    return 2

  assert [batch.length for batch in buckets.batches([3, 20, 5], 256, slots)] == [32, 16]
  assert {*looked} == {16, 32}


def test_the_sentences_that_memory_holds_are_counted_for_each_search(monkeypatch):
  """Also where an earlier process has kept their number."""
  kept = {}

  def kept_number(count, key):
    kept[key] = kept[key] if key in kept else count()
    return kept[key]

  def bytes_needed(layers, options, params, length, *, slots, queue, headroom):
    return 1000 * slots * layers * options.beam_size * (length + headroom)

  monkeypatch.setattr(trace_cache, "kept_number", kept_number)
  monkeypatch.setattr(programs, "bytes_needed", bytes_needed)
  monkeypatch.setattr(devices, "on_cpu", lambda: False)
  monkeypatch.setattr(devices, "concurrency", lambda: 1)
  monkeypatch.setattr(devices, "memory", lambda: 2 * 10**7)
  decode = DecodeConfig(max_source_length=64, extra_length=50)
  searches = {
    layers: BucketedSearch(lambda layers=layers: layers, [ModelConfig(num_layers=layers)], decode) for layers in (1, 2)
  }
  for layers, beam, patience, length in itertools.product(searches, (2, 3), (0.0, 1.0), (16, 32)):
    options = SearchOptions(beam, LengthPenalty.GNMT, 0.6, patience=patience)
    headroom = 16 if patience else 50
    assert searches[layers].slots({}, options, length) == 10**7 // (1000 * layers * beam * (length + headroom))


def test_every_end_of_a_line_becomes_a_space():
  """Of all characters those that Python takes for one."""
  ends = [end for end in map(chr, range(sys.maxunicode + 1)) if len(f"a{end}b".splitlines()) > 1]
  assert len(ends) == 10 and without_line_breaks("a".join(ends)) == "a".join(" " * 10)
