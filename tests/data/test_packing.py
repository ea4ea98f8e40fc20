import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.letters import Letters
from transformer_jax.data import encoding, packing
from transformer_jax.data.packing import SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.model.special_tokens import EOS

ROW_LENGTH = 17


def encoded(*arguments):
  """What `encode_pairs` gives, as lists."""
  return [tuple(side.tolist() for side in pair) for pair in packing.encode_pairs(*arguments)]


def unpacked(rows):
  """The pairs of packed rows, with all that must be true of a row on the way."""
  pairs = []
  for row in rows:
    numbers = [sorted(set(row[side]) - {0}) for side in (SOURCE_SEGMENTS, TARGET_SEGMENTS)]
    assert numbers[0] == numbers[1] == list(range(1, len(numbers[0]) + 1)) != []
    for tokens, segments in ((row[SOURCE], row[SOURCE_SEGMENTS]), (row[TARGET], row[TARGET_SEGMENTS])):
      real = np.count_nonzero(segments)
      assert np.all(np.diff(segments[:real]) >= 0)  # from the left, each in one piece, and padding last
      assert not np.any(tokens[real:]) and not np.any(segments[real:])
    for segment in numbers[0]:
      source, target = row[SOURCE][row[SOURCE_SEGMENTS] == segment], row[TARGET][row[TARGET_SEGMENTS] == segment]
      pairs.append((tuple(source.tolist()), tuple(target.tolist())))
  return pairs


sentences = st.lists(st.integers(1, 50), min_size=1, max_size=ROW_LENGTH).map(tuple)


@given(st.lists(st.tuples(sentences, sentences), max_size=23))
def test_every_pair_is_in_one_row_once_and_whole(pairs):
  windows = list(packing.pack(pairs, ROW_LENGTH))
  assert all(rows.shape[1:] == (4, ROW_LENGTH) and rows.dtype == np.int32 for rows in windows)
  found = [pair for rows in windows for pair in unpacked(rows)]
  assert sorted(found) == sorted(pairs)


@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=23))
def test_no_two_rows_would_fit_into_one(pairs):
  (rows,) = packing.pack(pairs, ROW_LENGTH)
  filled = np.count_nonzero(rows[:, [SOURCE_SEGMENTS, TARGET_SEGMENTS]], axis=2)
  for i in range(len(rows)):
    for j in range(i):
      assert np.any(filled[i] + filled[j] > ROW_LENGTH)


def test_windows_are_packed_one_by_one(monkeypatch):
  monkeypatch.setattr(packing, "WINDOW", 5)
  pairs = [((i, i), (i,)) for i in range(1, 13)]
  windows = list(packing.pack(iter(pairs), ROW_LENGTH))
  assert [sorted(unpacked(rows)) for rows in windows] == [pairs[:5], pairs[5:10], pairs[10:]]


def test_a_small_example_by_hand():
  (rows,) = packing.pack([([4, 5], [6]), ([7, 8, 9], [10, 11])], 6, np.uint16)
  assert rows.dtype == np.uint16
  np.testing.assert_array_equal(
    rows, [[[4, 5, 7, 8, 9, 0], [1, 1, 2, 2, 2, 0], [6, 10, 11, 0, 0, 0], [1, 2, 2, 0, 0, 0]]]
  )


@given(st.lists(st.tuples(sentences, sentences), max_size=60), st.integers(1, 30))
def test_rows_are_those_of_the_plain_loop(pairs, window):
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(packing, "WINDOW", window)
    found = list(packing.pack(pairs, ROW_LENGTH, np.uint16))
  expected = [plain_rows(pairs[start : start + window]) for start in range(0, len(pairs), window)]
  assert [rows.tolist() for rows in found] == expected


def plain_rows(pairs):
  """The rows of one window: the longest pair first, into the fullest row that it fits, then in the window's order."""
  rows = []
  for i in sorted(range(len(pairs)), key=lambda i: -max(map(len, pairs[i]))):
    filled = [[sum(len(pairs[j][side]) for j in [*row, i]) for side in range(2)] for row in rows]
    fits = [number for number, sides in enumerate(filled) if max(sides) <= ROW_LENGTH]
    if fits:
      rows[max(fits, key=lambda number: (sum(filled[number]), -number))].append(i)
    else:
      rows.append([i])
  return [
    [padded(part) for side in range(2) for part in tokens_and_segments(pairs, row, side)] for row in map(sorted, rows)
  ]


def tokens_and_segments(pairs, row, side):
  both = [(token, segment) for segment, i in enumerate(row, 1) for token in pairs[i][side]]
  return [*zip(*both, strict=True)]


def padded(values):
  return [*values, *[0] * (ROW_LENGTH - len(values))]


