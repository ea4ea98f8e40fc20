"""Classes of sentences: the logits against NumPy, the names that belong to them, and that they are learned."""

import dataclasses
import functools
import os
import random

import jax
import numpy as np
import pytest

from tests.data.letters import Letters
from tests.language import example
from tests.model.example import float64, random_params
from tests.on_devices import over, shares
from transformer_jax import registry
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.data import encoding
from transformer_jax.data.batches import Batch
from transformer_jax.data.labelled import sentence_rows
from transformer_jax.data.next_sentence import LABEL, TOKEN_TYPES, TOKENS
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.decoding import buckets
from transformer_jax.language.config import BERTClassifierConfig
from transformer_jax.model.special_tokens import CLS, SEP
from transformer_jax.paper import formulas
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.tasks import classification, classifier
from transformer_jax.tasks.classifier import Classifier
from transformer_jax.training.step import init_state, train_step

ROW_LENGTH, LABELS = 11, ("long", "short", "empty")
MODEL = BERTClassifierConfig(
  **dataclasses.asdict(example.options(example.BERT, vocab_size=270)), labels=",".join(LABELS)
)
CONFIG = Config(
  data=DataConfig(corpus=Corpus.TEXT, row_length=ROW_LENGTH),
  model=MODEL,
  train=TrainConfig(
    batch_tokens=24 * ROW_LENGTH, warmup_steps=20, peak_learning_rate=3e-3, label_smoothing=0.0, log_every=1
  ),
)


@pytest.fixture(scope="module")
def tokenizer():
  return SentencePieceTokenizer.learn(["a", "b", "abba"] * 3, 270)


def test_rows_and_their_labels(tokenizer, tmp_path, monkeypatch):
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path))
  (tmp_path / "labels.tsv").write_text("short\ta\tb\nempty\t\nlong\t" + "b" * 40 + "\n")
  found = classification.packed_rows(CONFIG, str(tmp_path / "labels.tsv"), tokenizer)
  rows = np.asarray(found.rows[:])
  assert rows[:, LABEL].tolist() == [[LABELS.index(name)] * ROW_LENGTH for name in ("short", "empty", "long")]
  for row, sentence in zip(rows, ("a\tb", "", "b" * 40), strict=True):
    whole = [CLS, *tokenizer.encode(sentence)[: ROW_LENGTH - 2], SEP]
    padding = [0] * (ROW_LENGTH - len(whole))
    assert row[TOKENS].tolist() == whole + padding
    assert row[TOKEN_TYPES].tolist() == [1] * len(whole) + padding
  assert list(found.report.left_out.values()) == [1]


def test_cached_rows_are_those_of_the_order_of_the_labels(tokenizer, tmp_path, monkeypatch):
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path))
  (tmp_path / "labels.tsv").write_text("short\ta\nlong\tbb\nshort\tab\n")
  for labels, numbers in (("long,short", [1, 0, 1]), ("short,long", [0, 1, 0])):
    config = dataclasses.replace(CONFIG, model=dataclasses.replace(MODEL, labels=labels))
    found = classification.packed_rows(config, str(tmp_path / "labels.tsv"), tokenizer)
    assert np.asarray(found.rows[:])[:, LABEL].tolist() == [[number] * ROW_LENGTH for number in numbers]


def test_sentences_that_are_encoded_a_few_at_a_time_are_all_there(tmp_path, monkeypatch):
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path))
  monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", 3 * 1024)
  sentences = ["a" * (i % 13) for i in range(17)]
  lines = [f"{LABELS[i % 3]}\t{sentence}\n" for i, sentence in enumerate(sentences)]
  (tmp_path / "labels.tsv").write_text("".join(lines))
  found = classification.packed_rows(CONFIG, str(tmp_path / "labels.tsv"), Letters())
  expected, cut = sentence_rows(Letters(), sentences, ROW_LENGTH)
  expected[:, LABEL] = np.arange(17)[:, None] % 3
  np.testing.assert_array_equal(found.rows, expected)
  assert found.report.tokens == np.sum(expected[:, TOKEN_TYPES] > 0)
  assert found.report.examples == "17 sentences"
  assert list(found.report.left_out.values()) == [sum(cut)] == [3]


def test_a_sentence_that_just_fits_is_not_cut():
  """A row of 7 tokens holds 5 between its two signs."""
  rows, cut = sentence_rows(Letters(), ["a" * size for size in (4, 5, 6)], 7)
  assert cut == [False, False, True] and np.sum(rows[:, TOKEN_TYPES], axis=1).tolist() == [6, 7, 7]


def test_a_pipe_is_refused_as_it_can_be_read_only_once(tokenizer, tmp_path):
  os.mkfifo(tmp_path / "pipe")
  with pytest.raises(InputError, match="pipe is a pipe, whose text can be read only once: write it to a file"):
    classification.packed_rows(CONFIG, str(tmp_path / "pipe"), tokenizer)


