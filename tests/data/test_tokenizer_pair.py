"""Two vocabularies: learned, chosen, written and read again, packed."""

import dataclasses

import pytest
from etils import epath

from tests.example_run import write_pairs
from transformer_jax.config import Corpus, DataConfig, PieceKind
from transformer_jax.data import pipeline, tokenizers
from transformer_jax.data.packing import SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

PAIRS = [("abab aba", "xyxy xyz xyx"), ("ba ab", "zyx xy"), ("abba bab", "xyz")] * 3
SIZES = 265, 269


@pytest.fixture
def data(tmp_path):
  write_pairs(tmp_path / "text", PAIRS)
  return DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "text"), row_length=17, cache_dir=str(tmp_path / "cache"))


@pytest.fixture
def pair(data):
  found = pipeline.learn_tokenizer(data, *SIZES)
  assert isinstance(found, TokenizerPair)
  return found


def test_each_side_is_learned_from_its_own_text(pair):
  for found, side in ((pair.source, 0), (pair.target, 1)):
    alone = SentencePieceTokenizer.learn([sentences[side] for sentences in PAIRS], SIZES[side])
    assert found.to_bytes() == alone.to_bytes()
    other = PAIRS[0][1 - side].split()[0]
    assert max(found.encode(other)[1:]) < 260 < max(found.encode(PAIRS[0][side]))  # 4 to 259 are bytes
  assert (pair.vocab_sizes, pair.vocab_size) == (SIZES, SIZES[1])
  assert pair.decode(pair.target.encode("xyz a")) == "xyz a"
  assert pair.fingerprint() != TokenizerPair(pair.target, pair.source).fingerprint()


@pytest.mark.parametrize("kind", PieceKind)
def test_both_sides_are_of_the_kind_of_the_config(data, kind):
  found = pipeline.learn_tokenizer(dataclasses.replace(data, pieces=kind), *SIZES)
  for side, tokenizer in enumerate((found.source, found.target)):
    alone = SentencePieceTokenizer.learn([pair[side] for pair in PAIRS], SIZES[side], kind=kind.value)
    assert tokenizer.to_bytes() == alone.to_bytes()


def test_the_tag_of_a_language_is_one_piece_of_a_source(data):
  found = pipeline.learn_tokenizer(dataclasses.replace(data, tags=True), *SIZES)
  assert "<2de>" in {piece.strip() for piece in found.source.pieces(range(SIZES[0]))}
  assert "<2de>" not in {piece.strip() for piece in found.target.pieces(range(SIZES[1]))}


def test_the_files_of_a_run_folder(pair, tmp_path):
  for name, content in pair.files().items():
    (tmp_path / name).write_bytes(content)
  read = tokenizers.load(epath.Path(tmp_path), lambda name, most: (tmp_path / name).read_bytes())
  for found in (read, tokenizers.from_bytes(tokenizers.to_bytes(pair))):
    assert found.fingerprint() == pair.fingerprint() and found.vocab_sizes == SIZES
    assert found.source.encode("abba x") == pair.source.encode("abba x")
  (tmp_path / "target.model").unlink()
  with pytest.raises(InputError, match=f"cannot read the tokenizers in {tmp_path}"):
    tokenizers.load(epath.Path(tmp_path), lambda name, most: (tmp_path / name).read_bytes())


def test_chosen_files(pair, data, tmp_path):
  paths = [tmp_path / name for name in ("a", "b")]
  for path, side in zip(paths, (pair.source, pair.target), strict=True):
    path.write_bytes(side.to_bytes())
  chosen = ",".join(map(str, paths))
  data = dataclasses.replace(data, tokenizer=chosen, train="none")
  assert pipeline.learn_tokenizer(data, *SIZES).fingerprint() == pair.fingerprint()
  for path, sizes, message in (
    (chosen, (263, 269), "config.model.source_vocab_size is 263, but .*,.* has 265 tokens for the source: set "),
    (chosen, (265, 263), r"config.model.vocab_size is 263, but .* has 269 tokens: set config.model.vocab_size=269"),
    (str(paths[0]), SIZES, "must be two files, SOURCE,TARGET, with config.model.source_vocab_size"),
    (chosen, SIZES[1:], "; two files, SOURCE,TARGET, need config.model.source_vocab_size"),
  ):
    with pytest.raises(InputError, match=message):
      tokenizers.chosen(path, *sizes)
  with pytest.raises(InputError, match=f"{tmp_path}/none does not exist: check the path"):
    tokenizers.chosen(str(tmp_path / "none"), SIZES[1])
  with_comma = paths[1].rename(tmp_path / "a,b")
  assert tokenizers.chosen(str(with_comma), SIZES[1]).fingerprint() == pair.target.fingerprint()
  with pytest.raises(InputError, match=r"is 7, but it has one vocabulary for both languages: set .*_size=None"):
    tokenizers.require_sizes(pair.target, (7, SIZES[1]), "it")
  with pytest.raises(InputError, match="source_vocab_size is None, but it has 265 tokens for the source"):
    tokenizers.require_sizes(pair, SIZES[1:], "it")


def test_a_size_that_the_text_does_not_have_is_named_by_its_key(data):
  with pytest.raises(InputError, match=r"config.model.source_vocab_size is 7000, but .* set config.model.source_vocab"):
    pipeline.learn_tokenizer(data, 7000, 269)
  with pytest.raises(InputError, match=r"config.model.vocab_size is 7000, but .* set config.model.vocab_size to"):
    pipeline.learn_tokenizer(data, 265, 7000)


def test_packed_rows_have_the_tokens_of_each_side(pair, data):
  packed = pipeline.packed_rows(data, data.train, pair)
  found = set()
  for row in packed.rows:
    for segment in range(1, row[SOURCE_SEGMENTS].max() + 1):
      tokens = [row[side][row[side + 1] == segment].tolist() for side in (SOURCE, TARGET)]
      assert (row[TARGET_SEGMENTS] == segment).any() and all(each.pop() == EOS for each in tokens)
      found.add((pair.source.decode(tokens[0]), pair.target.decode(tokens[1])))
  assert found == set(PAIRS)
  swapped = pipeline.packed_rows(data, data.train, TokenizerPair(pair.target, pair.source))
  assert swapped.fingerprint != packed.fingerprint
