"""Table 4 (§6.3), English constituency parsing: the results as printed, and the settings of the paper's two parsers."""

from typing import Any, NamedTuple


class Parser(NamedTuple):
  """A row of Table 4.

  Attributes:
    name: its name as printed.
    training: what it was trained on or how, as printed.
    f1: the F1 on section 23 of the Wall Street Journal.
  """

  name: str
  training: str
  f1: float


PARSERS = (
  Parser("Vinyals & Kaiser et al. (2014)", "WSJ only, discriminative", 88.3),
  Parser("Petrov et al. (2006)", "WSJ only, discriminative", 90.4),
  Parser("Zhu et al. (2013)", "WSJ only, discriminative", 90.4),
  Parser("Dyer et al. (2016)", "WSJ only, discriminative", 91.7),
  Parser("Transformer (4 layers)", "WSJ only, discriminative", 91.3),
  Parser("Zhu et al. (2013)", "semi-supervised", 91.3),
  Parser("Huang & Harper (2009)", "semi-supervised", 91.3),
  Parser("McClosky et al. (2006)", "semi-supervised", 92.1),
  Parser("Vinyals & Kaiser et al. (2014)", "semi-supervised", 92.1),
  Parser("Transformer (4 layers)", "semi-supervised", 92.7),
  Parser("Luong et al. (2015)", "multi-task", 93.0),
  Parser("Dyer et al. (2016)", "generative", 93.3),
)


class Setting(NamedTuple):
  """One of the paper's two parsers.

  Attributes:
    model, decode: the fields of `config.model` and `config.decode` that differ from the base model of translation.
    sentences: about how many sentences it was trained on.
  """

  model: dict[str, Any]
  decode: dict[str, Any]
  sentences: int


_LAYERS = {"num_layers": 4, "d_model": 1024}
_SEARCH = {"beam_size": 21, "length_penalty": 0.3, "extra_length": 300}

SETTINGS = {
  "wsj": Setting(_LAYERS | {"vocab_size": 16_000}, _SEARCH, 40_000),
  "semi-supervised": Setting(_LAYERS | {"vocab_size": 32_000}, _SEARCH, 17_000_000),
}
