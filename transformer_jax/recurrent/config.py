"""Sizes and options of the recurrent models. Widths, depths and dropout are by default the papers', but for Bahdanau's
maxout layer, which is as wide as the embeddings; the vocabulary is the Transformer's. Luong's default score is
`general`, though their paper finds `dot` good for global attention.

The papers have three tables of embeddings: source, target and output. Here they are one, as in the Transformer, so that
models of equal size differ in their architecture alone. A source with a vocabulary of its own has a table of its own.
"""

import enum
from dataclasses import dataclass
from typing import ClassVar

from transformer_jax.model.config import AnyModelConfig, Dtype
from transformer_jax.runtime.errors import require_key


class Cell(enum.Enum):
  """The recurrent unit of a stack: `lstm.py`, `gru.py` and `rnn.py`."""

  LSTM = "lstm"
  GRU = "gru"
  RNN = "rnn"


class Score(enum.Enum):
  """The function by which Luong et al. compare a target state h_t with a source state (`attention.py`)."""

  DOT = "dot"
  GENERAL = "general"
  CONCAT = "concat"


@dataclass(unsafe_hash=True)
class RecurrentConfig(AnyModelConfig):
  """The part that the recurrent models have in common.

  Attributes:
    vocab_size: entries of the one vocabulary, shared by both languages.
    source_vocab_size: entries of a vocabulary for the source alone, so that `vocab_size` counts the target's; None is
      one vocabulary for both.
    d_model: width of the embeddings and of the output layer's input.
    hidden_size: width of a recurrent state.
    dropout: applied to the embeddings, between layers and before the output layer, never from one position to the next
      (Zaremba et al. 2014).
    dtype: the type of matmuls of the layers; states, and attention over them, are float32.
  """

  chooses_inputs: ClassVar[bool] = True

  vocab_size: int = 37_000
  source_vocab_size: int | None = None
  d_model: int = 1000
  hidden_size: int = 1000
  dropout: float = 0.0
  dtype: Dtype = Dtype.FLOAT32

  def __post_init__(self):
    super().__post_init__()
    for name in ("vocab_size", "d_model", "hidden_size", "num_layers", "attention_size"):
      if hasattr(self, name):  # not every model has all
        require_key(self, f"model.{name}", getattr(self, name) > 0, "positive")
    size = self.source_vocab_size
    require_key(self, "model.source_vocab_size", size is None or size > 0, "positive or None")
    require_key(self, "model.dropout", 0 <= self.dropout < 1, "at least 0 and below 1")


@dataclass(unsafe_hash=True)
class SequenceToSequenceConfig(RecurrentConfig):
  """Sutskever et al. 2014; by option Cho et al. 2014 or a network of simple recurrent units.

  Attributes:
    num_layers: layers on top of one another, in the encoder and in the decoder.
    reverse_source: read the source from its last token to its first.
    cell: the unit of all layers: `lstm`, `gru` or `rnn`.
    feed_context: the encoder's last output is an input of each step of the decoder and of the output layer, as in
      Cho et al. 2014; otherwise the decoder only begins with the encoder's last state.
  """

  num_layers: int = 4
  reverse_source: bool = True
  cell: Cell = Cell.LSTM
  feed_context: bool = False


@dataclass(unsafe_hash=True)
class BahdanauConfig(RecurrentConfig):
  """Bahdanau et al. 2015: one layer of GRUs in each direction of the encoder, and one in the decoder.

  Attributes:
    attention_size: n', the width of the vectors by which states are compared.
  """

  d_model: int = 620
  attention_size: int = 1000


@dataclass(unsafe_hash=True)
class LuongConfig(RecurrentConfig):
  """Luong et al. 2015, with global attention.

  Attributes:
    num_layers: LSTMs on top of one another, in the encoder and in the decoder.
    reverse_source: read the source from its last token to its first.
    score: how states are compared.
    input_feeding: the attentional vector of one step is an input of the next step.
  """

  dropout: float = 0.2
  num_layers: int = 4
  reverse_source: bool = True
  score: Score = Score.GENERAL
  input_feeding: bool = True
  cell: ClassVar[Cell] = Cell.LSTM
  feed_context: ClassVar[bool] = False  # attention gives each step a context of its own
