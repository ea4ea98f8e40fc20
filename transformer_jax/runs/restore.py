"""The parameters of a checkpoint, to decode with or to average."""

from etils import epath

from transformer_jax.config import Config, serialization
from transformer_jax.model.params import Params, by_name
from transformer_jax.runs import checkpoint_files as files
from transformer_jax.runs import untrusted_arrays
from transformer_jax.runtime import devices, untrusted
from transformer_jax.training.initialization import abstract_params


def params_to_decode_with(workdir: epath.Path, config: Config, step: int) -> Params:
  """The parameters of one checkpoint on every local device: their moving average, if it was saved.

  Raises:
    ValueError: they are not those of the config's model, or are damaged; orbax raises others, too.
  """
  item = _item_to_decode_with(workdir, step, config)
  return files.read_item(workdir, step, item, devices.abstract_on_devices(_params_like(workdir, step, item, config)))


def read_params(workdir: epath.Path, config: Config, step: int) -> Params:
  """The parameters of one checkpoint, not their moving average, as NumPy arrays.

  Raises:
    ValueError: they are not those of the config's model, or are damaged; orbax raises others, too.
  """
  abstract = _params_like(workdir, step, files.PARAMS, config)  # NumPy arrays, as it names no device
  return files.read_item(workdir, step, files.PARAMS, abstract)


def _item_to_decode_with(workdir: epath.Path, step: int, config: Config) -> str:
  """The item of a checkpoint that has the parameters to decode with.

  Raises:
    ValueError: their moving average was saved, and is gone.
  """
  folder = files.folder_of(workdir, step)
  if (folder / files.AVERAGE).exists():
    return files.AVERAGE
  if (folder / files.SUMS).exists():
    saved = files.AVERAGE in untrusted.read_json(folder / files.SUMS / "metadata")
  else:  # an older checkpoint; one that `average` wrote has no optimizer
    saved = config.train.ema_decay > 0 and (folder / files.OPTIMIZER).exists()
  if saved:
    raise ValueError(f"{folder / files.AVERAGE}, the moving average of the parameters, is gone")
  return files.PARAMS


def _params_like(workdir: epath.Path, step: int, item: str, config: Config) -> Params:
  """Shapes and types of a config's parameters, before memory is taken for them.

  Raises:
    ValueError: the checkpoint's `item` holds others.
  """
  headers, size = files.headers(workdir, step, item)
  untrusted_arrays.require_layers(serialization.to_dict(config.model), len(headers))
  abstract = abstract_params(config)
  untrusted_arrays.require_arrays(by_name(abstract), headers, size)
  return abstract
