"""The log: what is read back when a run goes on."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from etils import epath

from benchmarks.curves import read_points
from transformer_jax.runs import metrics_file
from transformer_jax.runtime.errors import InputError
from transformer_jax.trainer import metrics as module
from transformer_jax.trainer.curves import Curves
from transformer_jax.trainer.metrics import FILE, MetricsAccumulator, MetricsLog, append
from transformer_jax.training.sums import Sums


def update(loss: float, *, skipped: bool = False) -> dict:
  """An update's metrics, as `train_step` returns them."""
  sums = Sums(*(0.0 if skipped else value for value in (loss, loss / 2, 3.0, 7.0)))
  return {"sums": sums, "skipped": skipped, "gradient_norm": loss + 1, "learning_rate": loss + 2}


def lines_of(folder) -> list[dict]:
  return [json.loads(line) for line in (folder / FILE).read_text().split("\n")[:-1]]


def test_an_interval_adds_up_what_was_not_skipped():
  interval = MetricsAccumulator()
  for metrics in (update(2.0), update(5.0), update(9.0, skipped=True), update(11.0, skipped=True)):
    interval.add(metrics)
  interval.seconds = 4.0
  assert interval.line() == {
    "loss": 0.5,
    "perplexity": np.exp(0.25),
    "accuracy": 6 / 14,
    "gradient_norm": 6.0,
    "learning_rate": 13.0,
    "updates": 4,
    "skipped": 2,
    "target_tokens": 14.0,
    "seconds": 4.0,
    "tokens_per_second": 3.5,
  }
  assert interval.skipped_in_a_row == 2


def test_the_longest_row_of_skipped_updates_is_known_wherever_it_ended(tmp_path):
  """Over a line of the log, and with a good update behind it."""
  log = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())
  found = []
  for step, skipped in enumerate([0, 1, 1, 1, 1, 0, 1, 0, 0], 1):
    log.add(update(1.0, skipped=bool(skipped)))
    if step % 3 == 0:
      log.flush(step, {})
      found.append(log.most_skipped)
  log.close()
  assert found == [(2, 3), (2, 5), (7, 7)]


def test_seconds_are_those_of_updates_alone(tmp_path, monkeypatch):
  """Not those of validation; a checkpoint, which asks for the interval, divides it and loses nothing."""
  now = 100.0
  monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now))
  log = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator(seconds=0.5))
  log.add(update(1.0))
  now += 2.0
  assert log.interval().seconds == 2.5
  now += 3.0
  with log.clock_stopped():
    now += 1000.0
  now += 5.0
  line = log.flush(1, {})
  assert (line["seconds"], line["tokens_per_second"]) == (10.5, 7 / 10.5)
  log.close()


def test_a_place_where_nothing_can_be_appended_has_every_line():
  files = {}

  class Remote:
    """What a bucket does with a file: it is written as a whole, or not at all."""

    def __fspath__(self):
      return "gs://bucket/metrics.jsonl"

    def exists(self):
      return "file" in files

    def read_text(self):
      return files["file"]

    def write_text(self, text):
      files["file"] = text

    def open(self, mode):
      raise AssertionError(f"opened in the mode {mode}")

  for line in ("a\n", "b\n", "c\n"):
    append(Remote(), line)
  assert files["file"] == "a\nb\nc\n"


def test_an_interval_in_which_all_was_skipped_has_no_means():
  interval = MetricsAccumulator(seconds=1.0)
  interval.add(update(np.nan, skipped=True))
  assert interval.line().keys() & {"loss", "perplexity", "accuracy", "gradient_norm"} == set()


def test_an_interval_goes_on_where_a_checkpoint_has_it():
  whole, part = MetricsAccumulator(), MetricsAccumulator()
  updates = [update(1 / 3), update(1 / 7, skipped=True), update(1 / 11)]
  for metrics in updates:
    whole.add(metrics)
  part.add(updates[0])
  saved = jax.tree.map(np.float64, part.to_dict())
  part = MetricsAccumulator.from_dict(saved, [])
  for metrics in updates[1:]:
    part.add(metrics)
  assert part == whole
  assert isinstance(part.updates, int)


