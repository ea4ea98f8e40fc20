"""Collections of garbage are rare, and still are made."""

import gc

import pytest

from transformer_jax.runtime.process import raise_gc_threshold


@pytest.mark.long
def test_new_objects_that_stay_are_seldom_gone_through_and_cycles_are_still_found():
  def collections_of(count):
    begun = []
    gc.callbacks.append(lambda phase, info: begun.append(phase) if phase == "start" else None)
    objects = [[] for _ in range(count)]
    gc.callbacks.pop()
    assert len(objects) == count
    return len(begun)

  before = gc.get_threshold()
  try:
    gc.set_threshold(700, 10, 10)  # Python's own
    gc.collect()
    assert collections_of(20_011) > 5
    raise_gc_threshold()
    gc.collect()
    assert collections_of(20_011) == 0
    assert collections_of(130_003) > 0
  finally:
    gc.set_threshold(*before)
