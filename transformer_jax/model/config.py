"""Sizes and options of a model."""

import enum
from dataclasses import dataclass, fields
from typing import ClassVar

from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.runtime.errors import InputError, convert_words, require, require_key

# Larger ones are mistakes: to trace so many layers takes minutes, and XLA does not count so far.
MOST_LAYERS, MOST_SIZE = 1000, 1 << 24
FLOAT32 = 1.2e-38, 3.4e38  # its least and its largest normal number
_WIDEST_FUSED_HEAD = 128  # every GPU that has the kernel supports it


class Dtype(enum.Enum):
  """The type of matmuls, activations and decoding caches.

  Parameters, softmax, the statistics of layer normalisation, logits and loss are always float32.
  By default an accelerator rounds the operands of a float32 matmul: a GPU to TF32, a TPU to bfloat16.
  """

  FLOAT32 = "float32"
  BFLOAT16 = "bfloat16"


class Activation(enum.Enum):
  """The function between the two matmuls of a feed-forward layer; the paper's is ReLU (eq. 2)."""

  RELU = "relu"
  GELU = "gelu"
  GELU_TANH = "gelu-tanh"
  SWISH = "swish"


class Remat(enum.Enum):
  """The part of the forward pass that the backward pass computes a second time, to keep less in memory meanwhile.

  `layer` keeps only the input of each layer and the output of the encoder. `attention` keeps the queries, keys and
  values of each attention, but not its weights. Dropout draws the same bits both times.

  References:
    Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost.
  """

  NONE = "none"
  LAYER = "layer"
  ATTENTION = "attention"


class Start(enum.Enum):
  """The token that the decoder reads first, and that no output has."""

  BOS = "bos"
  PAD = "pad"


@dataclass(unsafe_hash=True)
class AnyModelConfig:
  """The part of a model's config that training and decoding read, the same for all models.

  Each model has its own dataclass with these fields and others. The registry
  knows which model belongs to which dataclass.

  Attributes:
    vocab_size: entries of the vocabulary, or of the target's if the source has its own.
    d_model: the width that sets the learning rate in eq. 3.
    dtype: the type of matmuls.
    translates: whether the model reads a source and writes a target.
    chooses_inputs: whether the module has `choose_inputs`, for scheduled sampling.
  """

  vocab_size: int
  d_model: int
  dtype: Dtype
  translates: ClassVar[bool] = True
  chooses_inputs: ClassVar[bool] = False

  def __post_init__(self):
    convert_words(self, "model")
    for field in fields(self):  # pyright: ignore[reportArgumentType]  every model's is a dataclass
      value = getattr(self, field.name)
      if type(value) is int and not field.name.endswith("vocab_size"):
        most = MOST_LAYERS if field.name.endswith("layers") else MOST_SIZE
        require_key(self, f"model.{field.name}", value <= most, f"at most {most:,}")

  @property
  def vocab_sizes(self) -> tuple[int, ...]:
    """The entries of the one vocabulary, or those of the source's, if it is a field, and of the target's."""
    of_source = getattr(self, "source_vocab_size", None)
    return (self.vocab_size,) if of_source is None else (of_source, self.vocab_size)

  @property
  def most_positions(self) -> int | None:
    """The longest sequence that the model can read; None is no limit."""
    return None

  @property
  def start_token(self) -> int:
    """The number of the token that a decoder reads first."""
    return BOS

  @property
  def end_token(self) -> int:
    """The number of the token behind a text."""
    return EOS

  @property
  def needs_cudnn(self) -> bool:
    """Whether training needs an NVIDIA GPU."""
    return False


