"""The rows of plain text and of classified sentences depend on all that they should, also from a shared cache."""

import numpy as np
import pytest

from tests.data.letters import Letters
from transformer_jax.config import Config, Corpus, DataConfig, Document, PieceKind
from transformer_jax.data import blocks, next_sentence, pipeline
from transformer_jax.data.documents import open_text
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, GPTConfig
from transformer_jax.model.special_tokens import BOS, EOS
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks import classification
from transformer_jax.training.task import task_of

CLASSIFIER = BERTClassifierConfig(labels="a,b", vocab_size=268, max_positions=32)


def write(path, words, *, labels):
  """Texts of two words each, with a label each or in paragraphs of three lines, and a vocabulary of them."""
  lines = [f"{first} {second}" for first in words for second in words]
  paragraphs = ["\n".join(lines[start : start + 3]) for start in range(0, len(lines), 3)]
  labelled = "".join(f"{'ab'[number % 2]}\t{line}\n" for number, line in enumerate(lines))
  path.write_text(labelled if labels else "\n\n".join(paragraphs) + "\n")
  return str(path), SentencePieceTokenizer.learn(lines, 275)


@pytest.mark.parametrize(
  ("pack", "model"),
  [
    (blocks.packed_rows, GPTConfig()),
    (next_sentence.packed_rows, BERTConfig()),
    (classification.packed_rows, CLASSIFIER),
  ],
)
def test_rows_from_a_shared_cache_are_those_of_an_empty_one(tmp_path, pack, model):
  labels = model is CLASSIFIER
  one, first = write(tmp_path / "one", ["to", "be", "or", "not"], labels=labels)
  two, second = write(tmp_path / "two", ["that", "is", "the", "rub"], labels=labels)
  variants = [
    (one, first, 32, Document.FILE),
    (two, first, 32, Document.FILE),
    (one, second, 32, Document.FILE),
    (one, first, 16, Document.FILE),
  ]
  variants += [] if labels else [(one, first, 32, Document.PARAGRAPH)]

  def rows(cache, path, tokenizer, length, document):
    data = DataConfig(
      corpus=Corpus.TEXT, train=path, row_length=length, document=document, cache_dir=str(tmp_path / cache)
    )
    return np.array(pack(Config(data=data, model=model), path, tokenizer).rows)

  found = [rows("shared", *variant) for variant in variants]
  for number, (mine, variant) in enumerate(zip(found, variants, strict=True)):
    np.testing.assert_array_equal(mine, rows(f"own{number}", *variant))
  assert not any(np.array_equal(found[0], other) for other in found[1:])


def test_cached_blocks_are_those_of_the_end_of_a_text(tmp_path):
  path, tokenizer = write(tmp_path / "text", ["to", "be", "or", "not"], labels=False)
  data = DataConfig(
    corpus=Corpus.TEXT, train=path, row_length=32, document=Document.PARAGRAPH, cache_dir=str(tmp_path / "cache")
  )
  for end in (EOS, BOS):
    config = Config(data=data, model=GPTConfig(begin=end, end=end))
    assert np.sum(np.array(blocks.packed_rows(config, path, tokenizer).rows)[:, blocks.TOKENS] == end) == 6


@pytest.mark.parametrize(("document", "count"), [(Document.FILE, 1), (Document.PARAGRAPH, 3), (Document.LINE, 4)])
def test_documents_are_those_of_the_config(tmp_path, document, count):
  (tmp_path / "text").write_text("To be, or\nnot to be:\n\nthat is\n\n\nthe question.\n")
  text = open_text(DataConfig(corpus=Corpus.TEXT, document=document), str(tmp_path / "text"))
  assert len([[*lines] for lines in text]) == count


@pytest.mark.parametrize("kind", PieceKind)
@pytest.mark.parametrize("model", [GPTConfig(vocab_size=268), CLASSIFIER])
def test_the_vocabulary_is_of_the_kind_of_the_config(tmp_path, model, kind):
  """SentencePiece gives merges the ranks 0, -1, -2 and so on as scores, and pieces of a unigram model log P."""
  path, _ = write(tmp_path / "text", ["to", "be", "or", "not"], labels=model is CLASSIFIER)
  config = Config(data=DataConfig(corpus=Corpus.TEXT, train=path, row_length=32, pieces=kind), model=model)
  tokenizer = task_of(model).learn_tokenizer(config)
  processor = tokenizer._processor
  scores = [processor.get_score(i) for i in range(tokenizer.vocab_size) if not processor.is_byte(i)][4:]
  assert all(score == int(score) for score in scores) == (kind is PieceKind.BPE)


@pytest.mark.parametrize("task", ["pairs of sentences", "pairs of texts"])
def test_rows_are_of_the_text_that_is_asked_for(tmp_path, task):
  for name, text in {"train": "abc\nab\n", "valid": "xyz\nyz\n"}.items():
    for ending in ("", ".en", ".de"):
      (tmp_path / f"{name}{ending}").write_text(text)
  data = DataConfig(corpus=Corpus.TEXT, train=f"{tmp_path}/train", row_length=13, cache_dir=f"{tmp_path}/cache")
  if task == "pairs of sentences":
    found = pipeline.packed_rows(data, f"{tmp_path}/valid", Letters())
  else:
    config = Config(data=data, model=BERTConfig(vocab_size=128))
    found = next_sentence.packed_rows(config, f"{tmp_path}/valid", Letters())
  assert {chr(token) for token in np.unique(found.rows[:, 0]) if token > 32} == set("xyz")


class Wide(Letters):
  """With numbers that two bytes do not hold, as multilingual BERT has them."""

  def __init__(self):
    super().__init__("wide", 1 << 17)

  def encode_batch(self, texts):
    return [[(1 << 16) + token for token in tokens] for tokens in super().encode_batch(texts)]


@pytest.mark.parametrize(
  ("pack", "model"),
  [
    (blocks.packed_rows, GPTConfig()),
    (next_sentence.packed_rows, BERTConfig()),
    (classification.packed_rows, CLASSIFIER),
  ],
)
def test_rows_hold_the_numbers_of_a_large_vocabulary(tmp_path, pack, model):
  path, _ = write(tmp_path / "text", ["to", "be", "or", "not"], labels=model is CLASSIFIER)
  data = DataConfig(corpus=Corpus.TEXT, train=path, row_length=32, cache_dir=str(tmp_path / "cache"))
  assert np.max(np.array(pack(Config(data=data, model=model), path, Wide()).rows)[:, 0]) == (1 << 16) + ord("t")


def test_rows_of_pairs_hold_the_numbers_of_both_sides():
  for sides in ((Wide(), Letters()), (Letters(), Wide())):
    assert TokenizerPair(*sides).row_type is np.uint32


def test_a_text_of_blank_lines_is_refused(tmp_path):
  (tmp_path / "text").write_text("\n \n")
  data = DataConfig(corpus=Corpus.TEXT, train=f"{tmp_path}/text", row_length=32, cache_dir=f"{tmp_path}/cache")
  with pytest.raises(InputError, match="text is empty: there is nothing to read"):
    blocks.packed_rows(Config(data=data, model=GPTConfig()), data.train, Letters())
