"""Text generation with a trained language model, for the command line and the Python API."""

import functools
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import numpy as np

from transformer_jax.data.documents import decode_text, encode_text
from transformer_jax.decoding import buckets
from transformer_jax.decoding.attention import Attention, attention_of_text
from transformer_jax.decoding.line_search import require_batch_size
from transformer_jax.decoding.next_token import NextToken, after_text
from transformer_jax.decoding.predictor import Predictor
from transformer_jax.decoding.sampling import SamplingOptions, key_of, require_seed, sample
from transformer_jax.decoding.text_score import score
from transformer_jax.decoding.translation import Probability, require_finite
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError, require_option, require_whole
from transformer_jax.runtime.texts import require_several, require_text

_MULTIPLE = 64  # lengths are compiled in multiples of this
_MOST = 128  # tokens of a text by default
_MOST_SAMPLES = 1 << 16  # all are in memory before the first one is printed
_log = logging.getLogger(__name__)
_sample = jax.jit(sample, static_argnums=(0, 1, 2))  # the model, the options and the length


class Sample(NamedTuple):
  """A generated text.

  Attributes:
    text: the text after the prompt.
    tokens: the number of its tokens, with its EOS if it has one.
    ended: whether the model ended the text; otherwise it has as many tokens as were allowed.
  """

  text: str
  tokens: int
  ended: bool


class Generator(Predictor):
  """Continues texts with a trained language model, and scores texts."""

  command = "generate"

  def generate(
    self,
    prompt: str = "",
    *,
    max_tokens: int | None = None,
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    warn: Callable[[str], object] = _log.warning,
  ) -> list[Sample]:
    """Continues a text; each sample depends on the arguments and its own number, not on the other samples.

    Args:
      prompt: the beginning of the text; may be empty.
      max_tokens: the most tokens to write; None is 128, or what the model's table of positions has left.
      samples: the number of texts.
      temperature, top_k, top_p, seed: as in `SamplingOptions`, and the seed of the random choices.
      warn: is called with a warning if the text can become longer than the rows of training.

    Raises:
      InputError: an option cannot be used, or prompt and text are longer than the model's table of positions.
      RunError: the model's probabilities are not finite.
    """
    require_whole("samples", samples)
    require_option("samples", samples, 0 < samples <= _MOST_SAMPLES, f"from 1 to {_MOST_SAMPLES}")
    require_seed(seed)
    options, tokens = self._options(temperature, top_k, top_p), self._encode(prompt, "the prompt")
    whole = self._total_length(len(tokens), max_tokens, warn)
    length = buckets.padded(whole, _MULTIPLE, self.config.model.most_positions)
    [row], size = buckets.pad([tokens], 1, length, PAD), (np.int32(len(tokens)), np.int32(whole))
    sample = functools.partial(_sample, self._model, options, length, self._params, row, size)

    def write(number: int) -> Sample:
      found, count, finite = jax.device_get(sample(jax.random.fold_in(key_of(seed), number)))
      require_finite(finite)
      return self._sample_of(found[:count].tolist(), prompt, len(tokens))

    return list(devices.parallel_map(write, range(samples)))

  def _sample_of(self, written: list[int], prompt: str, prompt_size: int) -> Sample:
    text = decode_text(self._tokenizer, written)[len(prompt) :]
    return Sample(text, len(written) - prompt_size, written[-1] == self.config.model.end_token)

  def score(self, texts: Iterable[str], *, batch_size: int | None = None) -> list[Probability]:
    """The log-probability of each text as a document of its own.

    Args:
      texts: the texts.
      batch_size: texts computed together; None suits the machine.

    Raises:
      InputError: a text is longer than the model's table of positions, or is no text.
      RunError: the model's probabilities are not finite.
    """
    require_batch_size(batch_size)
    tokens = [
      [*self._encode(text, f"text {number}"), self.config.model.end_token]
      for number, text in enumerate(require_several(texts, "texts"), 1)
    ]
    lengths, most = [len(ids) for ids in tokens], self.config.model.most_positions
    for number, length in enumerate(lengths, 1):
      if most is not None and length > most:
        raise InputError(
          f"text {number} has {length} tokens with its end, but the model has config.model.max_positions = {most}: "
          "shorten it"
        )

    def rows(length: int) -> int:
      return batch_size or buckets.rows_at_once(length, 0)

    def log_probs(batch: buckets.Batch) -> np.ndarray:
      texts = buckets.pad([tokens[i] for i in batch.members], batch.rows, batch.length, PAD)
      [sizes] = buckets.pad([[lengths[i] for i in batch.members]], 1, batch.rows, 0)
      return jax.device_get(score(self._model, self._params, texts, sizes))

    found = buckets.scores(lengths, most or max([_MULTIPLE, *lengths]), rows, log_probs)
    return list(map(Probability, found, lengths))

  def fits(self, texts: Iterable[str]) -> bool:
    """Whether `score` takes all these texts, or one is too long for it.

    Raises:
      InputError: a text is no text.
    """
    most, texts = self.config.model.most_positions, require_several(texts, "texts")
    return most is None or all(len(self._encode(text)) < most for text in texts)

  def attention(self, text: str) -> Attention:
    """Where each head looks at each position of a text: the weights of the decoder.

    Raises:
      InputError: the text is too long, or no text.
      RunError: a weight is not finite.
    """
    return attention_of_text(self._model, self._params, self._tokenizer, self._readable(text))

  def next_token(self, text: str) -> NextToken:
    """The probability of each token to come next after a text.

    Raises:
      InputError: the text is too long, or no text.
      RunError: the model's probabilities are not finite.
    """
    return after_text(self._model, self._params, self._tokenizer, self._readable(text))

  def _options(self, temperature: float, top_k: int, top_p: float) -> SamplingOptions:
    return SamplingOptions(temperature, top_k, top_p, suppressed=self._tokenizer.suppressed)

  def _encode(self, text: str, name: str = "the text") -> list[int]:
    require_text(text, name)
    return encode_text(self._tokenizer, text)

  def _readable(self, text: str) -> list[int]:
    """The tokens of a text that the model can read after the token in front of it."""
    tokens, most = self._encode(text), self.config.model.most_positions
    if most is not None and len(tokens) >= most:
      raise InputError(f"the text has {len(tokens)} tokens, but the model can read at most {most - 1}: shorten it")
    return tokens

  def _total_length(self, prompt: int, wanted: int | None, warn: Callable[[str], object]) -> int:
    """The most tokens that a prompt of `prompt` tokens and its continuation have."""
    if wanted is not None:
      require_whole("max_tokens", wanted)
      require_option("max_tokens", wanted, wanted > 0, "positive")
    whole, row_length = self._fitting(prompt, wanted), self.config.data.row_length
    if whole > row_length:
      warn(
        f"prompt and text can have {whole} tokens, but the model has read at most config.data.row_length = "
        f"{row_length} at a time: it does not know how a text goes on after them"
      )
    return whole

  def _fitting(self, prompt: int, wanted: int | None) -> int:
    most = self.config.model.most_positions
    if most is None:
      return prompt + (wanted or _MOST)
    left = most - prompt
    if left < (wanted or 1):
      raise InputError(
        f"the prompt has {prompt} tokens, and {wanted or 'some'} more are wanted, but the model has "
        f"config.model.max_positions = {most}: shorten the prompt{f', or ask for at most {left}' if left > 0 else ''}"
      )
    return prompt + (wanted or min(_MOST, left))
