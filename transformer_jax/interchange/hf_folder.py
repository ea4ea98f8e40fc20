"""A folder as Hugging Face transformers read one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transformer_jax.runtime import tensor_file


def write(folder: Path, arrays: Mapping[str, np.ndarray], values: Mapping[str, Mapping[str, Any]], card: bytes) -> None:
  """Writes `model.safetensors`, the page `README.md`, and files of JSON.

  Args:
    folder: where no such files are.
    arrays: the parameters.
    values: the values of each file of JSON, by its name.
    card: the page.
  """
  tensor_file.write(folder / "model.safetensors", arrays, {"format": "pt"})
  for name, content in values.items():
    (folder / name).write_text(json.dumps(content, indent=2) + "\n")
  (folder / "README.md").write_bytes(card)
