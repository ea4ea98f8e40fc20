"""The baseline and the choice of sentences of benchmarks/bert.py."""

import sys
from fractions import Fraction
from types import SimpleNamespace

import pytest

TAUGHT = {"sea": ["a ship and a Wave", "the wave"], "land": ["a tree", "the hill and the tree"]}
ASKED = {"sea": ["Wave hill wave", "a lamp"], "land": ["hill ship tree", "the ship the ship"]}


@pytest.fixture
def bert(program):
  return program("bert")


def test_naive_bayes_is_that_of_exact_fractions(bert):
  def probability(name, sentence):
    seen = " ".join(TAUGHT[name]).lower().split()
    kinds = {word for sentences in TAUGHT.values() for word in " ".join(sentences).lower().split()}
    product = Fraction(1)
    for word in sentence.lower().split():
      product *= Fraction(seen.count(word) + 1, len(seen) + len(kinds))
    return product

  right = [
    probability(name, sentence) > max(probability(other, sentence) for other in TAUGHT if other != name)
    for name, sentences in ASKED.items()
    for sentence in sentences
  ]
  assert True in right and False in right
  assert bert.naive_bayes(TAUGHT, ASKED) == sum(right) / len(right)


def test_both_starts_have_the_sizes_that_the_flags_give(bert, tmp_path, monkeypatch):
  given, flags = {}, ["--text", "a", "--classes", "sea=x", "land=y", "--runs", str(tmp_path)]
  monkeypatch.setattr(bert, "chosen", lambda *arguments: (TAUGHT, ASKED))
  monkeypatch.setattr(bert, "split", lambda *arguments: {"train": "a", "test": "b"})
  monkeypatch.setattr(bert, "train", lambda *arguments: None)
  monkeypatch.setattr(
    bert, "fine_tuned", lambda run, seed, classes, files, flags: given.setdefault(run.name, flags) and 0.5
  )
  run = SimpleNamespace(metrics=[{"split": "train", "step": 1, "seconds": 1.0}])
  monkeypatch.setattr(bert.runs, "open", lambda workdir: run)
  monkeypatch.setattr(bert.report, "finish", lambda *arguments, **options: None)
  monkeypatch.setattr(sys, "argv", ["bert.py", *flags, "--config.model.d_model=22", "--config.train.steps=3"])
  bert.main()
  from_random = [flags for name, flags in given.items() if "random" in name]
  assert len(from_random) == 3 and len(given) == 6
  assert all("--config.model.d_model=22" in flags and "--config.train.steps=3" not in flags for flags in from_random)


def test_no_sentence_is_both_taught_and_asked(bert, tmp_path):
  lines = [f"sentence number {i % 7} of a text" for i in range(29)] + ["too short", "with a\ttab in the middle"]
  path = tmp_path / "text"
  path.write_text("\n".join(lines) + "\n")
  taught, asked = bert.chosen({"x": str(path)}, 3, 4)
  assert (len(taught["x"]), len(asked["x"])) == (3, 4)
  assert sorted(taught["x"] + asked["x"]) == sorted(set(lines[:7]))
  assert bert.chosen({"x": str(path)}, 3, 4) == (taught, asked)