@pytest.mark.parametrize("row_length", [128, 256])
def test_little_padding_on_lengths_like_those_of_news(row_length):
  generator = np.random.default_rng(0)
  # About 27 pieces a sentence with a long tail, and a target of similar length.
  source = np.exp(generator.normal(3.1, 0.6, size=packing.WINDOW))
  target = source * np.exp(generator.normal(0.0, 0.2, size=packing.WINDOW))
  lengths = np.clip(np.stack([source, target], axis=1).astype(int), 1, row_length)
  (rows,) = packing.pack([([1] * n, [1] * m) for n, m in lengths], row_length, np.uint16)
  assert 1 - lengths.sum() / (2 * len(rows) * row_length) < 0.05


@given(st.lists(st.tuples(st.text("abc", max_size=9), st.text("abc", max_size=9)), max_size=11))
def test_what_is_left_out_is_counted(sentences):
  longest, counts = 7, PairCounts()
  kept = encoded(sentences, Letters(), longest, counts)

  full = [pair for pair in sentences if all(pair)]
  expected = [pair for pair in full if max(map(len, pair)) + 1 <= longest]
  assert kept == [tuple([*map(ord, side), EOS] for side in pair) for pair in expected]
  source_tokens = sum(len(source) + 1 for source, _ in expected)
  target_tokens = sum(len(target) + 1 for _, target in expected)
  longest_seen = max((len(side) + 1 for pair in full for side in pair), default=0)
  assert counts.write_to(PackingReport(), longest) == PackingReport(
    tokens=source_tokens + target_tokens,
    sides=2,
    found={"pairs": len(expected), "source tokens": source_tokens, "target tokens": target_tokens},
    left_out={
      f"pairs skipped, longer than 7 tokens (the longest has {longest_seen})": len(full) - len(expected),
      "pairs skipped, with an empty side": len(sentences) - len(full),
    },
  )


def test_a_side_of_spaces_is_an_empty_one():
  blank = ["", " ", "  \t ", "\u3000", "\xa0 \r"]
  pairs = [pair for side in blank for pair in ((side, "b"), ("a", side), (side, side), ("a ", " b"))]
  counts = PairCounts()
  kept = encoded(pairs, Letters(), ROW_LENGTH, counts)
  assert kept == len(blank) * [([ord("a"), ord(" "), EOS], [ord(" "), ord("b"), EOS])]
  assert (counts.pairs, counts.too_long, counts.empty) == (len(blank), 0, 3 * len(blank))


def test_share_of_padding():
  assert PackingReport(rows=5, tokens=70, sides=2).padding(10) == pytest.approx(0.3)
  assert PackingReport(rows=5, tokens=35).padding(10) == pytest.approx(0.3)
  assert PackingReport().padding(10) == 1


def test_a_report_in_words():
  report = PackingReport(5, 70, 2, {"pairs": 1234, "source tokens": 30}, {"pairs skipped": 0, "tokens cut off": 1000})
  assert report.examples == "1,234 pairs"
  assert report.describe(10) == "1,234 pairs\n  30 source tokens\n  5 rows of 10, 30.0% padding\n  1,000 tokens cut off"


def test_sentences_of_any_length_are_counted_and_take_bounded_memory(monkeypatch):
  """The windows of the encoder, which change no row, are smaller where sentences are long."""
  seen = []

  class Seen(Letters):
    def encode_batch(self, texts):
      seen.append(sum(map(len, texts)))
      return super().encode_batch(texts)

  pairs = [("a" * 10**6, "b"), ("c", "d" * ROW_LENGTH), ("e", "f"), ("", "g")] * 20
  monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", 64 * 1024)
  counts = PairCounts()
  assert encoded(pairs, Seen(), ROW_LENGTH, counts) == 20 * [([ord("e"), EOS], [ord("f"), EOS])]
  assert counts.write_to(PackingReport(), ROW_LENGTH).missing() == [
    f"40 pairs skipped, longer than {ROW_LENGTH} tokens (the longest has 65,537)",
    "20 pairs skipped, with an empty side",
  ]
  assert (1 << 16) <= max(seen) < 2 << 16


def test_windows_have_8192_pairs():
  """The number is part of the format: rows of another one would be other rows."""
  pairs = [(np.full(3, 5), np.full(3, 5))] * 8192 + [(np.full(2, 7), np.full(2, 7))] * 5
  whole = np.concatenate(list(packing.pack(pairs, 7, np.uint16)))
  first = np.concatenate(list(packing.pack(pairs[:8192], 7, np.uint16)))
  np.testing.assert_array_equal(whole[: len(first)], first)
  assert np.all(whole[: len(first), 0] != 7) and np.any(whole[len(first) :, 0] == 7)


def test_a_sentence_is_cut_only_where_it_is_too_long_anyway(monkeypatch):
  class Twos(Letters):
    longest_piece = 2

    def encode_batch(self, texts):
      return [[ord(letter) for letter in text[::2]] for text in texts]

  monkeypatch.setattr(packing, "_CHARACTERS", 1)
  expected = [([*map(ord, "ace"), EOS], [ord("g"), EOS])]
  assert encoded([("abcdef", "g")], Twos(), 4, PairCounts()) == expected
