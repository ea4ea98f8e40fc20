"""This project's weights, for a program that writes them into another library's model; it needs only NumPy."""

from pathlib import Path

import numpy as np


def read(folder: Path) -> dict[str, np.ndarray]:
  """The weights in `params.npz` by their names, such as "encoder/layers_0/attention/query/kernel".

  Projections of heads become plain matrices `[in, out]`.
  """
  with np.load(folder / "params.npz") as arrays:
    params = {name: arrays[name] for name in arrays.files}
  for name, array in params.items():
    if array.ndim == 3:
      rows = array.shape[0] * array.shape[1] if "/output/" in name else array.shape[0]
      params[name] = array.reshape(rows, -1)
  return params
