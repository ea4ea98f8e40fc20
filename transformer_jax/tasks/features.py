"""Features of texts from a trained ELMo, for models of other tasks."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Document
from transformer_jax.data.blocks import PARTS, SEGMENTS, TOKENS
from transformer_jax.data.documents import encode_text
from transformer_jax.decoding import buckets
from transformer_jax.decoding.predictor import Predictor
from transformer_jax.decoding.translation import require_finite
from transformer_jax.language.elmo import mix
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.texts import require_text
from transformer_jax.tasks.bidirectional import layers

_MULTIPLE = 64  # programs are compiled for multiples of this length
_layers = jax.jit(layers, static_argnames="model")


class Features(Predictor):
  """Computes features of texts with a trained ELMo.

  A text is read as a document of training: with EOS behind it, which the direction from the right reads first, where a
  document is a line or a paragraph. Where it is a file, hardly any text had EOS behind it, and none is read.
  """

  command = "transformer_jax.tasks.features"

  def tokens(self, text: str) -> list[str]:
    """The tokens of a text as they are spelled, one for each row of its features.

    Raises:
      InputError: it is no text.
    """
    return self._tokenizer.pieces(self._encode(text))

  def layers(self, text: str) -> np.ndarray:
    """All layers of each token of a text, with both directions concatenated: `[layers + 1, tokens, 2 model]`.

    Raises:
      InputError: it is no text.
      RunError: the model gives no finite numbers.
    """
    tokens = self._encode(text)
    read = tokens if self.config.data.document is Document.FILE else [*tokens, self.config.model.end_token]
    row = np.zeros((PARTS, buckets.padded(max(1, len(read)), _MULTIPLE)), np.int32)
    row[TOKENS, : len(read)], row[SEGMENTS, : len(read)] = read, 1
    found = np.asarray(_layers(self._model, self._params, row, None))[:, :, : len(tokens)]
    require_finite(bool(np.isfinite(found).all()))
    return np.concatenate([found[:, 0], found[:, 1]], axis=-1)

  def features(self, text: str, weights: Sequence[float] | None = None, gamma: float = 1.0) -> np.ndarray:
    """The weighted sum of the layers (`elmo.mix`), by default their mean: `[tokens, 2 model]`.

    Args:
      text: the text.
      weights: s of `mix`, a finite number for each layer; by default all are equal.
      gamma: of `mix`.

    Raises:
      InputError: the weights are others, or it is no text.
      RunError: the model gives no finite numbers.
    """
    found = self.layers(text)
    try:
      chosen = np.zeros(len(found)) if weights is None else np.asarray(weights, np.float32)
    except (TypeError, ValueError):  # text, or rows of different lengths
      chosen = np.zeros(0)
    if chosen.shape != (len(found),) or not np.isfinite(chosen).all():
      raise InputError(f"weights is {weights!r:.80}, but must be {len(found)} finite numbers, one for each layer")
    return np.asarray(mix(jnp.asarray(found), jnp.asarray(chosen, jnp.float32), gamma))

  def _encode(self, text: str) -> list[int]:
    require_text(text, "the text")
    return encode_text(self._tokenizer, text)
