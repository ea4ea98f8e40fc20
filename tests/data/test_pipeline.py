import dataclasses
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.data.letters import Letters
from tests.example_run import write_pairs
from transformer_jax.config import Corpus, DataConfig, PieceKind
from transformer_jax.data import corpus, encoding, pipeline, row_cache
from transformer_jax.data.batches import Batches, in_order
from transformer_jax.data.packing import SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.sentencepiece_pieces import pieces_of
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.text import digest, lines_of
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime import workers
from transformer_jax.runtime.errors import InputError, RunError

LINES = [("a bb", "c"), ("dd", "ee ff"), ("", "g"), ("h", "i"), ("much too long for a row", "j")]


@pytest.fixture
def data(tmp_path):
  write_pairs(tmp_path / "train", LINES)
  return DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "train"), row_length=11, cache_dir=str(tmp_path / "cache"))


def rows_of(data, tokenizer=None):
  return pipeline.packed_rows(data, data.train, tokenizer or Letters())


def folders(data):
  return sorted(path.name for path in (Path(data.cache_dir) / "rows").iterdir() if path.is_dir())


def test_rows_hold_the_corpus_and_the_report_says_what_is_left_out(data):
  packed = rows_of(data)
  assert packed.rows.dtype == np.uint16 and packed.rows.shape == (packed.report.rows, 4, 11)
  found = {
    tuple(bytes(row[side][row[segments] == segment].astype(np.uint8)) for side, segments in SIDES)
    for row in packed.rows
    for segment in set(row[SOURCE_SEGMENTS]) - {0}
  }
  end = bytes([EOS])
  assert found == {(b"a bb" + end, b"c" + end), (b"dd" + end, b"ee ff" + end), (b"h" + end, b"i" + end)}
  report = packed.report
  assert report.found == {"pairs": 3, "source tokens": 10, "target tokens": 10} and report.tokens == 20
  assert list(report.left_out.values()) == [1, 1] and "longest has 24" in report.missing()[0]


SIDES = (SOURCE, SOURCE_SEGMENTS), (TARGET, TARGET_SEGMENTS)


def test_more_than_65536_pieces_need_wider_rows(data):
  assert rows_of(data, Letters(vocab_size=1 << 16)).rows.dtype == np.uint16
  assert rows_of(data, Letters("wide", vocab_size=(1 << 16) + 1)).rows.dtype == np.uint32


def test_a_second_call_reads_the_cache(data, monkeypatch):
  first = rows_of(data)
  monkeypatch.setattr(Letters, "encode_batch", lambda self, texts: pytest.fail("packed again"))
  second = rows_of(data)
  np.testing.assert_array_equal(second.rows, first.rows)
  assert (second.report, second.fingerprint) == (first.report, first.fingerprint)
  assert folders(data) == [first.fingerprint]  # and nothing temporary is left


def test_rows_are_whole_that_are_checked_in_several_blocks(data, monkeypatch):
  """As those of more than a megabyte are."""
  monkeypatch.setattr(row_cache, "_BLOCK", 16)
  packed = rows_of(data)
  assert packed.report.found["pairs"] == 3 and packed.rows.nbytes > 16


def test_whatever_changes_the_rows_is_packed_again(data, tmp_path):
  seen = {rows_of(data).fingerprint}
  seen.add(rows_of(data, Letters("other")).fingerprint)
  seen.add(rows_of(dataclasses.replace(data, row_length=13)).fingerprint)
  seen.add(rows_of(dataclasses.replace(data, max_length=5)).fingerprint)
  write_pairs(tmp_path / "train", [*LINES[:-1], ("k", "l")])
  seen.add(rows_of(data).fingerprint)
  assert len(seen) == 5 and folders(data) == sorted(seen)


def test_of_several_that_share_the_cache_one_packs(data, monkeypatch):
  encode, packing, calls = Letters.encode_batch, threading.Event(), []

  def slowly(self, texts):
    calls.append(len(texts))
    packing.set()
    time.sleep(0.3)
    return encode(self, texts)

  monkeypatch.setattr(Letters, "encode_batch", slowly)
  with ThreadPoolExecutor(2) as executor:
    first = executor.submit(rows_of, data)
    assert packing.wait(timeout=60)
    second = executor.submit(rows_of, data)
    np.testing.assert_array_equal(first.result().rows, second.result().rows)
  assert len(calls) == 2  # the two sides, once
  assert folders(data) == [first.result().fingerprint]


