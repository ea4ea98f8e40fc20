"""Table 2: what the paper prints, the costs from devices and days, and what is said of the table."""

import functools
import re

import pytest

from tests.paper import documented
from tests.paper.documented import DOCS, decimals
from transformer_jax.__main__ import main
from transformer_jax.paper.table2 import report
from transformer_jax.paper.table2.systems import FIRST_BIG_EN_FR, SYSTEMS

assert_documented = functools.partial(documented.assert_documented, "table2.md")

# The table once more from the paper. A dash is an empty cell.
PRINTED = """\
ByteNet                      23.75 -     -      -
Deep-Att + PosUnk            -     39.2  -      1.0e20
GNMT + RL                    24.6  39.92 2.3e19 1.4e20
ConvS2S                      25.16 40.46 9.6e18 1.5e20
MoE                          26.03 40.56 2.0e19 1.2e20
Deep-Att + PosUnk Ensemble   -     40.4  -      8.0e20
GNMT + RL Ensemble           26.30 41.16 1.8e20 1.1e21
ConvS2S Ensemble             26.36 41.29 7.7e19 1.2e21
Transformer (base model)     27.3  38.1  3.3e18 3.3e18
Transformer (big)            28.4  41.8  2.3e19 2.3e19
"""
CELLS = [line.rsplit(maxsplit=4) for line in PRINTED.splitlines()]
EARLIER = {name: cells for name, *cells in CELLS if "Transformer" not in name}
ENSEMBLES = {name: cells for name, cells in EARLIER.items() if "Ensemble" in name}
SINGLE = {name: cells for name, cells in EARLIER.items() if "Ensemble" not in name}
TRANSFORMERS = {"base": CELLS[-2][1:], "big": CELLS[-1][1:]}
SCORE_DE, SCORE_FR, COST_DE, COST_FR = range(4)


def column(systems, index):
  """The numbers of a column, by system."""
  return {name: float(cells[index]) for name, cells in systems.items() if cells[index] != "-"}


def ours(name, index):
  return float(TRANSFORMERS[name][index])


def relative(name, index):
  """The cost of a Transformer over that of each other system."""
  return {other: ours(name, index) / cost for other, cost in column(EARLIER, index).items()}


def test_the_systems_have_what_the_paper_prints():
  found = [[s.name, *(v.get(pair, "-") for v in (s.bleu, s.cost) for pair in ("En-De", "En-Fr"))] for s in SYSTEMS]
  assert found == CELLS
  assert [system.models for system in SYSTEMS] == [8 if name in ENSEMBLES else 1 for name, *_ in CELLS]


def test_the_page_has_the_tables_that_the_command_prints(capsys):
  assert main(["paper", "--table", "2"]) == 0
  tables = capsys.readouterr().out
  assert tables == report.text()
  page = (DOCS / "table2.md").read_text()
  for table in tables.strip().split("\n\n"):
    assert f"\n\n{table}\n" in page


def test_the_page_names_tests_that_exist():
  named = set(re.findall(r"test_table2\.py::(\w+)", (DOCS / "table2.md").read_text()))
  assert len(named) == 10 and named <= globals().keys()


@pytest.mark.parametrize("number", ["1", "3", "x"])
def test_another_table_is_refused(number, capsys):
  assert main(["paper", f"--table={number}"]) == 2
  assert "--table" in capsys.readouterr().err


# Hours of one model on all its devices, and the sustained TFLOPS of one device.
HOURS = {
  ("GNMT + RL", "En-De"): (24 * 96, 2.8),
  ("GNMT + RL", "En-Fr"): (6 * 24 * 96, 2.8),
  ("ConvS2S", "En-De"): (444, 6.0),
  ("ConvS2S", "En-Fr"): (37 * 24 * 8, 6.0),
  ("MoE", "En-De"): (24 * 64, 3.7),
  ("MoE", "En-Fr"): (6 * 24 * 64, 3.7),
  ("Transformer (base model)", "En-De"): (12 * 8, 9.5),
  ("Transformer (base model)", "En-Fr"): (12 * 8, 9.5),
  ("Transformer (big)", "En-De"): (84 * 8, 9.5),
  ("Transformer (big)", "En-Fr"): (84 * 8, 9.5),
}


def test_costs_are_time_times_devices_times_rate():
  found, printed = {}, {}
  for system in SYSTEMS:
    for pair, training in system.training.items():
      hours, teraflops = HOURS[system.name.removesuffix(" Ensemble"), pair]
      found[system.name, pair] = system.recomputed_cost(pair)
      printed[system.name, pair] = float(system.cost[pair])
      assert found[system.name, pair] == pytest.approx(system.models * hours * 3600 * teraflops * 1e12, rel=1e-12)
      assert training.source
  wrong = [key for key, cost in found.items() if float(f"{cost:.1e}") != printed[key]]
  assert wrong == [("GNMT + RL Ensemble", "En-De")]
  # The printed cost of an ensemble is that of eight models, rounded once more.
  for index in (COST_DE, COST_FR):
    for name, cost in column(ENSEMBLES, index).items():
      assert float(f"{8 * column(SINGLE, index)[name.removesuffix(' Ensemble')]:.1e}") == cost
  one = column(SINGLE, COST_DE)["GNMT + RL"]
  costs = [report.scientific(cost, 2) for cost in (found[wrong[0]], 8 * one)]
  numbers = f"{len(found) - 1} {len(found)} {costs[0]} {ENSEMBLES['GNMT + RL Ensemble'][COST_DE]} 8"
  numbers += f" {SINGLE['GNMT + RL'][COST_DE]} {costs[1]}"
  assert_documented(test_costs_are_time_times_devices_times_rate, "holds corrected", numbers)
  rates = "2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100"
  assert rates in " ".join((DOCS / "table2.md").read_text().split())


