"""The result of reading another library's format, which `import_.import_model` takes."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.params import by_name
from transformer_jax.training.initialization import abstract_params


class Imported(NamedTuple):
  """A model of another library, in our terms.

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


def shapes_of(config: Config) -> dict[str, tuple[int, ...]]:
  """The shape of each parameter by its name; nothing of their size is made."""
  return {name: leaf.shape for name, leaf in by_name(abstract_params(config)).items()}
