"""benchmarks/decoding_speed.py: its table by hand, and sides that compute another function."""

from types import SimpleNamespace

import pytest

from transformer_jax.recurrent.config import BahdanauConfig


@pytest.fixture
def speed(program):
  pytest.importorskip("tabulate")
  return program("decoding_speed")


def entrant(speed, name, seconds, found):
  times = iter([100.0, *seconds])  # the first pass is not counted
  side = SimpleNamespace(name=name, ask=lambda **_: {"seconds": next(times), "found": found})
  return speed.Entrant(name, side, speed.Setting(1, 16, {}), 0.0)


def test_rates_and_the_speedup(speed):
  entrants = [
    entrant(speed, speed.OURS, [1.0, 1.0, 2.0], [("a b", 3), ("c", 2)]),
    entrant(speed, "CTranslate2", [2.0, 5.0, 6.0], [[5, 6], [8]]),
  ]
  tokenizer = SimpleNamespace(decode=lambda tokens: {(5, 6): "a b"}.get(tuple(tokens), "x"))
  ours, theirs = speed.measure(entrants, [0, 1], tokenizer, 3)
  assert (ours["speedup of ours"], ours["sentences/s"], ours["tokens/s"], ours["equal to ours"]) == (1, 2, 5, 1)
  assert (theirs["speedup of ours"], theirs["sentences/s"], theirs["tokens/s"]) == (3, 0.4, 1)
  assert theirs["equal to ours"] == 0.5


@pytest.mark.parametrize(
  ("side", "beam", "refused"), [("CTranslate2", 1, True), ("CTranslate2", 4, False), ("CTranslate2 int8", 1, False)]
)
def test_sides_with_other_translations_are_refused(speed, side, beam, refused):
  row = {"side": side, "beam": beam, "equal to ours": 0.9}
  speed.check_agreement([row], 0.9)
  if refused:
    with pytest.raises(SystemExit, match=r"another greedy translation than ours for 10\.0% of the sentences"):
      speed.check_agreement([row], 0.98)
  else:
    speed.check_agreement([row], 0.98)


def test_a_run_of_another_family_is_refused(speed):
  with pytest.raises(SystemExit, match="RUN has a bahdanau model, which not every peer can compute"):
    speed.require_plain(SimpleNamespace(model=BahdanauConfig()), "RUN")
