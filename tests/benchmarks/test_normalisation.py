"""benchmarks/normalisation.py: both normalisations in NumPy, and what a sentence's values depend on."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytestmark = pytest.mark.long


@pytest.fixture
def normalisation(program):
  return program("normalisation")


def standardised(x, values):
  """x with the mean and the variance of `values`, along their first axis."""
  return (x - values.mean(axis=0)) / np.sqrt(values.var(axis=0) + 1e-6)


def test_the_statistics_are_of_a_token_or_of_a_batch(normalisation):
  x, real = (np.asarray(part) for part in normalisation.inputs(normalisation.ROW))
  x = x.astype(np.float64)
  expected = {
    "layer normalisation": np.stack([[standardised(token, token) for token in row] for row in x]),
    "batch normalisation": standardised(x, x.reshape(-1, x.shape[-1])),
    "batch normalisation without padding": standardised(x, x[real]),
  }
  for name, norm in normalisation.NORMS.items():
    np.testing.assert_allclose(norm(x.astype(np.float32), real), expected[name], atol=1e-4)


def test_a_sentence_changes_with_its_neighbours_under_batch_normalisation_alone(normalisation):
  layer, batch, masked = normalisation.NORMS
  found = {name: normalisation.change(changed) for name, changed in normalisation.CHANGES.items()}
  assert found.pop("nothing") == dict.fromkeys(normalisation.NORMS, "0")
  for change in found.values():
    assert change[layer] == "0"
    assert float(change[batch]) > 0.02 and float(change[masked]) > 0.02


def test_a_value_depends_on_its_token_or_on_one_number_of_all_tokens(normalisation):
  seen = [normalisation.dependence(norm) for norm in normalisation.NORMS.values()]
  _, real = normalisation.inputs(normalisation.ROW)
  expected = np.zeros((3, 2, 12, 8), bool)
  expected[0, 0, 1, :] = True
  expected[1, :, :, 2] = True
  expected[2, :, :, 2] = real
  np.testing.assert_array_equal(seen, expected)


def test_the_picture_is_drawn(normalisation, tmp_path):
  pytest.importorskip("matplotlib", reason="the extra `benchmarks` installs it")
  normalisation.draw({"layer": np.ones((2, 12, 8))}, str(tmp_path / "picture.svg"))
  ET.parse(tmp_path / "picture.svg")
  assert normalisation.labels([[5, 6], [7]], "c")[:4] == ["c1", "c2", "d1", "·"]
