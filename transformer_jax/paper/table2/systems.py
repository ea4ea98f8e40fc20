"""The systems of Table 2 (§6.1) as printed, and what their training costs are made of."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

PAIRS: tuple[str, ...] = ("En-De", "En-Fr")
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}  # operations per second, footnote 5
SECONDS_A_DAY = 24 * 60 * 60

# BLEU of Transformer (big), En-Fr, in the first arXiv version and in the proceedings.
FIRST_BIG_EN_FR = 41.0


class Training(NamedTuple):
  """What one model was trained on.

  Attributes:
    devices: how many, of one kind.
    device: a key of `SUSTAINED`.
    days: how long.
    source: who says so.
  """

  devices: int
  device: str
  days: float
  source: str

  @property
  def cost(self) -> float:
    """Time times devices times the sustained rate of a device (§6.1): floating-point operations."""
    return self.days * SECONDS_A_DAY * self.devices * SUSTAINED[self.device]


class System(NamedTuple):
  """A row of Table 2; the mappings go from a language pair to its value, where the table has one.

  Attributes:
    name: its name as printed.
    bleu: BLEU on newstest2014, with the printed digits.
    cost: the training cost in floating-point operations, with the printed digits.
    training: the devices and days of one model, where its authors give them.
    models: how many models the system has.
  """

  name: str
  bleu: Mapping[str, str]
  cost: Mapping[str, str] = MappingProxyType({})
  training: Mapping[str, Training] = MappingProxyType({})
  models: int = 1

  def recomputed_cost(self, pair: str) -> float:
    """The training cost of all models, from devices and days."""
    return self.models * self.training[pair].cost


_GNMT = {
  "En-De": Training(96, "K80", 1, "Shazeer et al. 2017, Table 3"),
  "En-Fr": Training(96, "K80", 6, "Wu et al. 2016; Shazeer et al. 2017, Table 2"),
}
_CONVS2S = {
  "En-De": Training(1, "M40", 18.5, "Gehring et al. 2017, §5.1"),
  "En-Fr": Training(8, "M40", 37, "Gehring et al. 2017, §5.1"),
}
_MOE = {
  "En-De": Training(64, "K40", 1, "Shazeer et al. 2017, Table 3"),
  "En-Fr": Training(64, "K40", 6, "Shazeer et al. 2017, Table 2"),
}
_BASE = {pair: Training(8, "P100", 0.5, "§5.2: 12 hours") for pair in PAIRS}
_BIG = {pair: Training(8, "P100", 3.5, "§5.2") for pair in PAIRS}

EARLIER = (
  System("ByteNet", {"En-De": "23.75"}),
  System("Deep-Att + PosUnk", {"En-Fr": "39.2"}, {"En-Fr": "1.0e20"}),
  System("GNMT + RL", {"En-De": "24.6", "En-Fr": "39.92"}, {"En-De": "2.3e19", "En-Fr": "1.4e20"}, _GNMT),
  System("ConvS2S", {"En-De": "25.16", "En-Fr": "40.46"}, {"En-De": "9.6e18", "En-Fr": "1.5e20"}, _CONVS2S),
  System("MoE", {"En-De": "26.03", "En-Fr": "40.56"}, {"En-De": "2.0e19", "En-Fr": "1.2e20"}, _MOE),
  System("Deep-Att + PosUnk Ensemble", {"En-Fr": "40.4"}, {"En-Fr": "8.0e20"}, models=8),
  System(
    "GNMT + RL Ensemble",
    {"En-De": "26.30", "En-Fr": "41.16"},
    {"En-De": "1.8e20", "En-Fr": "1.1e21"},
    _GNMT,
    models=8,
  ),
  System(
    "ConvS2S Ensemble",
    {"En-De": "26.36", "En-Fr": "41.29"},
    {"En-De": "7.7e19", "En-Fr": "1.2e21"},
    _CONVS2S,
    models=8,
  ),
)
BASE = System(
  "Transformer (base model)", {"En-De": "27.3", "En-Fr": "38.1"}, {"En-De": "3.3e18", "En-Fr": "3.3e18"}, _BASE
)
BIG = System("Transformer (big)", {"En-De": "28.4", "En-Fr": "41.8"}, {"En-De": "2.3e19", "En-Fr": "2.3e19"}, _BIG)
SYSTEMS = (*EARLIER, BASE, BIG)
