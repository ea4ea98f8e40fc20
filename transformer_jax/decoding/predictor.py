"""The base class of objects that compute with the trained model of a run, for the command line and the Python API."""

import os
from typing import TYPE_CHECKING, ClassVar, Self

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.params import Params
from transformer_jax.runtime import devices

if TYPE_CHECKING:  # orbax takes seconds to import
  from transformer_jax.runs.run import Run
  from transformer_jax.runs.steps import Step


class Predictor:
  """The base of `Generator`, `Classifier` and `Features`.

  Args:
    config: the run's configuration.
    params: the model's parameters.
    tokenizer: the run's tokenizer.
    step: the update at which the checkpoint was written, if the parameters come from one.
  """

  command: ClassVar[str]  # as `registry.py` names it in the model's family

  def __init__(self, config: Config, params: Params, tokenizer: Tokenizer, step: int | None = None):
    self.config, self.step = config, step
    self._model = registry.module(config.model)
    self._params = devices.on_first_device(params)
    self._tokenizer = tokenizer

  @classmethod
  def load(cls, workdir: "Run | str | os.PathLike", *, step: "Step" = "last") -> Self:
    """Loads the model of a run.

    Args:
      workdir: the run folder, or the run that `runs.open` made of it.
      step: which checkpoint: its number, `last`, or `best`, by validation.

    Raises:
      InputError: the folder has no run of such a model, or no such checkpoint.
      RunError: the checkpoint is damaged; with `last`, every checkpoint is.
    """
    from transformer_jax import runs  # imports orbax, which takes seconds

    return cls(*runs.open(workdir).model(cls.command, step))