def test_logits_are_those_of_numpy(tokenizer):
  """The logits are those of a row with padding and of a full one; and the class that is named is the most probable."""
  params = random_params(CONFIG, classification.TASK)
  exact, sentences = float64(params), ["ab", "b" * 40, "", "ba", "aab b"]
  rows, _ = sentence_rows(tokenizer, sentences, ROW_LENGTH)
  model, expected = registry.module(MODEL), []
  forward = jax.jit(lambda row: classification.logits(model, params, row, None))
  for row in rows:
    tokens = row[TOKENS][row[TOKEN_TYPES] > 0]
    pooled = example.pooled(MODEL, exact["trunk"], tokens, np.zeros(len(tokens), int))
    expected.append(example.dense(exact["classifier"], pooled))
    np.testing.assert_allclose(forward(row), expected[-1], atol=1e-4)
  best = [LABELS[int(np.argmax(logits))] for logits in expected]
  found = list(Classifier(CONFIG, params, tokenizer).classify(sentences))
  assert [each.label for each in found] == best
  for each, logits in zip(found, expected, strict=True):
    assert each.probability == pytest.approx(np.exp(logits.max()) / np.exp(logits).sum(), rel=1e-3)
  assert [each.cut for each in found] == [False, True, False, False, False]
  broken = jax.tree.map(lambda x: x * np.nan, params)
  with pytest.raises(RunError, match="NaN"):
    list(Classifier(CONFIG, broken, tokenizer).classify(["a"]))


def test_the_loss_is_smoothed_as_the_config_says(tokenizer):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, label_smoothing=0.3))
  params, labels = random_params(config, classification.TASK), [2, 0, 1]
  rows, _ = sentence_rows(tokenizer, ["ab", "b" * 40, ""], ROW_LENGTH)
  rows[:, LABEL] = np.array(labels)[:, None]
  expected = 0.0
  for row, label in zip(rows, labels, strict=True):
    tokens = row[TOKENS][row[TOKEN_TYPES] > 0]
    pooled = example.pooled(MODEL, float64(params["trunk"]), tokens, np.zeros(len(tokens), int))
    expected += formulas.cross_entropy(example.dense(float64(params["classifier"]), pooled)[None], [label], 0.3)
  sums = jax.jit(lambda rows: classification.batch_sums(config, params, rows, None))(rows)
  assert float(sums.loss) == pytest.approx(expected, rel=1e-5)


def test_a_sentence_is_computed_with_others_of_its_length(monkeypatch):
  """A class depends on the sentence alone, and a short one does not take the time of a whole row."""
  config = dataclasses.replace(
    CONFIG, data=dataclasses.replace(CONFIG.data, row_length=37), model=dataclasses.replace(MODEL, max_positions=37)
  )
  classify = Classifier(config, random_params(config, classification.TASK), Letters()).classify
  sentences = ["ab" * size for size in (0, 17, 1, 9, 40, 3, 11)]
  shapes, compute = [], classifier._probabilities
  monkeypatch.setattr(
    classifier, "_probabilities", lambda model, params, rows: shapes.append(rows.shape) or compute(model, params, rows)
  )
  together = list(classify(sentences))
  assert sorted({length for _, _, length in shapes}) == [16, 32, 37]
  assert all(rows == buckets.rows_at_once(length, 0) for rows, _, length in shapes)
  assert together == [each for sentence in sentences for each in classify([sentence])]
  assert len({each.probability for each in together}) == len(sentences)


def test_a_sentence_does_not_wait_for_others():
  read = []

  def lines():
    for sentence in ("a", "ab"):
      read.append(sentence)
      yield sentence

  found = Classifier(CONFIG, random_params(CONFIG, classification.TASK), Letters())
  next(found.classify(lines(), lambda seconds: False))
  assert read == ["a"]


@pytest.mark.long
def test_classes_that_can_be_told_apart_are_learned(tokenizer):
  generator = random.Random(0)
  sentences = ["".join(generator.choices("ab", k=generator.choice([0, 1, 2, 7, 8]))) for _ in range(24)]
  names = ["empty" if not text else "short" if len(text) < 3 else "long" for text in sentences]
  rows, _ = sentence_rows(tokenizer, sentences, ROW_LENGTH)
  rows[:, LABEL] = np.array([LABELS.index(name) for name in names])[:, None]
  state = init_state(CONFIG, classification.TASK)
  batch = shares(Batch(rows, np.arange(len(rows), dtype=np.int32)), 1)
  step = over(1, functools.partial(train_step, CONFIG, classification.TASK))
  for _ in range(100):
    state, _ = step(state, batch)
  found = Classifier(CONFIG, jax.device_get(state.params), tokenizer).classify(sentences)
  assert [each.label for each in found] == names


@pytest.mark.long
def test_empty_rows_count_for_nothing(tokenizer):
  """The last batch of a text is filled up with them."""
  params = random_params(CONFIG, classification.TASK)
  rows, _ = sentence_rows(tokenizer, ["ab", "", "b" * 40], ROW_LENGTH)
  rows[:, LABEL] = np.array([2, 0, 1])[:, None]
  filled = np.concatenate([rows, np.zeros((4, *rows.shape[1:]), rows.dtype)])
  sums = jax.jit(lambda rows: classification.batch_sums(CONFIG, params, rows, None))
  assert float(sums(filled).tokens) == 3
  assert float(sums(filled).loss) == pytest.approx(float(sums(rows).loss), rel=1e-6)
  assert float(sums(filled).correct) == float(sums(rows).correct)


@pytest.mark.parametrize(
  ("which", "message"),
  [
    ("empty.tsv", "empty.tsv is empty: expected lines LABEL<TAB>SENTENCE"),
    ("a.tsv;b.tsv", "a classifier reads one file"),
    (" ", "have an empty name"),
  ],
)
def test_what_is_no_file_of_sentences_is_refused(tokenizer, tmp_path, monkeypatch, which, message):
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path))
  monkeypatch.chdir(tmp_path)
  (tmp_path / "empty.tsv").touch()
  with pytest.raises(InputError, match=message):
    classification.packed_rows(CONFIG, which, tokenizer)
