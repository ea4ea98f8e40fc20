"""The claims of teaching material on sinusoidal positions, with the right values (`docs/lecture.md`)."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import options
from tests.paper.documented import DOCS, decimals
from tests.paper.lecture import assert_documented
from transformer_jax.model.embedding import Embedding
from transformer_jax.model.positional_encoding import sinusoids

POSITIONS = np.arange(10)
NORMS = DOCS / "results" / "embedding_norms.json"

# Positions 0 to 9 at d_model = 10.
TABLE = [
  [0.000, 1.000, 0.000, 1.000, 0.000, 1.000, 0.000, 1.000, 0.000, 1.000],
  [0.841, 0.540, 0.158, 0.987, 0.025, 1.000, 0.004, 1.000, 0.001, 1.000],
  [0.909, -0.416, 0.312, 0.950, 0.050, 0.999, 0.008, 1.000, 0.001, 1.000],
  [0.141, -0.990, 0.458, 0.889, 0.075, 0.997, 0.012, 1.000, 0.002, 1.000],
  [-0.757, -0.654, 0.592, 0.806, 0.100, 0.995, 0.016, 1.000, 0.003, 1.000],
  [-0.959, 0.284, 0.712, 0.702, 0.125, 0.992, 0.020, 1.000, 0.003, 1.000],
  [-0.279, 0.960, 0.814, 0.581, 0.150, 0.989, 0.024, 1.000, 0.004, 1.000],
  [0.657, 0.754, 0.895, 0.445, 0.175, 0.985, 0.028, 1.000, 0.004, 1.000],
  [0.989, -0.146, 0.954, 0.298, 0.200, 0.980, 0.032, 0.999, 0.005, 1.000],
  [0.412, -0.911, 0.990, 0.144, 0.224, 0.975, 0.036, 0.999, 0.006, 1.000],
]


def encoding(positions, d_model=10):
  return np.asarray(sinusoids(jnp.asarray(positions), d_model), np.float64)


def test_ten_positions_of_ten_numbers():
  np.testing.assert_allclose(encoding(POSITIONS), TABLE, atol=5.1e-4)
  numbers = f"0 9 10 1 {decimals(encoding(POSITIONS)[1], 3)}"
  assert_documented(test_ten_positions_of_ten_numbers, "holds", numbers)


def test_angles_of_a_width_of_50_give_another_table():
  columns, right = np.arange(10), encoding(POSITIONS)
  np.testing.assert_allclose(right[1, ::2], [0.841, 0.158, 0.025, 0.004, 0.001], atol=5.1e-4)
  # In 10000^(-j / 50), j is the column, or for a cosine that of its sine.
  for j in (columns, columns // 2 * 2):
    angles = POSITIONS[:, None] * 10_000.0 ** (-j / 50)
    wrong = np.where(columns % 2, np.cos(angles), np.sin(angles))
    np.testing.assert_allclose(wrong[1, ::2], [0.841, 0.638, 0.461, 0.325, 0.227], atol=5.1e-4)
    np.testing.assert_allclose(wrong[:, ::2], encoding(POSITIONS, 50)[:, :10:2], atol=1e-5)
    assert np.all(np.max(np.abs(wrong - right), axis=0)[2:] > 0.1)
    numbers = f"10000 50 50 1 {decimals(wrong[1, ::2], 3)}"
    test = test_angles_of_a_width_of_50_give_another_table
    assert_documented(test, "does not hold", numbers, "pos * 10000^(-j/50)")


@pytest.mark.parametrize("d_model", [10, 22, 512])
def test_the_squared_norm_is_half_the_width(d_model):
  norms = np.sum(encoding([0, 1, 9, 317, 10_007], d_model) ** 2, axis=1)
  np.testing.assert_allclose(norms, d_model / 2, rtol=1e-6)
  assert_documented(test_the_squared_norm_is_half_the_width, "holds", "2 1", "d/2", "sin^2 + cos^2 = 1")


@pytest.mark.parametrize("d_model", [10, 22, 512])
def test_there_are_half_as_many_frequencies_as_numbers(d_model):
  sine, cosine = encoding([1], d_model).reshape(-1, 2).T
  frequencies = np.arctan2(sine, cosine)  # the angle at position 1
  assert frequencies[0] == pytest.approx(1)
  np.testing.assert_allclose(frequencies[1:] / frequencies[:-1], 10_000 ** (-2 / d_model), rtol=1e-5)
  assert len(set(frequencies)) == d_model // 2
  formulas = "d/2 different", "are 10000^(-2i/d)", "is 10000^(-2/d) times"
  assert_documented(test_there_are_half_as_many_frequencies_as_numbers, "holds", "2 10000 10000 2", *formulas)


def rotation(offset, d_model=10):
  """A turn of each pair of sine and cosine by offset * frequency: `[model, model]`."""
  matrix = np.zeros((d_model, d_model))
  for i in range(d_model // 2):
    angle = offset / 10_000 ** (2 * i / d_model)
    block = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
  return matrix


@pytest.mark.parametrize("offset", [1, 4, 97])
def test_a_shift_is_a_rotation_by_the_offset_alone(offset):
  matrix = rotation(offset)
  np.testing.assert_allclose(matrix @ matrix.T, np.eye(10), atol=1e-12)
  assert np.linalg.det(matrix) == pytest.approx(1)
  positions = np.arange(101)
  np.testing.assert_allclose(encoding(positions + offset), encoding(positions) @ matrix.T, atol=1e-4)
  assert_documented(test_a_shift_is_a_rotation_by_the_offset_alone, "holds", "")


def distances(start, offsets, d_model=10):
  return np.linalg.norm(encoding(start + offsets, d_model) - encoding([start], d_model), axis=1)


def test_the_distance_depends_on_the_offset_alone():
  frequencies = 10_000.0 ** (-np.arange(0, 10, 2) / 10)
  expected = np.sqrt(np.sum(4 * np.sin(POSITIONS[:, None] * frequencies / 2) ** 2, axis=1))
  for start in (0, 1, 31, 101):
    np.testing.assert_allclose(distances(start, POSITIONS), expected, atol=1e-4)
  assert_documented(test_the_distance_depends_on_the_offset_alone, "holds", "4 2", "4 sin^2(k w / 2)")


def test_the_distance_does_not_always_grow_with_the_offset():
  found = distances(0, POSITIONS)
  written_out = [0, 0.972, 1.713, 2.051, 1.925, 1.430, 0.970, 1.278, 1.933, 2.364]
  np.testing.assert_allclose(found, written_out, atol=5.1e-4)
  assert list(np.sign(np.diff(found))) == [1, 1, 1, -1, -1, -1, 1, 1, 1]
  assert found[6] < found[1]
  # At the base model's width it grows for longer, up to offset 43.
  grows_up_to = np.argmax(np.diff(distances(0, np.arange(100), 512)) < 0)
  assert grows_up_to == 43
  first, then, last = decimals(found[1:4], 3), decimals(found[4:7], 3), decimals(found[9:], 3)
  numbers = f"10 {first} 1 3 {then} 4 6 1 {last} 9 512 {grows_up_to + 1}"
  assert_documented(test_the_distance_does_not_always_grow_with_the_offset, "does not hold", numbers)


def test_no_two_positions_are_alike():
  offsets = np.arange(1, 5001)
  smallest = {}
  for d_model in (512, 10, 2):
    # In float64, because float32 has angles of 5,000 to 3e-4 only.
    frequencies = 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)
    found = np.sqrt(np.sum(4 * np.sin(offsets[:, None] * frequencies / 2) ** 2, axis=1))
    nearest = np.argmin(found)
    smallest[d_model] = found[nearest]
    np.testing.assert_allclose(distances(0, offsets[[nearest]], d_model), found[nearest], atol=2e-4)
  numbers = f"1 5,000 {smallest[512]:.2f} 512 {decimals([smallest[10]], 3)} 10 {smallest[2]:.0e} 2"
  assert_documented(test_no_two_positions_are_alike, "holds", numbers.replace("e-05", "e-5"))


def trained_ratio(row):
  """How many times as large as a position an embedding is, in a row of `benchmarks/embedding_norms.py`."""
  assert row["parameters"] == "step 3750"
  return float(row["embedding, mean over pieces"]) / float(row["position"])


def test_embeddings_and_positions_are_of_one_size_at_the_start():
  d_model, tokens = 512, np.arange(31)
  embeddings, _ = Embedding(options(d_model=d_model)).init_with_output(jax.random.key(0), tokens)
  rows, positions = (np.linalg.norm(x, axis=1).mean() for x in (embeddings, encoding(tokens, d_model)))
  assert rows == pytest.approx(math.sqrt(d_model), rel=0.03)  # more than four standard errors
  assert positions == pytest.approx(math.sqrt(d_model / 2), rel=1e-4)
  numbers = f"{d_model} {math.sqrt(d_model):.1f} 2 {math.sqrt(d_model / 2):.1f} {rows / math.sqrt(d_model):.1f}"
  measured = json.loads(NORMS.read_text())
  source, target = (trained_ratio(row) for row in measured["rows"][2:])
  numbers += f" {source:.1f} {target:.1f} {measured['d_model']}"
  assert_documented(test_embeddings_and_positions_are_of_one_size_at_the_start, "holds corrected", numbers)
