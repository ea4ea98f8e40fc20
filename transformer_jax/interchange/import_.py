"""The import of a model of another library, into a run folder like those that `export --to safetensors` writes."""

import os
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from etils import epath

from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.interchange import formats, new_folder
from transformer_jax.interchange.foreign_folder import ForeignFolder
from transformer_jax.interchange.formats import IMPORTS
from transformer_jax.model.config import Dtype
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runtime.errors import require_option
from transformer_jax.runtime.progress import say
from transformer_jax.training.initialization import shapes_of


class Imported(NamedTuple):
  """A model of another library, in our terms: what the `read` of its format gives.

  Attributes:
    config: the config of the new run.
    arrays: the parameters by our names, float32.
    tokenizer: its tokenizer.
    notes: sentences about settings that are not taken over.
  """

  config: Config
  arrays: Mapping[str, np.ndarray]
  tokenizer: Tokenizer
  notes: tuple[str, ...] = ()


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
  assert {name: array.shape for name, array in found.arrays.items()} == shapes_of(found.config)
  with new_folder.complete(target, "--workdir") as made:
    params_file.write(made, dict(found.arrays), 0, Dtype.FLOAT32)
    imported = {"from": format_, "folder": os.fspath(folder.path), "sha256": folder.digests()}
    run_folder.begin_run(epath.Path(made), found.config, found.tokenizer, [run_folder.entry(imported=imported)])
