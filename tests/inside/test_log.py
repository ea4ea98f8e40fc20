"""The log of a stranger's run: what can be read is read, and nothing else ends the reading."""

import json

import pytest
from etils import epath

from transformer_jax.inside import log

GOOD = {"step": 3, "split": "train", "loss": 2.5}


def read(folder, *lines):
  content = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
  (folder / log.FILE).write_bytes(content)
  return log.read(epath.Path(folder))


@pytest.mark.parametrize(
  "line",
  [
    b"",
    b"{",
    b"\xff\xfe",
    b"null",
    b"[1]",
    b"[" * 10_000,
    b'{"step": ' + b"9" * 5000 + b', "split": "train"}',
    {"step": "3", "split": "train"},
    {"step": True, "split": "train"},
    {"step": -1, "split": "train"},
    {"step": 2.5, "split": "train"},
    {"step": 1 << 60, "split": "train"},
    {"step": 5, "split": ["train"]},
    {"step": 5},
  ],
  ids=lambda line: str(line)[:20],
)
def test_a_line_that_is_none_is_counted(tmp_path, line):
  found = read(tmp_path, GOOD, line, {"step": 7, "split": "train", "loss": 1.5})
  assert found.series("train", "loss").values.tolist() == [2.5, 1.5]
  assert found.notes == ["metrics.jsonl: 1 line could not be read, the first is line 2."]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**400, "4", None, [1], True, {}])
def test_what_is_no_finite_number_is_no_point(tmp_path, value):
  found = read(tmp_path, GOOD, {"step": 5, "split": "train", "loss": value}, {"step": 7, "split": "train", "loss": 1})
  series = found.series("train", "loss")
  assert (series.steps.tolist(), series.values.tolist()) == ([3, 7], [2.5, 1.0])


def test_steps_increase_and_the_later_line_counts(tmp_path):
  found = read(tmp_path, *({"step": step, "split": "train", "loss": n} for n, step in enumerate([5, 3, 5, 11])))
  assert found.series("train", "loss").steps.tolist() == [3, 5, 11]
  assert found.series("train", "loss").values.tolist() == [1, 2, 3]


def test_huge_lines_and_files_are_cut(tmp_path, monkeypatch):
  huge = json.dumps({"step": 4, "split": "train", "text": "x" * (1 << 18)}).encode()
  found = read(tmp_path, GOOD, huge, {"step": 7, "split": "train", "loss": 1.5})
  assert found.series("train", "loss").steps.tolist() == [3, 7]
  monkeypatch.setattr(log, "_LARGEST_FILE", 80)
  found = log.read(epath.Path(tmp_path))
  assert found.series("train", "loss").steps.tolist() == [3]
  assert "only its beginning was read" in found.notes[-1]


def test_a_last_line_that_a_kill_cut_short_is_no_damage(tmp_path):
  read(tmp_path, GOOD)
  with open(tmp_path / log.FILE, "a") as file:
    file.write('{"step": 4, "spl')
  assert log.read(epath.Path(tmp_path)).notes == []


def test_a_whole_last_line_without_its_line_feed_counts(tmp_path):
  read(tmp_path, GOOD)
  with open(tmp_path / log.FILE, "a") as file:
    file.write('{"step": 4, "split": "train", "loss": 1.5}')
  assert log.read(epath.Path(tmp_path)).series("train", "loss").steps.tolist() == [3, 4]


def test_without_a_file_there_is_a_note(tmp_path):
  found = log.read(epath.Path(tmp_path))
  assert found.notes == ["The run has no metrics.jsonl, so there are no curves."] and found.last("train") == {}


def test_a_folder_in_its_place_is_a_note(tmp_path):
  (tmp_path / log.FILE).mkdir()
  assert log.read(epath.Path(tmp_path)).notes == ["metrics.jsonl of the run is a folder, so there are no curves."]


@pytest.mark.parametrize("samples", [7, "x", [3], [{}], [{"source": 1, "translation": "a", "reference": "b"}], [[]]])
def test_samples_of_another_form_are_none(tmp_path, samples):
  assert read(tmp_path, {"step": 1, "split": "validation", "samples": samples}).samples() == []
