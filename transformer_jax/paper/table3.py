"""Table 3's rows: each row's changes of the base model, and the paper's results."""

from typing import Any, NamedTuple


class Row(NamedTuple):
  """A row of Table 3.

  Attributes:
    model, train: the fields of `config.model` and `config.train` that differ from base.
    perplexity: the perplexity per token on newstest2013.
    bleu: BLEU on newstest2013.
    millions: millions of parameters; None where the table leaves it out because it is that of base.
  """

  model: dict[str, Any]
  train: dict[str, Any]
  perplexity: float
  bleu: float
  millions: int | None = None


ROWS = {
  "base": Row({}, {}, 4.92, 25.8, 65),
  "A-h1": Row({"num_heads": 1, "d_k": 512, "d_v": 512}, {}, 5.29, 24.9),
  "A-h4": Row({"num_heads": 4, "d_k": 128, "d_v": 128}, {}, 5.00, 25.5),
  "A-h16": Row({"num_heads": 16, "d_k": 32, "d_v": 32}, {}, 4.91, 25.8),
  "A-h32": Row({"num_heads": 32, "d_k": 16, "d_v": 16}, {}, 5.01, 25.4),
  "B-dk16": Row({"d_k": 16}, {}, 5.16, 25.1, 58),
  "B-dk32": Row({"d_k": 32}, {}, 5.01, 25.4, 60),
  "C-N2": Row({"num_layers": 2}, {}, 6.11, 23.7, 36),
  "C-N4": Row({"num_layers": 4}, {}, 5.19, 25.3, 50),
  "C-N8": Row({"num_layers": 8}, {}, 4.88, 25.5, 80),
  "C-d256": Row({"d_model": 256, "d_k": 32, "d_v": 32}, {}, 5.75, 24.5, 28),
  "C-d1024": Row({"d_model": 1024, "d_k": 128, "d_v": 128}, {}, 4.66, 26.0, 168),
  "C-dff1024": Row({"d_ff": 1024}, {}, 5.12, 25.4, 53),
  "C-dff4096": Row({"d_ff": 4096}, {}, 4.75, 26.2, 90),
  "D-drop0.0": Row({"dropout": 0.0}, {}, 5.77, 24.6),
  "D-drop0.2": Row({"dropout": 0.2}, {}, 4.95, 25.5),
  "D-ls0.0": Row({}, {"label_smoothing": 0.0}, 4.67, 25.3),
  "D-ls0.2": Row({}, {"label_smoothing": 0.2}, 5.47, 25.7),
  "E-learned": Row({"learned_positions": True}, {}, 4.92, 25.7),
  "big": Row({"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3}, {"steps": 300_000}, 4.33, 26.4, 213),
}
