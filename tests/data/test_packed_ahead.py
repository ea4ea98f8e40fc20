"""Rows that are packed ahead: every part is read whole and in an order of its own, on any number of hosts."""

import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from transformer_jax.data import packed_ahead
from transformer_jax.data.packed_ahead import BatchesPackedAhead
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.runtime.errors import InputError

SIZE, SEED = 5, 7
COUNTS = [11, 3, 17, 2, 2, 13, 11, 7, 0, 5, 19]  # the rows of each part; batches of 5 cross up to three of them


def pack(part: int):
  """Rows that say their part and their number, in two blocks."""
  rows = np.zeros((COUNTS[part], 4, 3), np.uint16)
  rows[:, 0], rows[:, 1] = part + 1, np.arange(COUNTS[part])[:, None]
  yield from (rows[:2], rows[2:])


@pytest.fixture
def made(tmp_path):
  """Makes batches, and closes them at the end."""
  found = []

  def make(pack=pack, multiple=1, host=0, hosts=1, seed=SEED) -> BatchesPackedAhead:
    none = PackedRows(np.zeros((0, 4, 3), np.uint16), PackingReport(), "")
    found.append(BatchesPackedAhead(pack, tmp_path, none, SIZE, seed, multiple=multiple, host=host, hosts=hosts))
    return found[-1]

  yield make
  for batches in found:
    batches.close()


def names(batch) -> list[tuple[int, int]]:
  return [(int(row[0, 0]) - 1, int(row[1, 0])) for row in batch.rows]


STEPS = sum(COUNTS[:10]) // SIZE


def test_many_parts_of_one_batch_keep_no_files_open(made):
  """As shards of one pair, or epochs of one row: a system has few open files."""

  def one_row(part):
    yield np.full((1, 4, 3), part, np.uint16)

  batches = made(one_row)
  open_files = Path("/proc/self/fd")
  before = len([*open_files.iterdir()])
  assert [int(row[0, 0]) for row in batches[0].rows] == list(range(SIZE))
  assert len([*open_files.iterdir()]) <= before + 1


def test_each_part_is_read_whole_in_an_order_of_its_own(made):
  batches = made()
  stream = [name for step in range(STEPS) for name in names(batches[step])]
  start = 0
  orders = []
  for part, count in enumerate(COUNTS[:9]):
    of_part = stream[start : start + count]
    assert sorted(of_part) == [(part, number) for number in range(count)]
    orders.append([number for _, number in of_part])
    start += count
  assert orders[0] != orders[6] and orders[0] != sorted(orders[0])


@pytest.mark.parametrize("seed", [7, 11])
def test_the_order_of_a_part_is_that_of_its_seed(made, seed):
  batches, start = made(seed=seed), 0
  stream = [name for step in range(STEPS) for name in names(batches[step])]
  for part, count in enumerate(COUNTS[:7]):
    random = np.random.Philox(key=[seed, part], counter=[0, 0, 0, 2]).random_raw(count)
    assert [number for _, number in stream[start : start + count]] == np.argsort(random, kind="stable").tolist()
    start += count


def test_a_run_that_resumes_reads_the_same_and_packs_no_earlier_part(made):
  whole = made()
  expected, places = [], []
  for step in range(STEPS):
    places.append(whole.place(step))
    expected.append(names(whole[step]))
  for start in range(STEPS):
    packed = []
    resumed = made(lambda part, packed=packed: (packed.append(part), pack(part))[1])
    resumed.begin_at(places[start])
    assert [names(resumed[step]) for step in range(start, min(start + 4, STEPS))] == expected[start : start + 4]
    assert min(packed) == expected[start][0][0]
  without = made()  # from a checkpoint without a place
  without.begin_at({})
  assert names(without[STEPS - 1]) == expected[-1]


