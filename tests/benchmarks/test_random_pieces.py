"""What the program that measures random pieces counts as a wait."""

import threading

import numpy as np
import pytest

from transformer_jax.data.packed_ahead import BatchesPackedAhead
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.trainer import loop

pytest.importorskip("tabulate")


def test_the_wait_for_rows_counts(program, tmp_path):
  """Of three batches the third one is of rows that come 0.3 seconds after it is asked for."""
  starts, gets, packing = [], [], threading.Event()

  def pack(part):
    assert part == 0 or packing.wait(60)
    yield np.ones((10, 4, 3), np.uint16)

  none = PackedRows(np.zeros((0, 4, 3), np.uint16), PackingReport(), "")
  batches = program("random_pieces").timed(BatchesPackedAhead, starts, gets)(pack, tmp_path, none, 5, 7)
  for step in range(3):
    if step == 2:
      threading.Timer(0.3, packing.set).start()
    assert loop._signal_before_rows(batches, step, []) == 0
    assert len(batches[step].rows) == 5
  batches.close()
  assert len(starts) == len(gets) == 3 and starts == sorted(starts)
  assert gets[1] < 0.2 < gets[2] < 60
