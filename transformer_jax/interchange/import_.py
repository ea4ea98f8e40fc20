"""The import of a model of another library, into a run folder like those that `export --to safetensors` writes."""

import os

import jax
from etils import epath

from transformer_jax.interchange import formats, new_folder
from transformer_jax.interchange.foreign_folder import ForeignFolder
from transformer_jax.interchange.formats import IMPORTS
from transformer_jax.interchange.imported import Imported
from transformer_jax.model.config import Dtype
from transformer_jax.model.params import Params
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runtime.errors import require_option
from transformer_jax.runtime.progress import say
from transformer_jax.training.initialization import abstract_params, shapes_of


def import_model(path: str | os.PathLike, workdir: str | os.PathLike, format_: str) -> None:
  """Writes a run folder with the model of another library.

  Args:
    path: the folder of that library's format, which may come from a stranger.
    workdir: the run folder to write, which must be new or empty. It is there only when it is complete.
    format_: the name of a format in `formats.IMPORTS`.

  Raises:
    InputError: the folder is damaged or of another format, it has what our model cannot express, or `workdir` cannot be
      used.
    RunError: the disk is full.
  """
  require_option("from", format_, format_ in IMPORTS, f"one of {', '.join(IMPORTS)}")
  target = new_folder.new(workdir, "--workdir")
  run_folder.folder_of(target)
  folder = ForeignFolder(path)
  found: Imported = formats.module(IMPORTS[format_]).read(folder)
  for note in found.notes:
    say(note)
  with new_folder.complete(target, "--workdir") as made:
    params_file.write(made, _tree(found), 0, Dtype.FLOAT32)
    imported = {"from": format_, "folder": os.fspath(folder.path), "sha256": folder.digests()}
    run_folder.begin_run(epath.Path(made), found.config, found.tokenizer, [run_folder.entry(imported=imported)])


def _tree(found: Imported) -> Params:
  expected, abstract = shapes_of(found.config), abstract_params(found.config)
  assert {name: array.shape for name, array in found.arrays.items()} == expected
  return jax.tree.unflatten(jax.tree.structure(abstract), [found.arrays[name] for name in expected])
