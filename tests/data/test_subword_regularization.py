"""Random pieces: their probabilities by enumeration, SentencePiece's own pieces without randomness, and their keys."""

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings

from tests.data.test_lists_of_pieces import listed
from tests.example_run import write_pairs
from tests.nasty import LINES
from transformer_jax.config import Corpus, DataConfig, PieceKind
from transformer_jax.data import corpus, numbers, packing, pipeline
from transformer_jax.data.packing import TARGET_SEGMENTS
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.data.sentencepiece_pieces import Pieces, pieces_of
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.subword_regularization import PieceSampler
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError, RunError

WORDS = [
  "riding",
  "a",
  "horse",
  "rides",
  "reitet",
  "ein",
  "Pferd",
  "über",
  "grün",
  "<s>",
  "<0x41>",
  "말",
  "12",
  "ridden",
]
SENTENCES = [" ".join(WORDS[(i * j) % len(WORDS)] for j in range(1, 11)) for i in range(1, 60)]
TEXT = [side for pair in numbers.NumberPairs("validation", "en", "de") for side in pair][:400]


@pytest.fixture(scope="module")
def bpe():
  return SentencePieceTokenizer.learn([*SENTENCES, *TEXT], 353)


@pytest.fixture(scope="module")
def unigram():
  return SentencePieceTokenizer.learn([*SENTENCES, *TEXT], 420, kind="unigram")


def dropout(tokenizer: Tokenizer, p: float, seed: int = 0) -> PieceSampler:
  return PieceSampler(tokenizer, DataConfig(bpe_dropout=p), seed)


def regularised(tokenizer: Tokenizer, alpha: float, seed: int = 0) -> PieceSampler:
  return PieceSampler(tokenizer, DataConfig(unigram_alpha=alpha), seed)


@settings(max_examples=60)
@given(LINES)
@example("")
@example(" \u2581\u2581 a  b")
@example("riding" * 30)
def test_without_dropout_the_pieces_are_those_of_sentencepiece(bpe, text):
  assert dropout(bpe, 0.0).sample(text, 0, 0, 0) == bpe.encode(text)


def test_without_dropout_real_text_has_the_pieces_of_sentencepiece(bpe):
  sampler = dropout(bpe, 0.0)
  assert [sampler.sample(text, 3, 7, 1) for text in TEXT] == bpe.encode_batch(TEXT)


def test_the_most_likely_unigram_pieces_are_those_of_sentencepiece(unigram):
  sampler = regularised(unigram, 1e4)
  assert [sampler.sample(text, 3, 7, 1) for text in TEXT] == unigram.encode_batch(TEXT)


@settings(max_examples=50)
@given(LINES)
@example(" \u2581\u2581 a  b")
def test_decoding_gives_back_every_line(bpe, unigram, text):
  for sampler, tokenizer in ((dropout(bpe, 0.5), bpe), (regularised(unigram, 0.1), unigram)):
    assert tokenizer.decode(sampler.sample(text, 1, 2, 0)) == text


def splits_by_algorithm_1(pieces: Pieces, split: tuple[str, ...], p: float) -> Counter:
  """The probability of each final split: every set of merges that may be dropped, in every step."""
  merges = [i for i in range(len(split) - 1) if split[i] + split[i + 1] in pieces.scores]
  found = Counter()
  for dropped in itertools.product([False, True], repeat=len(merges)):
    probability = math.prod(p if drop else 1 - p for drop in dropped)
    left = [i for i, drop in zip(merges, dropped, strict=True) if not drop]
    if not left:
      found[split] += probability
      continue
    i = max(left, key=lambda i: (pieces.scores[split[i] + split[i + 1]], -i))
    after = (*split[:i], split[i] + split[i + 1], *split[i + 2 :])
    for end, share in splits_by_algorithm_1(pieces, after, p).items():
      found[end] += probability * share
  return found


def splits_of_unigrams(pieces: Pieces, word: str, alpha: float) -> Counter:
  """The probability of each split by eq. 2 of Kudo 2018 over all of them."""
  weights = Counter()
  for cuts in itertools.product([False, True], repeat=len(word) - 1):
    ends = [i + 1 for i, cut in enumerate(cuts) if cut]
    split = tuple(word[a:b] for a, b in zip([0, *ends], [*ends, len(word)], strict=True))
    if all(piece in pieces.scores for piece in split):
      weights[split] = math.exp(alpha * sum(pieces.scores[piece] for piece in split))
  return Counter({split: weight / weights.total() for split, weight in weights.items()})


def shares(sampler: PieceSampler, word: str, draws: int) -> Counter:
  return Counter(tuple(sampler.sample(word, 5, pair, 0)) for pair in range(draws))


