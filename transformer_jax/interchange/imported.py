"""The result of reading another library's format, which `import_.import_model` takes."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer


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
