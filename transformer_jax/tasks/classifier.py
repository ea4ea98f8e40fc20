"""Classification of sentences with a fine-tuned BERT, for the command line and the Python API."""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Config
from transformer_jax.data.labelled import sentence_rows
from transformer_jax.data.next_sentence import PARTS, TOKEN_TYPES
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import buckets
from transformer_jax.decoding.attention import Attention
from transformer_jax.decoding.predictor import Predictor
from transformer_jax.decoding.translation import require_finite
from transformer_jax.decoding.windows import windows
from transformer_jax.model.params import Params
from transformer_jax.runtime.texts import require_several
from transformer_jax.tasks.classification import classes_of, logits
from transformer_jax.tasks.encoder_attention import encoder_attention

_SENTENCES = 32  # at most so many are read before they are classified


class Class(NamedTuple):
  """The class of a sentence.

  Attributes:
    label: the name of the class.
    probability: the probability that the model gives the class.
    cut: whether only the sentence's beginning was read.
  """

  label: str
  probability: float
  cut: bool


class Classifier(Predictor):
  """Classifies sentences with a trained model."""

  command = "classify"

  def __init__(self, config: Config, params: Params, tokenizer: Tokenizer, step: int | None = None):
    super().__init__(config, params, tokenizer, step)
    self.classes = classes_of(config)

  def classify(self, sentences: Iterable[str], more: Callable[[float], bool] = lambda seconds: True) -> Iterator[Class]:
    """Yields the class of each sentence as the sentences come.

    Args:
      sentences: the sentences, one line each.
      more: tells whether another sentence, or the end, comes within a number of seconds; if not, the sentences so far
        are classified.

    Raises:
      InputError: a sentence is no text; the classes of all earlier ones were yielded.
      RunError: the model's probabilities are not finite.
    """
    for some, error in windows(require_several(sentences, "sentences"), _SENTENCES, more):
      if some:
        yield from self._classes(some)
      if error is not None:
        raise error

  def attention(self, sentence: str) -> Attention:
    """Where each head looks at each position of a sentence: the weights of the encoder.

    Raises:
      InputError: the sentence is longer than a row, or no text.
      RunError: a weight is not finite.
    """
    return encoder_attention(self.config, self._params, self._tokenizer, sentence)

  def _classes(self, sentences: list[str]) -> Iterator[Class]:
    longest = self.config.data.row_length
    rows, cut = sentence_rows(self._tokenizer, sentences, longest)
    lengths = np.sum(rows[:, TOKEN_TYPES] > 0, axis=1).tolist()
    found = np.zeros((len(sentences), len(self.classes)))
    for batch in buckets.batches(lengths, longest, _rows_at_once):
      inputs = np.zeros((batch.rows, PARTS, min(batch.length, longest)), np.int32)  # fewer sentences leave empty rows
      inputs[: len(batch.members)] = rows[batch.members, :, : batch.length]
      probabilities = jax.device_get(_probabilities(self._model, self._params, jnp.asarray(inputs)))
      found[batch.members] = probabilities[: len(batch.members)]
    require_finite(bool(np.isfinite(found).all()))
    for probabilities, was_cut in zip(found, cut, strict=True):
      best = int(np.argmax(probabilities))
      yield Class(self.classes[best], float(probabilities[best]), was_cut)


def _rows_at_once(length: int) -> int:
  """The sentences of a bucket that are computed together."""
  return min(_SENTENCES, buckets.rows_at_once(length, 0))


@functools.partial(jax.jit, static_argnames="model")
def _probabilities(model: nn.Module, params: Params, rows: jax.Array) -> jax.Array:
  """Rows `[rows, 3, length]` -> `[rows, classes]`."""
  return jax.nn.softmax(jax.vmap(lambda row: logits(model, params, row, None))(rows))
