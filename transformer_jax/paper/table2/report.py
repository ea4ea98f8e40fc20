"""Table 2 as Markdown: as printed, with the costs recomputed, and with the costs compared."""

from collections.abc import Iterator

from transformer_jax.paper.markdown import table
from transformer_jax.paper.table2.systems import BASE, BIG, EARLIER, FIRST_BIG_EN_FR, PAIRS, SYSTEMS, System


def text() -> str:
  """The three tables of `docs/table2.md`."""
  return "\n".join([*printed(), "", *recomputed(), "", *compared()]) + "\n"


def printed() -> Iterator[str]:
  """BLEU on newstest2014 and training cost, as the paper prints them."""
  head = ("system", *(f"{what}, {pair}" for what in ("BLEU", "operations") for pair in PAIRS))
  rows = [(s.name, *(values.get(pair, "") for values in (s.bleu, s.cost) for pair in PAIRS)) for s in SYSTEMS]
  *bleu, last = (list(row) for row in rows)
  last[PAIRS.index("En-Fr") + 1] += f" ({FIRST_BIG_EN_FR} at first)"
  return table(head, [*bleu, last])


def recomputed() -> Iterator[str]:
  """The costs from devices and days, where these are known."""
  head = ("system", "pair", "models", "devices", "days", "recomputed", "printed", "devices and days from")
  rows = []
  for system in SYSTEMS:
    for pair, training in system.training.items():
      devices, cost = f"{training.devices} {training.device}", scientific(system.recomputed_cost(pair), 2)
      days, models = f"{training.days:g}", f"{system.models}"
      rows.append((system.name, pair, models, devices, days, cost, system.cost[pair], training.source))
  return table(head, rows)


def compared() -> Iterator[str]:
  """The printed cost of the Transformer over that of each other system."""
  columns = [(name, system, pair) for pair in PAIRS for name, system in (("base", BASE), ("big", BIG))]
  head = ("cost relative to", *(f"{name}, {pair}" for name, _, pair in columns))
  rows = [(other.name, *(_fraction(system, other, pair) for _, system, pair in columns)) for other in EARLIER]
  return table(head, [row for row in rows if any(row[1:])])


def _fraction(system: System, other: System, pair: str) -> str:
  if pair not in other.cost:
    return ""
  value = float(system.cost[pair]) / float(other.cost[pair])
  return f"{value:.2f}" if value >= 0.1 else f"{value:#.2g}"


def scientific(value: float, digits: int) -> str:
  """Such as 2.30e19, as the page writes it."""
  return f"{value:.{digits}e}".replace("e+", "e")