def test_steps_take_a_little_less_than_the_printed_time():
  base, big = 100_000 * 0.4, 300_000 * 1.0  # seconds
  assert base < 12 * 3600 and big < 3.5 * 24 * 3600
  costs = " ".join(report.scientific(seconds * 8 * 9.5e12, 2) for seconds in (base, big))
  assert_documented(
    test_steps_take_a_little_less_than_the_printed_time,
    "holds corrected",
    f"100,000 0.4 12 300,000 1.0 3.5 {base / 3600:.1f} {big / 3600 / 24:.2f} {costs}",
  )


# What is said of the table. A later version of Gehring et al. 2017 has other ensembles in its Table 2.
LATER_DE, LATER_FR = 26.43, (41.44, 41.62)


def test_big_is_two_bleu_better_in_german():
  best, big = max(column(EARLIER, SCORE_DE).values()), ours("big", SCORE_DE)
  assert best == column(ENSEMBLES, SCORE_DE)["ConvS2S Ensemble"] and round(big - best, 2) > 2.0
  numbers = f"2.0 {big} {big - best:.2f} {best} {LATER_DE} {big} {big - LATER_DE:.2f}"
  assert_documented(test_big_is_two_bleu_better_in_german, "holds", numbers)


def test_base_is_better_in_german():
  best, base = max(column(EARLIER, SCORE_DE).values()), ours("base", SCORE_DE)
  assert base > best
  assert_documented(test_base_is_better_in_german, "holds", f"{base} {decimals([base - best], 2)} {best}")


def test_base_costs_a_fraction_in_german():
  fractions = relative("base", COST_DE)
  assert max(fractions, key=fractions.get) == "ConvS2S" and min(fractions, key=fractions.get) == "GNMT + RL Ensemble"
  most, least = max(fractions.values()), min(fractions.values())
  assert most < 1
  assert_documented(test_base_costs_a_fraction_in_german, "holds", f"{decimals([most], 2)} {decimals([least], 3)}")


def test_big_is_better_than_single_models_in_french():
  single, big = column(SINGLE, SCORE_FR), ours("big", SCORE_FR)
  assert max(single, key=single.get) == "MoE" and single["MoE"] < FIRST_BIG_EN_FR < big
  assert_documented(
    test_big_is_better_than_single_models_in_french, "holds", f"{FIRST_BIG_EN_FR} {big} {single['MoE']}"
  )


def test_big_costs_a_quarter_in_french():
  fraction = relative("big", COST_FR)["MoE"]
  assert fraction < 1 / 4
  assert_documented(
    test_big_costs_a_quarter_in_french, "holds", f"1 4 {decimals([fraction], 2)} {SINGLE['MoE'][COST_FR]}"
  )


def test_big_is_better_than_ensembles_in_french_in_one_version_only():
  ensembles, big = column(ENSEMBLES, SCORE_FR), ours("big", SCORE_FR)
  best, second = ensembles["ConvS2S Ensemble"], ensembles["GNMT + RL Ensemble"]
  assert FIRST_BIG_EN_FR == 41.0 and ensembles["Deep-Att + PosUnk Ensemble"] < FIRST_BIG_EN_FR < second < best < big
  assert max(LATER_FR) < big
  numbers = f"{big} {decimals([big - best], 2)} {best} {FIRST_BIG_EN_FR} {second} {LATER_FR[0]} {LATER_FR[1]} {big}"
  assert_documented(test_big_is_better_than_ensembles_in_french_in_one_version_only, "holds corrected", numbers)


def test_base_is_worse_than_all_others_in_french():
  others, base = column(EARLIER, SCORE_FR).values(), ours("base", SCORE_FR)
  assert base < min(others)
  assert_documented(
    test_base_is_worse_than_all_others_in_french, "does not hold", f"{base} {len(others)} {min(others)}"
  )


def test_big_is_not_cheap_in_german():
  german, french = relative("big", COST_DE), relative("big", COST_FR)
  assert [name for name, fraction in german.items() if fraction < 1] == ["GNMT + RL Ensemble", "ConvS2S Ensemble"]
  assert max(relative("base", COST_DE).values()) < 1 and max(relative("base", COST_FR).values()) < 1
  dear = [german[name] for name in ("GNMT + RL", "MoE", "ConvS2S")]
  cheap = [german[name] for name in ("GNMT + RL Ensemble", "ConvS2S Ensemble")]
  numbers = f"{decimals(dear, 2)} {decimals(cheap, 2)}"
  numbers += f" {decimals([min(french.values())], 3)} {decimals([max(french.values())], 2)}"
  assert_documented(test_big_is_not_cheap_in_german, "holds corrected", numbers)