def test_so_does_one_with_several_losses():
  def with_another(loss):
    metrics = update(loss)
    return metrics | {"sums": metrics["sums"].replace(others={"next": update(2 * loss)["sums"]})}

  part = MetricsAccumulator()
  part.add(with_another(1.0))
  part = MetricsAccumulator.from_dict(jax.tree.map(np.float64, part.to_dict()), ["next"])
  part.add(with_another(3.0))
  part.seconds = 1.0
  line = part.line()
  assert (line["loss"], line["next_loss"]) == (4 / 14, 8 / 14)


def log_with(folder, text: bytes, step: int, updates: int = 0) -> MetricsLog:
  (folder / FILE).write_bytes(text)
  return MetricsLog(epath.Path(folder), step, MetricsAccumulator(updates=updates))


def line(step: int) -> bytes:
  return json.dumps({"step": step, "split": "train"}).encode() + b"\n"


@pytest.mark.parametrize(
  "bad", [b"{", b"", b"3", b"[]", b'{"split": "train"}', b'{"step": "x", "split": "train"}', b"\xff", b"[" * 100_000]
)
def test_a_malformed_line_is_one_sentence_and_nothing_is_changed(tmp_path, bad):
  text = line(1) + bad + b"\n" + line(3)
  with pytest.raises(InputError, match=r"metrics\.jsonl, line 2 is no line of the log: delete it") as raised:
    log_with(tmp_path, text, 3)
  assert "\n" not in str(raised.value)
  assert (tmp_path / FILE).read_bytes() == text


def test_a_log_that_is_too_large_is_one_sentence_and_stays(tmp_path, monkeypatch):
  log = tmp_path / metrics_file.FILE
  log.write_text('{"split": "train", "step": 1}\n')
  monkeypatch.setattr(metrics_file, "_LARGEST", 29)
  with pytest.raises(InputError, match=r"metrics\.jsonl has more than 29 bytes, .*: move it away, and start again$"):
    metrics_file.read_lines(epath.Path(log))
  monkeypatch.setattr(metrics_file, "_LARGEST", 30)
  assert [entry["step"] for _, entry in metrics_file.read_lines(epath.Path(log))] == [1]


@pytest.mark.parametrize("behind", [b"", b'{"step": 3, "spl', b'{"step": 3, "split": "train"}'])
def test_a_line_without_its_end_was_cut_short_and_is_dropped(tmp_path, behind):
  log_with(tmp_path, line(1) + line(2) + behind, 2).close()
  assert (tmp_path / FILE).read_bytes() == line(1) + line(2)


def test_a_last_line_that_is_whole_is_kept(tmp_path):
  """Editors and programs that copy may leave out the line feed at the end of a file."""
  log_with(tmp_path, line(1) + line(2).rstrip(), 2).close()
  assert (tmp_path / FILE).read_bytes() == line(1) + line(2)


def test_lines_after_the_checkpoint_are_forgotten(tmp_path):
  log_with(tmp_path, line(2) + line(4) + line(5), 4).close()
  assert [entry["step"] for entry in lines_of(tmp_path)] == [2, 4]


@pytest.mark.parametrize(
  ("text", "step", "updates", "missing"),
  [
    (line(3) + line(6), 7, 1, None),  # the checkpoint of step 7 has one update since the line of step 6
    (line(3), 7, 1, 6),
    (b"", 7, 1, 6),
    (line(3) + line(6) + line(9), 7, 1, None),
    (b"", 2, 2, None),  # stopped before the first line
  ],
)
def test_lines_that_were_deleted_between_two_parts_of_a_run_are_missed(tmp_path, capfd, text, step, updates, missing):
  log_with(tmp_path, text, step, updates).close()
  said = capfd.readouterr().err
  assert said == "" if missing is None else f"metrics.jsonl has no line of step {missing}," in said


def test_of_what_a_checkpoint_does_not_know_nothing_is_missed(tmp_path, capfd):
  MetricsLog(epath.Path(tmp_path), 7, None).close()
  assert capfd.readouterr().err == ""


