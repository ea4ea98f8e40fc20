"""A folder that is written completely or not at all, beside a training in the same place."""

import pytest
from etils import epath

from transformer_jax.interchange import new_folder
from transformer_jax.interchange.import_ import import_model
from transformer_jax.runs import locks
from transformer_jax.runtime.errors import InputError


def test_a_training_that_has_begun_keeps_its_folder(tmp_path):
  target = new_folder.new(tmp_path / "out", "--output")
  with (
    locks.exclusive_lock(epath.Path(target)),
    pytest.raises(InputError, match=r"another process writes in .*out: wait for its end, or choose another --output"),
    new_folder.complete(target, "--output") as made,
  ):
    (made / "config.json").touch()
    assert target.is_dir()
  assert not [*tmp_path.iterdir()]


def test_an_empty_folder_is_replaced(tmp_path):
  target = new_folder.new(tmp_path, "--output")
  with new_folder.complete(target, "--output") as made:
    (made / "config.json").touch()
  assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_an_imported_run_has_no_name_that_no_command_opens(tmp_path):
  """It is refused before anything is read."""
  with pytest.raises(InputError, match=r"has \[1\] in its path"):
    import_model(tmp_path / "nowhere", tmp_path / "a[1]", "bert")


def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch):
  """A shell would stand in a folder that is gone."""
  monkeypatch.chdir(tmp_path)
  with pytest.raises(InputError, match="is the current folder, which cannot be replaced: give a new folder in it as"):
    new_folder.new(".", "--output")
