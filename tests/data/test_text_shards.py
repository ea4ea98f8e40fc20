"""A text in shards: each epoch has every pair once, shard by shard, in an order of its own."""

import collections
import dataclasses
import errno
import gzip
import itertools
import os
import re

import numpy as np
import pytest
from etils import epath

from tests.data.letters import Letters
from tests.example_run import write_pairs
from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import pipeline, text_shards
from transformer_jax.data.packing import SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.runtime.errors import InputError, RunError

SEED = 3
PAIRS = [(chr(97 + i), chr(122 - i)) for i in range(23)]  # different letters tell the pairs apart
SIDES = (SOURCE, SOURCE_SEGMENTS), (TARGET, TARGET_SEGMENTS)


@pytest.fixture
def data(tmp_path):
  write_pairs(tmp_path / "train", PAIRS)
  return DataConfig(
    corpus=Corpus.TEXT, train=str(tmp_path / "train"), row_length=7, shard_pairs=5, cache_dir=str(tmp_path / "cache")
  )


def pairs_in(blocks):
  """The pairs in packed rows, read segment by segment; the EOS is dropped."""
  return [
    tuple(bytes(row[side][row[segments] == segment][:-1].astype(np.uint8)).decode() for side, segments in SIDES)
    for rows in blocks
    for row in rows
    for segment in sorted(set(row[SOURCE_SEGMENTS]) - {0})
  ]


def shards_in(pack, epoch, count):
  return [sorted(pairs_in(pack(epoch * count + place))) for place in range(count)]


def test_an_epoch_has_each_shard_once_in_an_order_of_its_own(data):
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  expected = [PAIRS[start : start + 5] for start in range(0, 23, 5)]
  epochs = [shards_in(pack, epoch, 5) for epoch in range(4)]
  for shards in epochs:
    assert sorted(shards) == expected
  assert len({str(shards) for shards in epochs}) > 1
  again = pipeline.packing_ahead(data, Letters(), SEED)
  assert shards_in(again, 2, 5) == epochs[2]  # whatever was packed before
  other = pipeline.packing_ahead(data, Letters(), SEED + 1)
  assert [shards_in(other, epoch, 5) for epoch in range(4)] != epochs


def test_four_epochs_read_twelve_shards_in_four_orders(data):
  """Which depend on the seed and the epoch alone."""
  data.shard_pairs = 2
  expected: list = [PAIRS[start : start + 2] for start in range(0, 23, 2)]

  def orders(seed):
    pack = pipeline.packing_ahead(data, Letters(), seed)
    epochs = [shards_in(pack, epoch, 12) for epoch in range(4)]
    return [[expected.index(shard) for shard in shards] for shards in epochs]

  found = orders(SEED)
  assert [sorted(order) for order in found] == [[*range(12)]] * 4
  assert len({tuple(order) for order in (*found, *orders(SEED + 1), range(12))}) == 9
  assert orders(SEED) == found


def test_all_orders_of_shards_are_equally_frequent_over_epochs_and_seeds():
  """Each of the six of three shards 500 times of 3000, within five standard deviations of 20.4."""
  for orders in (
    [text_shards._order(SEED, epoch, 3) for epoch in range(3000)],
    [text_shards._order(seed, 1, 3) for seed in range(3000)],
  ):
    counts = collections.Counter(tuple(order.tolist()) for order in orders)
    assert set(counts) == set(itertools.permutations(range(3)))
    assert all(abs(count - 500) < 103 for count in counts.values())


@pytest.mark.parametrize("shard_pairs", [5, 0])
def test_a_text_that_changes_during_the_run_ends_it(data, tmp_path, shard_pairs):
  """Shards begin at bytes that were found before, so that pairs would be joined from other lines."""
  data = dataclasses.replace(data, shard_pairs=shard_pairs)
  tokenizer = Letters()
  if not shard_pairs:
    data = dataclasses.replace(data, bpe_dropout=0.5, row_length=37)
    tokenizer = SentencePieceTokenizer.learn(["abc abd"] * 5, 265)
  pack = pipeline.packing_ahead(data, tokenizer, SEED)
  assert [*pack(0)]
  write_pairs(tmp_path / "train", PAIRS)  # the same again
  assert [*pack(1)]
  # The first change keeps the size.
  for change in (lambda: write_pairs(tmp_path / "train", PAIRS[::-1]), (tmp_path / "train.de").unlink):
    change()
    with pytest.raises(
      RunError, match=r"the files of config\.data\.train = .* changed during the run: give it the text"
    ):
      [*pack(2)]


def test_a_text_that_cannot_be_read_now_is_not_called_another_one(data, monkeypatch):
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  assert [*pack(0)]

  def fails(*arguments, **options):
    raise OSError(errno.EIO, os.strerror(errno.EIO))

  monkeypatch.setattr(type(epath.Path()), "open", fails)
  monkeypatch.setattr(type(epath.Path()), "stat", fails)
  with pytest.raises(InputError, match=r"^cannot read .*: Input/output error; check that"):
    [*pack(1)]


def test_a_text_of_several_directions_that_changes_ends_the_run_too(data, tmp_path):
  write_pairs(tmp_path / "other", PAIRS)
  data = dataclasses.replace(
    data, shard_pairs=0, bpe_dropout=0.5, row_length=37, tags=True, train=f"{data.train};{tmp_path / 'other'}:de-en"
  )
  pack = pipeline.packing_ahead(data, SentencePieceTokenizer.learn(["abc abd"] * 5, 265), SEED)
  assert [*pack(0)]
  write_pairs(tmp_path / "other", PAIRS[::-1])
  with pytest.raises(RunError, match=r"the files of config\.data\.train = .* changed during the run: give it the text"):
    [*pack(1)]


