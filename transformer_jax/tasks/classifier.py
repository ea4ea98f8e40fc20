"""Classes of sentences by a fine-tuned BERT: the command line and the Python API."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.next_sentence import PARTS
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.windows import windows
from transformer_jax.language.config import BERTClassifierConfig
from transformer_jax.model.params import Params
from transformer_jax.runtime import devices
from transformer_jax.tasks.classification import logits, sentence_rows

if TYPE_CHECKING:  # orbax takes seconds to import
  from transformer_jax.runs.reading import Step
  from transformer_jax.runs.run import Run

_ROWS = 32  # computed together; fewer are filled up, so that there is one shape


class Class(NamedTuple):
  """The class of a sentence.

  Attributes:
    label: its name.
    probability: that the model gives it.
    cut: whether only the sentence's beginning was read.
  """

  label: str
  probability: float
  cut: bool


class Classifier:
  """Tells classes of sentences apart with a trained model.

  Args:
    config: the run's.
    params: the model's parameters.
    tokenizer: the run's.
    step: the checkpoint's, if the parameters come from one.
  """

  def __init__(self, config: Config, params: Params, tokenizer: Tokenizer, step: int | None = None):
    self.config, self.step = config, step
    self._params = devices.on_first_device(params)
    self._tokenizer = tokenizer
    assert isinstance(config.model, BERTClassifierConfig)
    self.classes = config.model.classes
    module = registry.module(config.model)

    def probabilities(params: Params, rows: jax.Array) -> jax.Array:
      return jax.nn.softmax(jax.vmap(lambda row: logits(module, params, row, None))(rows))

    self._probabilities = jax.jit(probabilities)

  @classmethod
  def load(cls, workdir: "Run | str | os.PathLike", *, step: "Step" = "last") -> "Classifier":
    """The classifier of a run.

    Args:
      workdir: the run folder, or the run that `runs.open` made of it.
      step: which checkpoint: its number, `last`, or `best`, by validation loss.

    Raises:
      InputError: not the folder of a run of a classifier, or no such checkpoint in it.
      RunError: the checkpoint is damaged; of `last`, every one is.
    """
    from transformer_jax import runs  # imports orbax, which takes seconds

    return cls(*runs.open(workdir).model("classify", step))

  def classify(self, sentences: Iterable[str], more: Callable[[float], bool] = lambda seconds: True) -> Iterator[Class]:
    """The class of each sentence, as they come.

    Args:
      sentences: each a line.
      more: whether another sentence, or the end, can be had within so many seconds; what is there is not kept waiting.

    Raises:
      InputError: a sentence is no text; those before it were yielded.
    """
    for some, error in windows(sentences, _ROWS, more):
      if some:
        yield from self._classes(some)
      if error is not None:
        raise error

  def _classes(self, sentences: list[str]) -> Iterator[Class]:
    length = self.config.data.row_length
    rows = np.zeros((_ROWS, PARTS, length), np.int32)
    rows[: len(sentences)], cut = sentence_rows(self._tokenizer, sentences, length)
    found = jax.device_get(self._probabilities(self._params, jnp.asarray(rows)))
    for probabilities, was_cut in zip(found, cut, strict=False):  # the rows behind are there for the shape alone
      best = int(np.argmax(probabilities))
      yield Class(self.classes[best], float(probabilities[best]), was_cut)
