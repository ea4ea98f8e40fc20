"""Collections of garbage are rare, and still are made; as many files may be open as are needed."""

import gc
import resource

import pytest

from transformer_jax.runtime.process import allow_open_files, raise_gc_threshold


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


def test_the_limit_of_open_files_is_raised_and_never_lowered():
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    allow_open_files(300)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1324, hard)
    allow_open_files(3)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1324, hard)
    if hard != resource.RLIM_INFINITY:
      allow_open_files(hard)
      assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
  finally:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