@pytest.mark.parametrize("change", ["delete first", "delete", "renumber", "swap", "nothing"])
def test_lines_that_were_deleted_or_changed_in_the_middle_are_missed(tmp_path, capfd, change):
  log = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())
  for step in range(1, 12):
    log.add(update(1.0))
    if step in (2, 5, 6, 9, 11):
      log.flush(step, {})
    if step == 10:
      log.write(step, "validation", {"loss": 1.0})
  log.close()
  lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
  match change:
    case "delete first":
      del lines[0]
    case "delete":
      del lines[1:3]
    case "renumber":
      lines[2] = lines[2].replace(b'"step": 6', b'"step": 7')
    case "swap":
      lines[1:3] = lines[2:0:-1]
  number, before = {"delete first": (1, 0), "delete": (2, 2), "renumber": (3, 5), "swap": (2, 2)}.get(change, (0, 0))
  capfd.readouterr()
  log_with(tmp_path, b"".join(lines), 11).close()
  said = capfd.readouterr().err
  assert f"line {number} tells of" in said and f"ends with step {before}:" in said if number else said == ""


def test_a_deleted_log_begins_anew(tmp_path, capfd):
  log = MetricsLog(epath.Path(tmp_path), 4, MetricsAccumulator())
  assert "has no line of step 4" in capfd.readouterr().err
  log.add(update(1.0))
  log.flush(5, {})
  log.close()
  assert [entry["step"] for entry in lines_of(tmp_path)] == [5]


def test_curves_have_each_point_once(tmp_path):
  for first, last in ((0, 5), (3, 4), (3, 7)):  # two starts from the checkpoint of step 3
    curves = Curves(epath.Path(tmp_path), first)
    for step in range(first + 1, last + 1):
      curves.add(step, "train", {"loss": step / 2, "name": "a string is no point"})
    curves.close()
  for file in sorted(tmp_path.iterdir())[-1:]:
    file.write_bytes(file.read_bytes()[:-3])  # as a kill leaves it
  assert read_points(tmp_path) == {"train/loss": [(step, step / 2) for step in range(1, 7)]}


def test_points_are_on_the_disk_after_a_minute(tmp_path, monkeypatch):
  """Before it a flush would cost each line of the log a write."""
  now = [1000.0]
  monkeypatch.setattr("transformer_jax.trainer.curves.time.monotonic", lambda: now[0])
  curves = Curves(epath.Path(tmp_path), 0)
  curves.add(1, "train", {"loss": 1.0})
  now[0] += 59
  curves.add(2, "train", {"loss": 2.0})
  before = read_points(tmp_path)
  now[0] += 2
  curves.add(3, "train", {"loss": 3.0})
  after = read_points(tmp_path)
  curves.add(4, "train", {"loss": 4.0})
  again = read_points(tmp_path)
  curves.close()
  assert before == {} and after == again == {"train/loss": [(1, 1.0), (2, 2.0), (3, 3.0)]}


@pytest.mark.parametrize(("in_flight", "expected"), [(0, [1, 2, 3, 4, 5]), (2, [1, 2, 3])])
def test_all_but_the_last_updates_are_waited_for(tmp_path, monkeypatch, in_flight, expected):
  waited, log = [], MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())
  monkeypatch.setattr(module.jax, "block_until_ready", waited.append)
  for number in range(1, 6):
    log.add(number)
    log.wait(in_flight)
  log._pending.clear()
  log.close()
  assert waited == expected


def test_points_are_on_the_disk_when_a_checkpoint_asks_for_the_interval(tmp_path):
  """A run that is killed after the checkpoint does not write them again."""
  log = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())
  log.add(update(7.0))
  log.flush(1, {})
  before = read_points(tmp_path / "tensorboard")
  log.interval()
  after = read_points(tmp_path / "tensorboard")
  log.close()
  assert before == {} and after["train/loss"] == [(1, 1.0)]


def test_what_fails_while_the_clock_is_stopped_takes_no_time(tmp_path, monkeypatch):
  now = 100.0
  monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now))
  log = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())
  with pytest.raises(InputError), log.clock_stopped():
    now += 1000.0
    raise InputError("as it happens")
  now += 2.0
  assert log.interval().seconds == 2.0
  log.close()


def test_writing_a_line_is_no_time_of_updates(tmp_path, monkeypatch):
  now = 100.0
  monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now))
  log = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())

  def add(*_):
    nonlocal now
    now += 1000.0

  monkeypatch.setattr(log._curves, "add", add)
  log.write(1, "validation", {"loss": 1.0})
  now += 2.0
  assert log.interval().seconds == 2.0
  log.close()
