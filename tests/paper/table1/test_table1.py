"""Table 1: operations counted from the trace, and how far a stack reaches."""

import math

import numpy as np
import pytest

from transformer_jax.analysis import operations
from transformer_jax.paper.table1.reach import path_length
from transformer_jax.paper.table1.table import ROWS, Sizes, path_lengths

SIZES = Sizes(n=72, d=192, k=5, r=12)  # whole blocks of r and of 2 r
FORMULAS = {
  "self-attention": lambda n, d, k, r: 4 * n**2 * d,
  "self-attention with its projections": lambda n, d, k, r: 4 * n**2 * d + 8 * n * d**2,
  "recurrent": lambda n, d, k, r: 4 * n * d**2,
  "convolutional": lambda n, d, k, r: 2 * k * n * d**2,
  "separable convolutional": lambda n, d, k, r: 2 * k * n * d + 2 * n * d**2,
  "restricted self-attention": lambda n, d, k, r: 12 * r * n * d,  # three blocks of r for each query
}


@pytest.mark.parametrize("name", ROWS)
def test_products_are_those_of_the_formula(name):
  assert operations.matmuls(ROWS[name].traced(SIZES)) == FORMULAS[name](*SIZES)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if len(row.exponents) > 1])
@pytest.mark.parametrize("size", Sizes._fields)
def test_exponents_are_those_of_the_paper(name, size):
  doubled = SIZES._replace(**{size: 2 * getattr(SIZES, size)})
  once, twice = (operations.matmuls(ROWS[name].traced(sizes)) for sizes in (SIZES, doubled))
  assert math.log2(twice / once) == ROWS[name].exponents.get(size, 0)


@pytest.mark.parametrize("name", ROWS)
def test_only_the_recurrence_waits_for_each_position(name):
  few, more = (operations.sequential(ROWS[name].traced(SIZES._replace(n=n))) for n in (60, 120))
  if name == "recurrent":
    assert more - few == 3 * 60  # a product, a sum and tanh at each position
  else:
    assert more == few < 30


@pytest.mark.parametrize(("n", "k", "r"), [(11, 5, 3), pytest.param(13, 3, 1, marks=pytest.mark.long)])
def test_path_lengths_are_those_of_the_formula(n, k, r):
  found = path_lengths(n, k, r)
  assert {name: path.found for name, path in found.items()} == {name: path.formula for name, path in found.items()}
  assert found["self-attention"].found == 1 and found["recurrent"].found == n
  assert found["dilated convolutional"].found == math.ceil(math.log(n, k))


def test_a_stack_that_is_too_low_has_no_path_length():
  reached = np.stack([np.eye(3, dtype=bool), np.tri(3, dtype=bool)])
  assert path_length(reached, np.tri(3, dtype=bool)) == 2
  with pytest.raises(ValueError, match="2 layers do not join all pairs"):
    path_length(reached, np.ones((3, 3), bool))
