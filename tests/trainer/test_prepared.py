"""Training from a prepared folder."""

import dataclasses
import json

import pytest
from etils import epath

from tests.hosts.processes import assert_same_bits, tiny
from tests.prepared_folder import prepare
from transformer_jax.runtime.errors import InputError
from transformer_jax.trainer import loop


@pytest.mark.long
def test_it_is_training_from_the_text(prefix, tmp_path):
  """One part has the rows of the text, and so the run has the same bits, validation on text included."""
  config = tiny(prefix)
  loop.train(config, epath.Path(tmp_path / "text"))
  with_rows = dataclasses.replace(config, data=prepare(config.data, tmp_path / "prepared", lines=1000))
  loop.train(with_rows, epath.Path(tmp_path / "rows"))
  assert_same_bits(tmp_path / "text", tmp_path / "rows", config)


@pytest.mark.long
def test_a_run_in_parts_equals_a_run_in_one(prefix, tmp_path):
  """And it goes on with no other rows."""
  config = tiny(prefix)
  data = prepare(config.data, tmp_path / "prepared")
  config = dataclasses.replace(config, data=data)
  loop.train(config, epath.Path(tmp_path / "whole"))
  part = dataclasses.replace(config, train=dataclasses.replace(config.train, steps=2))
  loop.train(part, epath.Path(tmp_path / "parts"))
  manifest = tmp_path / "prepared" / "manifest.json"
  content = manifest.read_text()
  manifest.write_text(json.dumps(json.loads(content) | {"cleaning": "another"}))
  with pytest.raises(InputError, match=r"config\.data\.train now gives another text"):
    loop.train(config, epath.Path(tmp_path / "parts"))
  manifest.write_text(content)
  loop.train(config, epath.Path(tmp_path / "parts"))
  assert_same_bits(tmp_path / "whole", tmp_path / "parts", config)
