"""A search that an earlier process has traced, against one that is traced."""

import json
import subprocess
import sys

import pytest

from tests.example_commands import plain_environment

TRANSLATE = """
import json, sys
import jax
from transformer_jax.runtime import trace_cache
trace_cache._UNCHANGED_SINCE = float("inf")
from transformer_jax.runtime.compilation_cache import use_compilation_cache
use_compilation_cache()
from transformer_jax.decoding.translator import Translator
translator = Translator.load(sys.argv[1])
found = translator.translate(["7", "a 31", ""], return_scores=True, beam_size=3)
imported = [name for name in ("flax", "optax", "transformer_jax.model.transformer") if name in sys.modules]
print(json.dumps([imported, [(translation.text, translation.score) for translation in found]]))
"""


@pytest.mark.long
def test_a_cached_search_gives_the_bits_of_a_traced_one(tmp_path, workdir):
  def start(cache):
    done = subprocess.run(
      [sys.executable, "-c", TRANSLATE, str(workdir)],
      env=plain_environment(cache),
      capture_output=True,
      text=True,
      check=True,
    )
    return json.loads(done.stdout)

  (tmp_path / "a file").write_text("")
  _, without = start(tmp_path / "a file")
  assert start(tmp_path / "cache")[1] == without
  assert len(list((tmp_path / "cache").glob("compiled/*/traced/*"))) == 2  # the parameters' shapes and a search
  imported, again = start(tmp_path / "cache")
  assert again == without
  assert not imported  # they take a fifth of a second