@pytest.mark.parametrize("hosts", [2, 4])
def test_shares_of_hosts_join_to_the_batch_of_one(made, hosts):
  one, whole = made(), made(multiple=8)
  shares = [made(multiple=8, host=host, hosts=hosts) for host in range(hosts)]
  for step in range(4):
    joined = [np.concatenate(parts) for parts in zip(*[share[step] for share in shares], strict=True)]
    expected = whole[step]
    np.testing.assert_array_equal(joined[0], expected.rows)
    np.testing.assert_array_equal(joined[1], expected.indices)
    np.testing.assert_array_equal(expected.rows[:SIZE], one[step].rows)
    assert not expected.rows[SIZE:].any()


def test_the_next_part_is_packed_while_the_steps_go_on(made):
  packing, packed = threading.Event(), []

  def slowly(part):
    if part == 1:
      assert packing.wait(60)
    packed.append(part)
    return pack(part)

  batches = made(slowly)
  names(batches[0]), names(batches[1])  # all within the first part
  assert packed == [0]
  packing.set()
  names(batches[2])
  assert packed[:2] == [0, 1]


def test_the_first_long_wait_is_said_and_no_other(made, monkeypatch, capsys):
  """Short waits are not said, and however many there are, a long one is."""
  clock = iter([second for wait in (99.9, 0.9, 0.9, 61.3, 47.1, 0.2) for second in (0.0, wait)])
  monkeypatch.setattr(packed_ahead, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
  batches = made()
  for step in range(sum(COUNTS[:6]) // SIZE):  # the wait for the first part is none for rows that are late
    names(batches[step])
  told = capsys.readouterr().err
  assert "the update waited 61.3 seconds" in told and told.count("the update waited") == 1


def test_an_error_of_the_packing_is_that_of_the_step(made):
  def fails(part):
    if part:
      raise InputError("line 3 is bad")
    return pack(part)

  batches = made(fails)
  batches[1]
  with pytest.raises(InputError, match="line 3 is bad"):
    batches[2]


def test_a_long_wait_may_have_several_parts(made, monkeypatch, capsys):
  """Who waits looks for a signal in between."""
  now, go = [0.0], threading.Event()
  monkeypatch.setattr(packed_ahead, "time", SimpleNamespace(perf_counter=lambda: now[0]))

  def slowly(part):
    assert part == 0 or go.wait(60)
    yield from pack(part)

  batches = made(slowly)
  names(batches[0]), names(batches[1])  # all within the first part
  for _ in range(7):
    assert not batches.wait(2, lambda: True)
    now[0] += 0.9
  go.set()
  assert batches.wait(2, lambda: False)
  assert "the update waited 6.3 seconds" in capsys.readouterr().err


def test_no_file_is_left(made, tmp_path):
  batches = made()
  batches[3]
  assert list(tmp_path.iterdir()) == []
  assert batches.describe(3) == "rows 15 to 19 of all that are packed during the run"


def test_who_waits_for_rows_can_be_stopped_and_wait_again(made):
  go = threading.Event()

  def slow(part):
    go.wait(60)
    yield from pack(part)

  batches = made(slow)
  assert not batches.wait(0, lambda: True)
  go.set()
  assert batches.wait(0, lambda: False)
  assert names(batches[0]) == names(made()[0])
  assert batches.wait(0, lambda: True)  # what is there needs no waiting


def test_rows_are_kept_in_the_folder_that_is_given(made, tmp_path, monkeypatch):
  monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
  assert names(made()[0]) == names(made()[0]) and not list(tmp_path.iterdir())


def test_the_end_does_not_wait_for_a_part_that_is_being_packed(made):
  begun, packed = threading.Event(), []

  def without_end(part):
    if not part:
      yield from pack(part)
      return
    while len(packed) < 200:
      packed.append(part)
      yield np.zeros((1, 4, 3), np.uint16)
      begun.set()
      time.sleep(0.05)

  batches = made(without_end)
  assert len(batches[0].rows) == SIZE
  assert begun.wait(30)
  batches.close()
  assert len(packed) < 200