def test_each_pair_comes_as_often_as_its_corpus_weighs(data, tmp_path):
  write_pairs(tmp_path / "other", [("A", "B"), ("C", "D"), ("E", "F")])
  data = dataclasses.replace(data, train=f"{data.train}*2;{tmp_path / 'other'}")
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  assert sorted(pair for shard in shards_in(pack, 0, 6) for pair in shard) == sorted(
    [*PAIRS * 2, ("A", "B"), ("C", "D"), ("E", "F")]
  )


def test_what_is_left_out_is_reported_once(data, tmp_path, capfd):
  write_pairs(tmp_path / "train", [*PAIRS[:7], ("", "g"), ("much too long", "j"), *PAIRS[7:]])
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  assert sorted(pair for shard in shards_in(pack, 0, 5) for pair in shard) == PAIRS
  said = capfd.readouterr().err
  assert re.fullmatch(
    r"lines 6 to 10 of .*/train.en: 3 pairs, 1 pair skipped, longer than 7 tokens \(the longest has 14\), "
    r"1 pair skipped, with an empty side\n",
    said,
  )
  shards_in(pack, 1, 5)
  assert not capfd.readouterr().err


def test_a_shard_may_be_empty_but_not_all(data, tmp_path):
  write_pairs(tmp_path / "train", [*PAIRS[:5], *[("", "")] * 5, *PAIRS[5:7]])
  shards = shards_in(pipeline.packing_ahead(data, Letters(), SEED), 0, 3)
  assert sorted(shards) == [[], PAIRS[:5], PAIRS[5:7]]
  write_pairs(tmp_path / "train", [("", "a")] * 12)
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  assert [[*pack(0)], [*pack(1)]] == [[], []]
  with pytest.raises(InputError, match=r"no sentence pair of .*train is left: check the text, or raise"):
    [*pack(2)]


def test_an_empty_shard_at_the_border_of_two_epochs_does_not_end_the_run(data, tmp_path):
  write_pairs(tmp_path / "train", [*PAIRS[:5], *[("", "")] * 5])
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  epochs = [shards_in(pack, epoch, 2) for epoch in range(20)]
  assert all(sorted(shards) == [[], PAIRS[:5]] for shards in epochs)
  assert any(before[1] == after[0] == [] for before, after in itertools.pairwise(epochs))


def test_files_without_lines_are_refused_before_training(data, tmp_path):
  write_pairs(tmp_path / "train", [])
  with pytest.raises(InputError, match=r"train.en and .*train.de are empty: expected one sentence per line"):
    text_shards.not_packed_yet(data, Letters())


def test_what_is_known_before_it_is_packed(data, tmp_path):
  packed = text_shards.not_packed_yet(data, Letters())
  assert packed.rows.shape == (0, 4, 7) and packed.rows.dtype == np.uint16
  assert packed.report.describe(7) == "23 pairs, before any is left out\n  5 shards, which are packed during the run"
  assert not (tmp_path / "cache").exists()
  others = [dataclasses.replace(data, shard_pairs=6), dataclasses.replace(data, max_length=5)]
  found = [text_shards.not_packed_yet(other, Letters()).fingerprint for other in others]
  write_pairs(tmp_path / "train", PAIRS[::-1])
  found.append(text_shards.not_packed_yet(data, Letters()).fingerprint)
  assert len({packed.fingerprint, *found}) == 4


@pytest.mark.parametrize("weights", [("0.4", "2.5"), ("3", "1"), ("0.1", "1.7")])
def test_the_pairs_of_an_epoch_are_counted_with_their_weights(data, tmp_path, weights):
  write_pairs(tmp_path / "other", PAIRS[:7])
  data.train = f"{data.train}*{weights[0]};{tmp_path}/other*{weights[1]}"
  data.shard_pairs = 3
  [pairs, shards] = text_shards.not_packed_yet(data, Letters()).report.found.values()
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  assert shards == 8 + 3 and pairs == sum(len(shard) for shard in shards_in(pack, 0, shards))


def test_files_that_cannot_be_read_in_shards(data, tmp_path):
  source = tmp_path / "train.en"
  source.write_text("a\n")
  with pytest.raises(InputError, match=r"train\.en has 1 line but .*train\.de has 23"):
    text_shards.not_packed_yet(data, Letters())
  (tmp_path / "train.en.gz").write_bytes(gzip.compress(source.read_bytes()))
  source.unlink()
  with pytest.raises(InputError, match=r"shard_pairs needs plain text, .*: unpack .*train\.en\.gz and .*train\.de, or"):
    text_shards.not_packed_yet(data, Letters())


@pytest.mark.parametrize("changed", ["train.de", "other.en"])
def test_any_file_that_changes_ends_the_run(data, tmp_path, changed):
  write_pairs(tmp_path / "other", PAIRS)
  data = dataclasses.replace(data, train=f"{data.train};{tmp_path / 'other'}")
  pack = pipeline.packing_ahead(data, Letters(), SEED)
  assert [*pack(0)]
  path = tmp_path / changed
  path.write_text(path.read_text().replace("\n", "x\n", 1))
  with pytest.raises(RunError, match="changed during the run: give it the text"):
    [*pack(1)]
