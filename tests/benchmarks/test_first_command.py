"""benchmarks/first_command.py: numbers by which nothing was chosen, and the table."""

import collections

import pytest

from transformer_jax.data.numbers import distinct_numbers


@pytest.fixture
def first_command(program):
  return program("first_command")


@pytest.mark.long
def test_new_numbers_are_in_no_split(first_command):
  numbers = first_command.in_no_split()
  assert collections.Counter(len(str(number)) for number in set(numbers)) == {5: 500, 6: 500}
  for split, by_digits in distinct_numbers().items():
    assert not {*numbers} & {number for known in by_digits.values() for number in known}, split


def test_results_of_other_keys_are_refused(first_command, tmp_path):
  first_command.require_same_keys(tmp_path, ["a=1"])
  (tmp_path / "de-seed-3-devices-2.json").write_text('{"keys": ["a=1"]}')
  first_command.require_same_keys(tmp_path, ["a=1"])
  with pytest.raises(SystemExit, match=r"de-seed-3-devices-2\.json has other keys: choose another --output"):
    first_command.require_same_keys(tmp_path, [])


@pytest.mark.parametrize("new", [None, 0.25])
def test_a_row_has_the_mean_of_the_test_numbers_alone(first_command, new):
  match = {"5": 0.5, "6": 1.0, "0 to 100": 0.0} | ({} if new is None else {"in no split": new})
  result = {"language": "de", "seed": 6, "devices": 1, "updates": 7, "seconds of updates": 90, "exact match": match}
  row = first_command.row(result)
  assert row["2 to 6 digits"] == "75.00%"
  assert row["in no split"] == ("" if new is None else "25.00%")


def test_the_numbers_of_the_test_split_are_asked(first_command, monkeypatch):
  """A translator that takes 22 and 345 for other numbers."""
  split = {"train": {2: [40]}, "validation": {2: [41]}, "test": {1: [], 2: [21, 22], 3: [345, 678]}}
  monkeypatch.setattr(first_command, "distinct_numbers", lambda: split)
  monkeypatch.setattr(first_command, "in_no_split", lambda: [54_321])
  words = {first_command.in_words(n, "en"): n for n in (*range(101), 345, 678, 54_321)}
  called = []

  def command(arguments, lines, environment):
    called.append((arguments, environment))
    numbers = [words[line] for line in lines.decode().splitlines()]
    return "".join(f"{'x' if n in (22, 345) else first_command.in_words(n, 'fr')}\n" for n in numbers).encode()

  monkeypatch.setattr(first_command.children, "command", command)
  found = first_command.asked("run", "fr", {"A": "1"})
  assert called == [(["translate", "--workdir", "run"], {"A": "1"})]
  assert found["exact match"] == {"2": 0.5, "3": 0.5, "0 to 100": 100 / 101, "in no split": 1.0}
  assert found["numbers"] == {"2": 2, "3": 2, "0 to 100": 101, "in no split": 1}
  assert found["wrong"] == {"22": "x", "345": "x"}