DRAWS = 4000


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_bpe_dropout_has_the_probabilities_of_algorithm_1(bpe, p):
  pieces = pieces_of(bpe)
  expected = splits_by_algorithm_1(pieces, tuple("\u2581rides"), p)
  assert len(expected) > 4 and math.isclose(expected.total(), 1)
  assert_drawn_from(expected, pieces, shares(dropout(bpe, p), "rides", DRAWS))


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
def test_unigram_sampling_has_the_probabilities_of_kudo(unigram, alpha):
  pieces = pieces_of(unigram)
  expected = splits_of_unigrams(pieces, "\u2581neunzehn", alpha)
  assert len(expected) > 4
  assert_drawn_from(expected, pieces, shares(regularised(unigram, alpha), "neunzehn", DRAWS))


def assert_drawn_from(expected: Counter, pieces: Pieces, seen: Counter) -> None:
  """Each share is within five standard deviations, and nothing else is drawn."""
  probabilities = {tuple(pieces.numbers(split)): share for split, share in expected.items()}
  assert seen.keys() <= probabilities.keys()
  for split, share in probabilities.items():
    assert abs(seen[split] - DRAWS * share) <= 5 * math.sqrt(DRAWS * share * (1 - share)) + 1e-6


def test_a_character_that_is_no_piece_has_sentencepiece_s_score(unigram):
  pieces = pieces_of(unigram)
  assert pieces.unknown_score == min(pieces.scores.values()) - 10
  assert regularised(unigram, 1.0).sample("\U0010ffff", 0, 0, 0) == unigram.encode("\U0010ffff")


def test_pieces_depend_on_seed_epoch_pair_and_side_alone(bpe):
  text = " ".join(WORDS)
  first = dropout(bpe, 0.3).sample(text, 2, 11, 1)
  busy = dropout(bpe, 0.3)
  for number, other in enumerate(SENTENCES[:20]):
    busy.sample(other, 2, number, 0)
  busy._sampling.kept.clear()  # what is kept changes nothing
  assert busy.sample(text, 2, 11, 1) == first
  others = [(0, 2, 11, 0), (0, 2, 12, 1), (0, 3, 11, 1), (1, 2, 11, 1)]
  assert all(dropout(bpe, 0.3, seed).sample(text, *key) != first for seed, *key in others)


def test_a_user_defined_piece_stays_whole(tmp_path):
  import sentencepiece

  def learn(prefix: str, **options) -> Tokenizer:
    (tmp_path / "text").write_text("\n".join(" " + text for text in [*SENTENCES, *TEXT]))
    sentencepiece.SentencePieceTrainer.train(
      **{"input": str(tmp_path / "text"), "model_prefix": str(tmp_path / prefix), "vocab_size": 353},
      **{"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False},
      **{"byte_fallback": True, "character_coverage": 1.0, "minloglevel": 3, "model_type": "bpe"},
      **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, **options},
    )
    return SentencePieceTokenizer.load(tmp_path / f"{prefix}.model")

  tokenizer = learn("tags", user_defined_symbols=["<2", "<2de>", "<2d>"])
  text = "<2de> riding a<2d>horse"
  assert dropout(tokenizer, 0.0).sample(text, 0, 0, 0) == tokenizer.encode(text)
  tag = tokenizer.encode("<2de>")[-1]
  assert all(tag in dropout(tokenizer, 0.9).sample(text, 0, pair, 0) for pair in range(20))
  across = learn("across", split_by_whitespace=False)
  with pytest.raises(InputError, match="pieces of several words"):
    dropout(across, 0.1)


def test_another_kind_of_vocabulary_is_refused(bpe, unigram):
  assert pieces_of(bpe).kind is PieceKind.BPE and pieces_of(unigram).kind is PieceKind.UNIGRAM
  with pytest.raises(InputError, match=r"config\.data\.bpe_dropout needs .* set config\.data\.unigram_alpha"):
    dropout(unigram, 0.1)
  with pytest.raises(InputError, match=r"config\.data\.unigram_alpha needs .* set config\.data\.bpe_dropout"):
    regularised(bpe, 0.1)


def test_pairs_that_do_not_fit_with_random_pieces_have_those_of_the_tokenizer(bpe):
  pairs = [("riding a horse", "reitet ein Pferd"), ("", "a"), ("riding " * 40, "a"), ("rides", "rides")]
  longest = max(len(bpe.encode(side)) for side in pairs[0]) + 1
  fixed = [tuple(map(list, pair)) for pair in packing.encode_pairs(pairs, bpe, longest, PairCounts())]
  sampler = dropout(bpe, 0.99)
  sample = functools.partial(_epoch_of, sampler)
  found = list(packing.sample_pairs(pairs, bpe, longest, sample))
  assert len(found) == len(fixed) == 2 and found[0] == fixed[0]
  assert found[1][0] == [*sampler.sample("rides", 4, 3, 0), EOS] and found[1] != fixed[1]