@dataclass(unsafe_hash=True)
class ModelConfig(AnyModelConfig):
  """The Transformer's sizes and options; the defaults are the paper's base model (Table 3).

  Attributes:
    vocab_size: entries of the one vocabulary, shared by both languages; the
      tokenizer learns exactly that many.
    source_vocab_size: entries of a vocabulary for the source alone, so that
      `vocab_size` counts the target's; needs `share_embeddings=False`. None, as in
      the paper, is one vocabulary for both.
    num_layers: N, the layers of the encoder, and as many of the decoder.
    encoder_layers: the layers of the encoder, if the decoder has another number; None is num_layers.
    decoder_layers: the layers of the decoder; None is num_layers.
    d_model: width of the residual stream.
    d_ff: inner width of the feed-forward layer.
    num_heads: h, the number of attention heads.
    d_k: width of a head's queries and keys; None is d_model / h.
    d_v: width of a head's values; None is d_model / h.
    dropout: P_drop, on each sub-layer's output and on the sum of embedding and position.
    attention_dropout: dropout on the attention weights; §5.4 has none.
    attention_bias: biases in the attention projections; the paper has none.
    attention_window: the radius of §4's restricted self-attention, whose r is the size of the neighbourhood. A position
      sees the positions of its own sequence at a distance of at most this radius; in the decoder only the past ones.
      Attention over the encoder's output is not restricted. None, as in the paper's models, is no limit. The window is
      a mask and saves no computation.
    activation: the function between the two matmuls of a feed-forward layer: the paper's `relu`; `gelu`, which is
      x P(N(0, 1) < x); `gelu-tanh`, its approximation with a hyperbolic tangent; or `swish`, x / (1 + exp(-x)).
    layer_norm_epsilon: is added to the variance. The paper does not tell its value; the default is that of its
      authors' code.
    pre_norm: x + f(LayerNorm(x)) in place of the paper's LayerNorm(x + f(x)).
    learned_positions: a table of positions in place of sinusoids (Table 3, row E).
    max_positions: rows of that table; without effect for sinusoids.
    share_embeddings: source and target use one table.
    share_logits: the output layer is the target's table (§3.4).
    logits_bias: a bias on the logits; the paper has none.
    start: the token that the decoder reads first: `bos`, or `pad` in a vocabulary without BOS.
    dtype: the type of matmuls (see `Dtype`).
    remat: what the backward pass computes a second time to save memory (see `Remat`); it changes no gradient beyond
      rounding. `attention` saves nothing with `fused_attention`, which never keeps the weights. On a CPU neither saves
      anything without a flag of XLA (docs/performance.md).
    fused_attention: whether updates compute eq. 1 with cuDNN's kernel, which never stores the attention weights. It
      needs an NVIDIA GPU, bfloat16, no attention dropout, and d_k = d_v, a multiple of 8 up to 128. Validation and
      decoding run without it, on any device.
  """

  vocab_size: int = 37_000
  source_vocab_size: int | None = None
  num_layers: int = 6
  encoder_layers: int | None = None
  decoder_layers: int | None = None
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
  logits_bias: bool = False
  start: Start = Start.BOS
  dtype: Dtype = Dtype.FLOAT32
  remat: Remat = Remat.NONE
  fused_attention: bool = False

  def __post_init__(self):
    super().__post_init__()
    for name in ("vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions"):
      require_key(self, f"model.{name}", getattr(self, name) > 0, "positive")
    for name in ("source_vocab_size", "encoder_layers", "decoder_layers", "d_k", "d_v", "attention_window"):
      value = getattr(self, name)
      require_key(self, f"model.{name}", value is None or value > 0, "positive or None")
    for name in ("d_k", "d_v"):
      if getattr(self, name) is None and self.d_model % self.num_heads:
        raise InputError(
          f"config.model.num_heads is {self.num_heads}, which does not divide config.model.d_model = {self.d_model}: "
          f"choose another number of heads, or set config.model.{name}"
        )
    if self.source_vocab_size and self.share_embeddings:
      raise InputError(
        f"config.model.share_embeddings is True, but two vocabularies cannot share a table: set it to False, or leave "
        f"config.model.source_vocab_size = {self.source_vocab_size} out"
      )
    for name in ("dropout", "attention_dropout"):
      require_key(self, f"model.{name}", 0 <= getattr(self, name) < 1, "at least 0 and below 1")
    least, most = FLOAT32
    require_key(self, "model.layer_norm_epsilon", least <= self.layer_norm_epsilon <= most, f"from {least} to {most}")
    pairs = self.learned_positions or self.d_model % 2 == 0
    require_key(self, "model.d_model", pairs, "even, as positions are pairs of sine and cosine")
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
      require(f"model.{key}", value, fits, f"{expected} with config.model.fused_attention")

  @property
  def encoder_depth(self) -> int:
    """The layers of the encoder."""
    return self.num_layers if self.encoder_layers is None else self.encoder_layers

  @property
  def decoder_depth(self) -> int:
    """The layers of the decoder."""
    return self.num_layers if self.decoder_layers is None else self.decoder_layers

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

  @property
  def start_token(self) -> int:
    return {Start.BOS: BOS, Start.PAD: PAD}[self.start]
