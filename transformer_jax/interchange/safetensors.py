"""The format `safetensors`: a run folder with its parameters in one file, and no checkpoints.

The parameters have the project's own names, such as `encoder/layers_0/attention/query/kernel`. The folder decodes as
every run folder does (`runs/params_file.py`), and cannot be trained on. Its config is the run's, with the paths of its
texts.
"""

from pathlib import Path

from etils import epath

from transformer_jax.config import Config
from transformer_jax.model.config import Dtype
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runs.run import Model, Run
from transformer_jax.runtime.values import Json, JsonObject


def require(config: Config) -> None:
  """Raises nothing: the format takes every model."""


def write(folder: Path, run: Run, model: Model, dtype: str) -> None:
  """Writes the folder; the parameters are rounded to `dtype`."""
  params_file.write(folder, model.params, model.step, Dtype(dtype))
  exported = run_folder.entry(exported={"run": str(run.path), "step": model.step, "dtype": dtype})
  history = [_public(entry) for entry in [*run.provenance, exported]]
  run_folder.begin_run(epath.Path(folder), model.config, model.tokenizer, history)


def _public(entry: JsonObject) -> JsonObject:
  """An entry with the names of folders in place of their paths, as the folder is made to be shared."""

  def shared(key: str, value: Json) -> Json:
    if isinstance(value, dict):
      return _public(value)
    return Path(str(value)).name if key in ("run", "folder") else value

  return {key: shared(key, value) for key, value in entry.items()}
