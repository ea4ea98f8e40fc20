"""Sizes and options of the language models, and the config of the Transformer layers that each consists of."""

from dataclasses import dataclass, fields

from transformer_jax.model.config import Activation, AnyModelConfig, Dtype, ModelConfig
from transformer_jax.model.special_tokens import BOS, EOS
from transformer_jax.runtime.errors import InputError, require_key


@dataclass(unsafe_hash=True)
class BlocksConfig(AnyModelConfig):
  """The part that GPT and BERT have in common; the defaults are the sizes of both papers.

  Attributes:
    num_layers: the number of layers, each with self-attention and feed-forward.
    d_model, d_ff, num_heads: as in the Transformer.
    max_positions: rows of the table of positions, and so the longest text that can be read or written.
    dropout: applied to each sub-layer's output, to the sum of embeddings and before a classifier.
    attention_dropout: applied to the attention weights.
    pre_norm: LayerNorm before each sub-layer and after the last one, as in GPT-2 (Radford et al. 2019). Both papers
      have it after each sub-layer.
    dtype: the type of matmuls.
    activation: the function between the two matmuls of a feed-forward layer. GPT's authors have `gelu-tanh`. BERT's
      first release and Hugging Face have `gelu`; BERT's authors have `gelu-tanh` now.
    layer_norm_epsilon: is added to the variance; the default is that of the authors' code.
  """

  num_layers: int = 12
  d_model: int = 768
  d_ff: int = 3072
  num_heads: int = 12
  max_positions: int = 512
  dropout: float = 0.1
  attention_dropout: float = 0.1
  pre_norm: bool = False
  dtype: Dtype = Dtype.FLOAT32
  activation: Activation = Activation.GELU
  layer_norm_epsilon: float = 1e-12

  translates = False

  def __post_init__(self):
    super().__post_init__()
    if self.num_heads > 0 and self.d_model % self.num_heads:
      raise InputError(
        f"config.model.num_heads is {self.num_heads}, which does not divide config.model.d_model = {self.d_model}: "
        "choose another number of heads"
      )
    _ = self.blocks  # its checks raise errors that name the keys

  @property
  def blocks(self) -> ModelConfig:
    """The config of the Transformer layers, with biases."""
    own = {field.name: getattr(self, field.name) for field in fields(BlocksConfig)}
    return ModelConfig(**own, learned_positions=True, attention_bias=True)

  @property
  def most_positions(self) -> int | None:
    return self.max_positions


@dataclass(unsafe_hash=True)
class GPTConfig(BlocksConfig):
  """GPT (Radford et al. 2018): the Transformer's decoder without an encoder; the defaults are the paper's.

  Attributes:
    vocab_size: entries of the vocabulary; the tokenizer learns exactly that many.
    begin, end: the numbers of the tokens before and after a text. Only an imported vocabulary needs other ones.
  """

  vocab_size: int = 40_000
  activation: Activation = Activation.GELU_TANH
  layer_norm_epsilon: float = 1e-5
  begin: int = BOS
  end: int = EOS

  def __post_init__(self):
    super().__post_init__()
    for name in ("begin", "end"):
      is_token = 0 <= getattr(self, name) < self.vocab_size
      require_key(self, f"model.{name}", is_token, f"0 or more, and below {self.vocab_size}")

  @property
  def start_token(self) -> int:
    return self.begin

  @property
  def end_token(self) -> int:
    return self.end


@dataclass(unsafe_hash=True)
class BERTConfig(BlocksConfig):
  """BERT (Devlin et al. 2019): the Transformer's encoder alone; the defaults are the paper's base model.

  Attributes:
    vocab_size: entries of the vocabulary; the tokenizer learns exactly that many.
  """

  vocab_size: int = 30_000


@dataclass(unsafe_hash=True)
class BERTClassifierConfig(BERTConfig):
  """BERT with a layer that classifies sentences.

  Attributes:
    labels: the names of the classes, separated by commas.
  """

  labels: str = "0,1"

  def __post_init__(self):
    super().__post_init__()
    names = self.classes
    good = 1 < len(names) == len(set(names)) and all(names) and self.labels.isprintable()
    require_key(self, "model.labels", good, "the different names of two or more classes, separated by commas")

  @property
  def classes(self) -> list[str]:
    """The names of the classes, in the order of their numbers."""
    return [name.strip() for name in self.labels.split(",")]


@dataclass(unsafe_hash=True)
class ELMoConfig(AnyModelConfig):
  """ELMo (Peters et al. 2018): two layers of LSTMs in each direction.

  Attributes:
    vocab_size: entries of the vocabulary; the tokenizer learns exactly that many.
    num_layers: LSTMs in each direction.
    d_model: width of the embeddings and of each LSTM; features are twice as wide.
    dropout: applied to the input of each LSTM.
    dtype: the type of matmuls.
  """

  vocab_size: int = 32_000
  num_layers: int = 2
  d_model: int = 512
  dropout: float = 0.1
  dtype: Dtype = Dtype.FLOAT32

  translates = False

  def __post_init__(self):
    super().__post_init__()
    for name in ("vocab_size", "num_layers", "d_model"):
      require_key(self, f"model.{name}", getattr(self, name) > 0, "positive")
    require_key(self, "model.dropout", 0 <= self.dropout < 1, "at least 0 and below 1")
