"""Sizes and options of a model."""

import enum
import math
from dataclasses import dataclass
from typing import ClassVar

from transformer_jax.runtime.errors import InputError, require

_WIDEST_FUSED_HEAD = 128  # that every GPU with the kernel can


class Dtype(enum.Enum):
  """The type of matrix products, and of what goes from layer to layer and into the caches of decoding.

  Parameters, softmax, the statistics of layer normalisation, logits and loss are float32 whatever it is.
  """

  FLOAT32 = "float32"
  BFLOAT16 = "bfloat16"


class Activation(enum.Enum):
  """What is between the two products of a feed-forward layer; the paper's is ReLU (eq. 2)."""

  RELU = "relu"
  GELU = "gelu"
  GELU_TANH = "gelu-tanh"


@dataclass(unsafe_hash=True)
class AnyModelConfig:
  """What training and decoding read of a model's config, whatever the model is.

  Each model has a dataclass of its own with these fields and others;
  `registry` knows which model it configures.

  Attributes:
    vocab_size: entries of the one vocabulary.
    d_model: the width by which eq. 3 sets the learning rate.
    dtype: the type of matrix products.
    translates: whether it reads a source and writes a target.
  """

  vocab_size: int
  d_model: int
  dtype: Dtype
  translates: ClassVar[bool] = True

  @property
  def most_positions(self) -> int | None:
    """The longest sequence that the model can read; None is no limit."""
    return None

  @property
  def needs_cudnn(self) -> bool:
    """Whether it can be trained on NVIDIA's GPUs alone."""
    return False


@dataclass(unsafe_hash=True)
class ModelConfig(AnyModelConfig):
  """The Transformer's sizes and options; the defaults are the paper's base model (Table 3).

  Attributes:
    vocab_size: entries of the one vocabulary, shared by both languages; the
      tokenizer learns exactly that many.
    num_layers: N, layers of the encoder and layers of the decoder.
    d_model: width of the residual stream.
    d_ff: inner width of the feed-forward layer.
    num_heads: h.
    d_k: width of a head's queries and keys; None is d_model / h.
    d_v: width of a head's values; None is d_model / h.
    dropout: P_drop, on each sub-layer's output and on embedding + position.
    attention_dropout: dropout on the attention weights; the paper has none.
    attention_bias: biases in the attention projections; the paper has none.
    attention_window: r of §4's restricted self-attention: a position sees those
      of its own sequence at a distance of at most r, in the decoder the past ones;
      attention over the encoder's output sees everything. None, as in the paper's
      models, is no limit. It is a mask: what it hides is computed all the same.
    activation: between the two products of a feed-forward layer: the paper's `relu`, or `gelu`,
      x P(N(0, 1) < x), exactly or by its approximation with a hyperbolic tangent (`gelu-tanh`).
    layer_norm_epsilon: added to the variance; the paper does not say, and the default is its authors' code's.
    pre_norm: x + f(LayerNorm(x)) in place of the paper's LayerNorm(x + f(x)).
    learned_positions: a table of positions in place of sinusoids (Table 3, row E).
    max_positions: rows of that table; of no effect with sinusoids.
    share_embeddings: source and target use one table.
    share_logits: the output layer is the target's table (§3.4).
    dtype: the type of matrix products (see `Dtype`).
    fused_attention: whether updates compute eq. 1 by cuDNN's kernel, which keeps no weights: on NVIDIA's GPUs, in
      bfloat16, without attention dropout, with d_k = d_v a multiple of 8 up to 128. Validation and decoding do
      without it, so that they need no such device. No GPU was at hand to run it on.
  """

  vocab_size: int = 37_000
  num_layers: int = 6
  d_model: int = 512
  d_ff: int = 2048
  num_heads: int = 8
  d_k: int | None = None
  d_v: int | None = None
  dropout: float = 0.1
  attention_dropout: float = 0.0
  attention_bias: bool = False
  attention_window: int | None = None
  activation: Activation = Activation.RELU
  layer_norm_epsilon: float = 1e-6
  pre_norm: bool = False
  learned_positions: bool = False
  max_positions: int = 1024
  share_embeddings: bool = True
  share_logits: bool = True
  dtype: Dtype = Dtype.FLOAT32
  fused_attention: bool = False

  def __post_init__(self):
    for name in ("vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions"):
      require(getattr(self, name) > 0, f"model.{name}", getattr(self, name), "positive")
    for name in ("d_k", "d_v"):
      value = getattr(self, name)
      require(value is None or value > 0, f"model.{name}", value, "positive or None")
      if value is None and self.d_model % self.num_heads:
        raise InputError(
          f"config.model.num_heads is {self.num_heads}, which does not divide config.model.d_model = {self.d_model}: "
          f"choose another number of heads, or set config.model.{name}"
        )
    window = self.attention_window
    require(window is None or window > 0, "model.attention_window", window, "positive or None")
    for name in ("dropout", "attention_dropout"):
      value = getattr(self, name)
      require(0 <= value < 1, f"model.{name}", value, "at least 0 and below 1")
    epsilon = self.layer_norm_epsilon
    require(0 < epsilon < math.inf, "model.layer_norm_epsilon", epsilon, "positive")
    require(self.d_model % 2 == 0, "model.d_model", self.d_model, "even, as positions are pairs of sine and cosine")
    if self.fused_attention:
      self._check_fused_attention()

  def _check_fused_attention(self) -> None:
    d_k, d_v = self.head_dim_k, self.head_dim_v
    for key, value, fits, expected in (
      ("dtype", self.dtype.value, self.dtype is Dtype.BFLOAT16, "bfloat16"),
      ("attention_dropout", self.attention_dropout, not self.attention_dropout, "0"),
      ("d_k", d_k, d_k % 8 == 0 and d_k <= _WIDEST_FUSED_HEAD, f"a multiple of 8 up to {_WIDEST_FUSED_HEAD}"),
      ("d_v", d_v, d_v == d_k, f"d_k = {d_k}"),
    ):
      require(fits, f"model.{key}", value, f"{expected} with config.model.fused_attention")

  @property
  def head_dim_k(self) -> int:
    """d_k with its default filled in."""
    return self.d_k or self.d_model // self.num_heads

  @property
  def head_dim_v(self) -> int:
    """d_v with its default filled in."""
    return self.d_v or self.d_model // self.num_heads

  @property
  def most_positions(self) -> int | None:
    return self.max_positions if self.learned_positions else None

  @property
  def needs_cudnn(self) -> bool:
    return self.fused_attention
