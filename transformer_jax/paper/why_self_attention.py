"""§4, why self-attention: what it costs beside other layers, and how far it sees (Table 1)."""

import dataclasses

import numpy as np

from transformer_jax.analysis import operations
from transformer_jax.paper.examples import changed_memory, changed_outputs
from transformer_jax.paper.statement import Deviation, Statements, require, require_equal
from transformer_jax.paper.table1 import table
from transformer_jax.paper.tiny import SHALLOW, SOURCE, TARGET

STATEMENTS = Statements()


@STATEMENTS.add(
  "4",
  "Table 1: a layer of self-attention takes O(n^2 d) operations, a recurrent one O(n d^2), a convolutional one "
  "O(k n d^2), self-attention restricted to a neighbourhood of size r O(r n d).",
  code="paper/table1/table.py: ROWS",
  test="tests/paper/table1/test_table1.py::test_products_are_those_of_the_formula",
  deviation=Deviation(
    "the projections of Q, K, V and of the output, 8 n d^2 operations more, are counted apart",
    "Table 1 leaves them out; `docs/table1.md` has both",
  ),
)
def complexity():
  sizes = table.Sizes(n=24, d=128, k=3, r=6)
  growths = {  # with twice the n, d, k or r
    "self-attention": {"n": 4, "d": 2, "k": 1, "r": 1},
    "recurrent": {"n": 2, "d": 4, "k": 1, "r": 1},
    "convolutional": {"n": 2, "d": 4, "k": 2, "r": 1},
    "restricted self-attention": {"n": 2, "d": 2, "k": 1, "r": 2},
  }
  for name, growth in growths.items():
    kind = table.ROWS[name]
    once = operations.matmuls(kind.traced(sizes))
    for size, expected in growth.items():
      twice = operations.matmuls(kind.traced(sizes._replace(**{size: 2 * getattr(sizes, size)})))
      require_equal(twice / once, expected, f"growth of {name} with twice the {size}")


@STATEMENTS.add(
  "4",
  "A separable convolution takes O(k n d + n d^2) operations: with k = n as many as self-attention and a point-wise "
  "feed-forward layer.",
  code="paper/table1/convolution.py: SeparableConvolution",
  test="tests/paper/table1/test_table1.py::test_products_are_those_of_the_formula",
)
def separable_convolution():
  for n, d, k in ((24, 128, 3), (24, 128, 24), (25, 64, 25)):
    found = operations.matmuls(table.ROWS["separable convolutional"].traced(table.Sizes(n, d=d, k=k)))
    require_equal(found, 2 * k * n * d + 2 * n * d * d, f"operations with n = {n}, d = {d}, k = {k}")


@STATEMENTS.add(
  "4",
  "Table 1: in a recurrent layer O(n) operations wait for one another, in the others O(1).",
  code="paper/table1/table.py: ROWS",
  test="tests/paper/table1/test_table1.py::test_only_the_recurrence_waits_for_each_position",
)
def sequential_operations():
  for name, kind in table.ROWS.items():
    counts = [operations.sequential(kind.traced(table.Sizes(n, d=8))) for n in (17, 34, 51)]
    steps = counts[1] - counts[0]
    require_equal(counts[2] - counts[1], steps, f"growth of the longest chain of {name} with each 17 positions")
    require((steps >= 17) == (name == "recurrent") and (steps == 0) == (name != "recurrent"), f"{name}: {counts}")


@STATEMENTS.add(
  "4",
  "Table 1 and its text: the longest path between two of n positions is 1 layer of self-attention, O(n) steps of a "
  "recurrence, O(n / k) layers of convolutions or O(log_k n) of dilated ones, O(n / r) of restricted self-attention.",
  code="paper/table1/reach.py: path_length",
  test="tests/paper/table1/test_table1.py::test_path_lengths_are_those_of_the_formula",
)
def path_lengths():
  found = {name: path.found for name, path in table.path_lengths(n=8, k=3, r=2).items()}
  # A convolution reaches one position to either side, dilated ones 2 and then 6 more back.
  expected = {
    "self-attention": 1,
    "recurrent": 8,
    "convolutional": 7,
    "dilated convolutional": 2,
    "restricted self-attention": 4,
  }
  require_equal(found, expected, "longest paths between two of 8 positions")


@STATEMENTS.add(
  "4",
  "Self-attention could be restricted to a neighbourhood of size r about each position.",
  code="model/config.py: ModelConfig.attention_window",
  test="tests/model/test_transformer.py::test_logits",
  deviation=Deviation(
    "an option: r positions to either side in the encoder, the past r in the decoder, and the position itself; "
    "attention over the encoder's output is not restricted",
    "the paper does not use it, and leaves it to future work",
  ),
)
def restricted_attention():
  config = dataclasses.replace(SHALLOW, attention_window=2)
  for position, differs in changed_outputs(config, 1):
    distance = np.arange(len(TARGET)) - position  # of the outputs whose input is this token, shifted right: 1 and more
    expected = (distance >= 1) & (distance <= 3)
    require((differs == expected).all(), f"token {position} is not seen by all that may, or by others")
  for position, differs in changed_memory(config, padding=0):
    expected = abs(np.arange(len(SOURCE)) - position) <= 2
    require((differs == expected).all(), f"token {position} of the input is not seen by all that may, or by others")
