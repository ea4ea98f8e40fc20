"""A run folder of version 0.1.0 gives the translations and scores that version 0.1.0 gave.

older/run.tar.xz is a run of 600 updates on numbers (one layer of 16, moving average), made at commit f08e154 without
its TensorBoard events; older/expected.json is what `Translator` of that commit made of it, on a CPU.
"""

import json
import tarfile
from pathlib import Path

import pytest

from transformer_jax import Translator

OLDER = Path(__file__).parent / "older"


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
  workdir = tmp_path_factory.mktemp("older")
  with tarfile.open(OLDER / "run.tar.xz") as archive:
    archive.extractall(workdir, filter="data")
  return Translator.load(workdir)


@pytest.fixture(scope="module")
def expected():
  return json.loads((OLDER / "expected.json").read_text())


def test_its_beams_and_scores_are_the_same(translator, expected):
  found = list(translator.translate_lines(expected["lines"], n_best=3))
  assert [[each.text for each in line] for line in found] == [
    [each["text"] for each in line] for line in expected["beam"]
  ]
  for here, there in zip(found, expected["beam"], strict=True):
    assert [each.score for each in here] == pytest.approx([each["score"] for each in there], abs=1e-5)
    logs = [each["log_probability"] for each in there]
    assert [each.log_probability for each in here] == pytest.approx(logs, abs=1e-5)


@pytest.mark.long
def test_greedy_search_and_scoring_are_the_same(translator, expected):
  assert translator.translate(expected["lines"], beam_size=1) == expected["greedy"]
  pairs = [("forty-two", "zweiundvierzig"), ("nine", "neun")]
  scores = [found.log_probability for found in translator.score(pairs)]
  assert scores == pytest.approx(expected["scores"], abs=1e-5)
