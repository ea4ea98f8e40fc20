"""benchmarks/ibm_model_1.py: the table against expectation-maximisation in NumPy, and what becomes of each word."""

import json
import sys

import numpy as np
import pytest

from tests.example_run import write_pairs
from transformer_jax.evaluation.scores import score

pytest.importorskip("nltk", reason="the extra `benchmarks` installs it")
PAIRS = [
  ("the house is small", "das haus ist klein"),
  ("the house is big", "das haus ist ja groß"),
  ("the book is small", "das buch ist klein ja"),
  ("", "nichts"),
  ("the book", "das buch"),
  ("a book", "ein buch"),
  ("a book a book a house the", "ein buch ein buch ein haus das das"),
]


@pytest.fixture
def ibm(program):
  return program("ibm_model_1")


def table_by_hand(pairs: list[tuple[str, str]], iterations: int) -> tuple[np.ndarray, list[str], list[str]]:
  """t(f | e), `[target, source]`; source word 0 is NULL."""
  split = [(["", *source.split()], target.split()) for source, target in pairs]
  sources, targets = (sorted({word for pair in split for word in pair[side]}) for side in (0, 1))
  t = np.full((len(targets), len(sources)), 1 / len(targets))
  for _ in range(iterations):
    counts = np.zeros_like(t)
    for source, target in split:
      columns = [sources.index(word) for word in source]
      for row in map(targets.index, target):
        np.add.at(counts[row], columns, t[row, columns] / t[row, columns].sum())
    t = counts / counts.sum(axis=0)
  return t, sources, targets


@pytest.mark.parametrize("iterations", [1, 5])
def test_each_word_becomes_its_most_probable_one(ibm, iterations):
  t, sources, targets = table_by_hand(PAIRS, iterations)
  best, entries = ibm.trained(PAIRS, iterations)
  expected = {source: targets[i] for source, i in zip(sources, t.argmax(axis=0), strict=True) if source}
  assert best == expected
  assert ibm.Model(ibm.sentences(PAIRS), iterations).translation_table["ein"]["a"] == pytest.approx(
    t[targets.index("ein"), sources.index("a")]
  )
  assert entries == np.count_nonzero(t)


def test_the_order_stays_and_an_unknown_word_is_copied(ibm):
  best, _ = ibm.trained(PAIRS, 5)
  assert ibm.translate(best, "small is a green book") == "klein ist ein green buch"
  assert ibm.translate(best, "") == ""
  assert ibm.unknown(best, ["small is a green book", ""]) == {"all": 5, "unknown": 1}


def test_equally_probable_words_are_chosen_by_the_alphabet(ibm):
  assert ibm.most_probable({"b": {"x": 0.5, None: 1.0}, "a": {"x": 0.5}, "c": {"x": 0.25, "y": 1e-12}}) == {
    "x": "a",
    "y": "c",
  }


def test_the_program_scores_what_it_writes(ibm, tmp_path, monkeypatch, capsys):
  write_pairs(tmp_path / "text", PAIRS)
  files = {"train": tmp_path / "text", "source": tmp_path / "text.en", "reference": tmp_path / "text.de"}
  flags = [f"--{name}={file}" for name, file in files.items()]
  monkeypatch.setattr(sys, "argv", ["ibm_model_1.py", *flags, f"--output={tmp_path / 'out'}"])
  ibm.main()
  written = (tmp_path / "out" / "ibm_model_1.de").read_text().split("\n")[:-1]
  found = json.loads((tmp_path / "out" / "ibm_model_1.json").read_text())
  expected = score(written, [target for _, target in PAIRS], tokenize="none", lowercase=True)
  assert found["test"]["scores"]["bleu"]["score"] == expected.bleu
  assert found["by_length"][0]["sentences"] == len(PAIRS)
  assert "0 of 23 words are unknown" in capsys.readouterr().out