def test_a_cache_that_cannot_be_written_is_the_user_s_to_mend(data, tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(InputError, match=r"cannot write to .*file.*config\.data\.cache_dir"):
    rows_of(dataclasses.replace(data, cache_dir=str(tmp_path / "file")))


def flipped_bit(path):
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 4
  path.write_bytes(content)


def with_other_rows(rows):
  def damage(path):
    values = json.loads(path.read_text())
    values.get("report", values)["rows"] = rows
    path.write_text(json.dumps(values))

  return damage


DAMAGE = {
  "bit": ("rows.bin", flipped_bit),
  "zeros": ("rows.bin", lambda path: path.write_bytes(bytes(path.stat().st_size))),
  "cut": ("rows.bin", lambda path: path.write_bytes(path.read_bytes()[:-3])),
  "longer": ("rows.bin", lambda path: path.write_bytes(2 * path.read_bytes())),
  "gone": ("rows.bin", lambda path: path.unlink()),
  "report cut": ("report.json", lambda path: path.write_bytes(path.read_bytes()[:-3])),
  "report gone": ("report.json", lambda path: path.unlink()),
  "report bit": ("report.json", flipped_bit),
  "report list": ("report.json", lambda path: path.write_text("[]")),
  **{f"{rows} rows": ("report.json", with_other_rows(rows)) for rows in (-1, 0, 2, 10**30)},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_rows_are_packed_again_and_it_is_said(data, capsys, damage):
  before = rows_of(data)
  rows, report = before.rows.copy(), before.report
  folder = Path(data.cache_dir) / "rows" / before.fingerprint
  name, change = DAMAGE[damage]
  change(folder / name)
  capsys.readouterr()
  after = rows_of(data)
  said = capsys.readouterr().err
  assert re.fullmatch(f"the packed rows in {re.escape(str(folder))} are damaged, .*packing them again\n", said)
  np.testing.assert_array_equal(after.rows, rows)
  assert after.report == report
  assert folders(data) == [before.fingerprint]
  rows_of(data)
  assert capsys.readouterr().err == ""


def test_rows_of_before_there_was_a_checksum_are_packed_again(data, capsys):
  folder = Path(data.cache_dir) / "rows" / rows_of(data).fingerprint
  (folder / "report.json").write_text(json.dumps(dataclasses.asdict(rows_of(data).report)))
  assert rows_of(data).report.found["pairs"] == 3
  assert "or of an older version: packing them again" in capsys.readouterr().err


def test_of_several_that_find_damage_one_packs(data, monkeypatch):
  before = rows_of(data).rows
  expected = before.copy()
  flipped_bit(Path(data.cache_dir) / "rows" / rows_of(data).fingerprint / "rows.bin")
  encode, calls = Letters.encode_batch, []

  def slowly(self, texts):
    calls.append(len(texts))
    time.sleep(0.1)
    return encode(self, texts)

  monkeypatch.setattr(Letters, "encode_batch", slowly)
  with ThreadPoolExecutor(4) as executor:
    for found in executor.map(lambda _: rows_of(data), range(4)):
      np.testing.assert_array_equal(found.rows, expected)
  assert len(calls) == 2  # the two sides, once


def test_a_disk_that_does_not_give_back_what_was_written(data, monkeypatch):
  monkeypatch.setattr(row_cache, "_crc32", lambda path: 7)
  with pytest.raises(RunError, match=r"not what was just written: check the disk"):
    rows_of(data)


def test_a_failure_while_packing_leaves_nothing_behind(data, monkeypatch):
  def fail(self, texts):
    raise InputError("line 3 is bad")

  monkeypatch.setattr(Letters, "encode_batch", fail)
  with pytest.raises(InputError, match="line 3 is bad"):
    rows_of(data)
  assert folders(data) == []


def test_what_a_killed_process_has_half_packed_is_deleted(data):
  content = rows_of(data).fingerprint
  rows = Path(data.cache_dir) / "rows"
  (rows / content).rename(rows / f"{content}.half")
  (rows / "another").mkdir()
  rows_of(data)
  assert sorted(folders(data)) == sorted([content, "another"])


def test_a_corpus_of_which_nothing_is_left(data):
  with pytest.raises(
    InputError,
    match=r"no sentence pair .* 4 pairs skipped, longer .* 1 pair skipped, with an empty .*max_length",
  ):
    rows_of(dataclasses.replace(data, max_length=1))
  assert folders(data) == []


def test_a_tokenizer_of_another_size_is_refused(data, tmp_path):
  (tmp_path / "model").write_bytes(SentencePieceTokenizer.learn(["abc abd", "bcd abe"] * 7, 270).to_bytes())
  data.tokenizer = str(tmp_path / "model")
  assert pipeline.learn_tokenizer(data, 270).vocab_size == 270
  with pytest.raises(InputError, match=r"vocab_size is 271.* has 270 tokens: set config\.model\.vocab_size=270"):
    pipeline.learn_tokenizer(data, 271)


def test_the_tokenizer_is_learned_on_both_sides(data, tmp_path):
  write_pairs(tmp_path / "train", [("abc", "xyz")] * 7)
  tokenizer = pipeline.learn_tokenizer(data, 270)
  # Signs that are not learned are spelled in bytes, of which 259 is the last.
  assert min(tokenizer.encode("abc")) > 259 and min(tokenizer.encode("xyz")) > 259


def test_first_pairs_as_text(data):
  assert pipeline.read_pairs(data, data.train) == LINES
  assert pipeline.read_pairs(data, data.train, 2) == LINES[:2]
  assert pipeline.read_pairs(data, data.train, 0) == []


COUNT, SIZE = 23, 7  # rows, and rows of a batch


@pytest.fixture
def packed():
  """Each row says its number."""
  return PackedRows(
    np.broadcast_to(np.arange(COUNT)[:, None, None], (COUNT, 4, 3)).astype(np.uint16), PackingReport(), ""
  )


def numbers(batch):
  return batch.rows[:, 0, 0].tolist()


def test_the_batch_of_a_step_depends_on_seed_and_step_alone(packed):
  batches = Batches(packed, SIZE, seed=5)
  in_order = [numbers(batches[step]) for step in range(20)]
  again = Batches(packed, SIZE, seed=5)
  assert [numbers(again[step]) for step in reversed(range(20))] == in_order[::-1]
  for start in (3, 11):  # a run that resumes
    resumed = Batches(packed, SIZE, seed=5)
    assert [numbers(resumed[step]) for step in range(start, 20)] == in_order[start:]
  other = Batches(packed, SIZE, seed=6)
  assert [numbers(other[step]) for step in range(20)] != in_order


def test_each_epoch_has_every_row_once_in_another_order(packed):
  batches = Batches(packed, SIZE, seed=5)
  stream = [number for step in range(COUNT) for number in numbers(batches[step])]  # seven epochs
  epochs = [tuple(stream[start : start + COUNT]) for start in range(0, len(stream), COUNT)]
  assert len(epochs) == SIZE and len(set(epochs)) == SIZE
  assert all(sorted(epoch) == list(range(COUNT)) for epoch in epochs)


@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_shares_of_hosts_join_to_the_batch(packed, hosts):
  whole = Batches(packed, SIZE, seed=5, multiple=8)
  shares = [Batches(packed, SIZE, seed=5, multiple=8, host=host, hosts=hosts) for host in range(hosts)]
  for step in range(5):
    joined = [np.concatenate(parts) for parts in zip(*[share[step] for share in shares], strict=True)]
    np.testing.assert_array_equal(joined[0], whole[step].rows)
    np.testing.assert_array_equal(joined[1], whole[step].indices)


@pytest.mark.parametrize(("multiple", "filled"), [(1, 7), (2, 8), (5, 10), (16, 16)])
def test_a_batch_is_filled_up_with_empty_rows(packed, multiple, filled):
  plain, batch = Batches(packed, SIZE, seed=5)[3], Batches(packed, SIZE, seed=5, multiple=multiple)[3]
  np.testing.assert_array_equal(batch.indices, np.arange(filled, dtype=np.int32))
  np.testing.assert_array_equal(batch.rows[:SIZE], plain.rows)
  assert batch.rows.shape == (filled, 4, 3) and not np.any(batch.rows[SIZE:])


def test_a_batch_may_be_larger_than_the_corpus(packed):
  found = numbers(Batches(packed, 2 * COUNT, seed=5)[0])
  assert sorted(found) == sorted([*range(COUNT)] * 2)


def test_evaluation_reads_all_rows_once_in_order(packed):
  batches = [*in_order(packed, 10)]
  assert [len(batch.rows) for batch in batches] == [len(batch.indices) for batch in batches] == [10, 10, 10]
  joined = np.concatenate([batch.rows for batch in batches])
  np.testing.assert_array_equal(joined[:COUNT], packed.rows)
  assert not np.any(joined[COUNT:])


def test_rows_of_a_text_that_changes_meanwhile_are_not_kept(data, tmp_path):
  """Else the old text, when it is put back, would be read as the rows of the new one."""
  tokenizer, old = Letters(), (tmp_path / "train.en").read_bytes()

  class Changing(Letters):
    def encode_batch(self, texts):
      (tmp_path / "train.en").write_bytes(old + b"one more\n")
      return super().encode_batch(texts)

  with pytest.raises(InputError, match="the text changed while it was packed: give the command again"):
    rows_of(data, Changing())
  assert folders(data) == []
  (tmp_path / "train.en").write_bytes(old)
  again = rows_of(data, tokenizer)
  assert folders(data) == [again.fingerprint]


WORDS = ["a", "horse", "rides", "über", "the", "<2de>", "\u2581", "hill,", "Übermut", "ein\u3000Pferd", "reitet"]


@pytest.fixture
def many(data, tmp_path):
  """A corpus with lines that are left out, and a tokenizer that is learned from it."""
  generator = np.random.default_rng(0)
  pairs = [[" ".join(generator.choice(WORDS, size)) for size in generator.integers(0, 14, 2)] for _ in range(700)]
  write_pairs(tmp_path / "train", pairs)
  tokenizer = SentencePieceTokenizer.learn((side for pair in pairs for side in pair), 300)
  return dataclasses.replace(data, row_length=47), tokenizer


def rows_by(data, tokenizer, cores, at_once, monkeypatch, tmp_path):
  """The rows and the report of a cache of its own."""
  monkeypatch.setattr(workers, "cores", lambda: cores)
  monkeypatch.setattr(workers, "_ALONE", 1)
  monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", at_once)
  monkeypatch.setattr(pipeline.packing, "WINDOW", 31)
  folder = tmp_path / f"{cores} {at_once}"
  packed = rows_of(dataclasses.replace(data, cache_dir=str(folder)), tokenizer)
  return packed.rows.tobytes(), packed.report


@pytest.mark.parametrize("pair", [False, True])
def test_rows_are_those_of_one_process_and_of_each_sentence_alone(many, monkeypatch, tmp_path, pair):
  data, tokenizer = many
  expected = rows_by(data, Alone(tokenizer), 1, 10**9, monkeypatch, tmp_path)
  assert all(expected[1].left_out.values()) and expected[1].rows > 100
  tokenizer = TokenizerPair(tokenizer, SentencePieceTokenizer(tokenizer.to_bytes())) if pair else tokenizer
  for cores, at_once in ((1, 1), (1, 1 << 17), (2, 1 << 16), (3, 1 << 18)):
    assert rows_by(data, tokenizer, cores, at_once, monkeypatch, tmp_path) == expected


class Alone(Letters):
  """A tokenizer that encodes a text at a time, and that other processes cannot have."""

  def __init__(self, tokenizer):
    super().__init__("alone", tokenizer.vocab_size)
    self._tokenizer, self.longest_piece, self.here = tokenizer, tokenizer.longest_piece, lambda: None

  def encode_batch(self, texts):
    return [self._tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("cores", [1, 2])
def test_errors_are_those_of_one_process(many, monkeypatch, tmp_path, cores):
  data, tokenizer = many
  (tmp_path / "train.en").write_bytes((tmp_path / "train.en").read_bytes() + b"a\xff\n")
  (tmp_path / "train.de").write_bytes((tmp_path / "train.de").read_bytes() + b"a\n")
  with pytest.raises(InputError, match=r"train\.en, line 701: byte 2 of the line is not valid UTF-8"):
    rows_by(data, tokenizer, cores, 1 << 16, monkeypatch, tmp_path)
  (tmp_path / "train.en").write_bytes((tmp_path / "train.en").read_bytes()[:-3] + b"a\nb\n")
  with pytest.raises(InputError, match=r"train\.en has 702 lines but .*train\.de has 701"):
    rows_by(data, tokenizer, cores, 1 << 16, monkeypatch, tmp_path)
  assert not any(path.is_dir() for path in (tmp_path / f"{cores} {1 << 16}" / "rows").iterdir())


@pytest.mark.parametrize("cores", [1, 2])
def test_a_registered_corpus_is_packed_by_several_processes_too(data, monkeypatch, tmp_path, cores):
  pairs = [(f"horse {i}", f"Pferd {i}") for i in range(300)]
  monkeypatch.setitem(corpus._REGISTERED, "horses", lambda data, which: iter(pairs))
  data = dataclasses.replace(data, corpus=Corpus.REGISTERED, dataset="horses", row_length=47)
  tokenizer = SentencePieceTokenizer.learn((side for pair in pairs for side in pair), 280)
  _, report = rows_by(data, tokenizer, cores, 1 << 15, monkeypatch, tmp_path)
  assert report.found["pairs"] == 300
  pairs[200] = ("half \ud800", "a")
  with pytest.raises(InputError, match="half of a surrogate pair"):
    rows_by(data, tokenizer, cores, 1 << 14, monkeypatch, tmp_path)


def test_a_batch_is_described_by_its_first_rows():
  rows = np.zeros((20, 4, 5), np.uint16)
  packed = PackedRows(rows, PackingReport(), "")
  few, many = Batches(packed, 8, 1), Batches(packed, 11, 1)
  assert few.describe(0) == "rows " + ", ".join(map(str, few.rows_of(0))) + " of the packed text"
  assert many.describe(0) == "rows " + ", ".join(map(str, many.rows_of(0)[:8])) + " and 3 more of the packed text"


def test_a_cache_in_a_bucket_is_refused():
  with pytest.raises(InputError, match=r"config\.data\.cache_dir is gs://b/c, but rows are read in place"):
    row_cache.cache_of(DataConfig(cache_dir="gs://b/c"))


@pytest.mark.parametrize("sizes", [(268,), (268, 268)])
@pytest.mark.parametrize("kind", PieceKind)
def test_the_vocabulary_is_of_the_kind_of_the_config(data, tmp_path, kind, sizes):
  words = ["to", "be", "or", "not"]
  write_pairs(tmp_path / "train", [(f"{a} {b}", f"{b} {a}") for a in words for b in words])
  found = pipeline.learn_tokenizer(dataclasses.replace(data, pieces=kind), *sizes)
  assert [pieces_of(side).kind for side in (found.source, found.target)] == [kind] * 2


def test_without_locks_what_another_process_packs_is_not_deleted(data, monkeypatch):
  content = rows_of(data).fingerprint
  rows = Path(data.cache_dir) / "rows"
  (rows / content).rename(rows / f"{content}.half")
  monkeypatch.setattr(row_cache, "lock", lambda file: False)
  rows_of(data)
  assert folders(data) == [content, f"{content}.half"]


def test_home_is_where_the_user_means_it(data, tmp_path, monkeypatch):
  monkeypatch.setenv("HOME", str(tmp_path))
  monkeypatch.chdir(tmp_path)
  for train in ("~/train", "~/train.en,~/train.de"):
    assert rows_of(dataclasses.replace(data, train=train)).fingerprint == rows_of(data).fingerprint
  assert row_cache.cache_of(DataConfig(cache_dir="~/cache")) == tmp_path / "cache" / "rows"
  assert [*lines_of("~/train.en")] == [source for source, _ in LINES]
  assert digest("~/train.de") == digest(tmp_path / "train.de")
  (tmp_path / "own.model").write_bytes(SentencePieceTokenizer.learn(["abc abd", "bcd abe"] * 7, 270).to_bytes())
  assert SentencePieceTokenizer.load("~/own.model").vocab_size == 270