@pytest.mark.parametrize("count", [1, 11, 12, 13])
def test_random_pieces_are_used_if_they_fit_with_their_end(bpe, count):
  """And the pair is there in any case, as the pieces of the tokenizer fit."""
  longest, fixed = 13, [*bpe.encode("rides"), EOS]
  sampled = {"rides": [7] * count, "a": [9]}
  [pair] = packing.sample_pairs([("rides", "a")], bpe, longest, lambda text, *_: sampled[text])
  assert len(fixed) < longest and pair == ([*sampled["rides"], EOS] if count < longest else fixed, [9, EOS])


@pytest.mark.parametrize("two", [False, True], ids=["one vocabulary", "two vocabularies"])
def test_the_rows_of_an_epoch_have_the_pieces_of_their_seed_epoch_pair_and_side(bpe, two, tmp_path):
  """Also behind a pair that is left out; both others are in one row."""
  pairs = [("riding a horse", "reitet ein Pferd"), ("", "a"), ("rides", "reitet")]
  write_pairs(tmp_path / "text", pairs)
  other = SentencePieceTokenizer.learn(SENTENCES, 331)
  tokenizer = TokenizerPair(bpe, other) if two else bpe
  data = DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "text"), row_length=61, bpe_dropout=0.4)
  pack, found = pipeline.packing_ahead(data, tokenizer, 7), []
  for epoch in (0, 1, 5):
    rows = np.concatenate([*pack(epoch)])
    tokens = [row[segments > 0].tolist() for row, segments in zip(*rows.reshape(-1, 2, 61).swapaxes(0, 1), strict=True)]
    expected = [
      [
        piece
        for number in (0, 2)
        for piece in [*dropout(vocabulary, 0.4, 7).sample(pairs[number][side], epoch, number, side), EOS]
      ]
      for side, vocabulary in enumerate((bpe, other if two else bpe))
    ]
    assert tokens == expected
    found.append(str(tokens))
  assert len(set(found)) == 3


def _epoch_of(sampler: PieceSampler, text: str, pair: int, side: int) -> list[int]:
  return sampler.sample(text, 4, pair, side)


def test_a_memory_that_is_full_is_emptied_and_changes_nothing(bpe, unigram):
  for sampler, other in (
    (dropout(bpe, 0.3), dropout(bpe, 0.3)),
    (regularised(unigram, 0.3), regularised(unigram, 0.3)),
  ):
    sampler._most_kept = 3
    for pair, text in enumerate(TEXT * 2):
      assert sampler.sample(text, 1, pair, 0) == other.sample(text, 1, pair, 0)
    assert len(sampler._sampling.kept) < len(other._sampling.kept)


def test_random_pieces_leave_out_what_is_longer_than_the_config_allows(bpe, tmp_path):
  """The second sentence has at least 97 pieces and at most 582 characters, so that a row would hold it."""
  pairs = [("riding a horse", "reitet ein Pferd"), ("rides " * 97, "a")]
  write_pairs(tmp_path / "text", pairs)
  train = str(tmp_path / "text")
  data = DataConfig(corpus=Corpus.TEXT, train=train, row_length=601, max_length=61, bpe_dropout=0.01)
  rows = np.concatenate([*pipeline.packing_ahead(data, bpe, 7)(0)])
  assert len(rows) == 1 and rows[:, TARGET_SEGMENTS].max() == 1


@pytest.mark.long
def test_the_words_of_a_sentence_are_drawn_independently(bpe):
  """Two equal words have equal pieces as often as two draws have."""
  shares = splits_by_algorithm_1(pieces_of(bpe), tuple("\u2581rides"), 0.6).values()
  expected, sampler, equal = sum(share**2 for share in shares), dropout(bpe, 0.6), 0
  for pair in range(DRAWS):
    found = sampler.sample("rides rides", 5, pair, 0)
    equal += found[: len(found) // 2] == found[len(found) // 2 :]
  assert abs(equal - DRAWS * expected) <= 5 * math.sqrt(DRAWS * expected * (1 - expected))


def test_a_vocabulary_of_another_toolkit_is_refused():
  with pytest.raises(InputError, match="cannot be sampled from, as another toolkit made it: leave out"):
    regularised(listed(), 0.1)


def test_an_epoch_without_pairs_ends_the_run(bpe, monkeypatch):
  """Its rows would be waited for without end."""
  monkeypatch.setitem(corpus._REGISTERED, "once", lambda data, which: [])
  data = DataConfig(corpus=Corpus.REGISTERED, dataset="once", bpe_dropout=0.4)
  with pytest.raises(RunError, match="no sentence pair is left in epoch 4: was the text changed"):
    [*pipeline.packing_ahead(data, bpe, 7)(3)]
