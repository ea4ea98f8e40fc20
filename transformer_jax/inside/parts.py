"""A model as boxes in columns, for its picture: names, shapes of arrays and numbers of parameters."""

import math
from typing import NamedTuple

from flax.traverse_util import flatten_dict

from transformer_jax.analysis import requirements
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.runtime.values import PyTree
from transformer_jax.runtime.wording import counted


class Box(NamedTuple):
  """A box of the picture.

  Attributes:
    name: its name in the paper.
    lines: its arrays, with their shapes for one sentence.
    parameters: the number of its own parameters; a shared table belongs to the first box that uses it.
    reads_memory: whether it also reads the output of the first stack.
  """

  name: str
  lines: tuple[str, ...]
  parameters: int = 0
  reads_memory: bool = False


class Stack(NamedTuple):
  """A column of the picture, from below.

  Attributes:
    name: `encoder` or `decoder`, for example.
    tokens: what it reads.
    inputs: the embedding and the positions.
    layers: N, the number of equal layers, of which one is drawn; 0 if there are none.
    sublayers: the boxes of each sub-layer of one layer. In a residual stack a connection leads round them to the last
      of them.
    outputs: what follows the layers.
    residual: whether the sub-layers have residual connections.
    heading: the line below its name; empty for `N = ... layers`.
    begins_with_states: whether its layers begin with the last states of the first stack's, box by box.
    branch: the number of outputs before the place from which the second stack reads; None if it reads elsewhere.
  """

  name: str
  tokens: str
  inputs: tuple[Box, ...]
  layers: int
  sublayers: tuple[tuple[Box, ...], ...]
  outputs: tuple[Box, ...]
  residual: bool = True
  heading: str = ""
  begins_with_states: bool = False
  branch: int | None = None

  @property
  def about(self) -> str:
    """The line below its name."""
    return self.heading or f"N = {counted(self.layers, 'layers')}"

  @property
  def layer_parameters(self) -> int:
    """The parameters of one layer."""
    return sum(box.parameters for sublayer in self.sublayers for box in sublayer)

  @property
  def parameters(self) -> int:
    """The parameters of all its boxes and layers."""
    return self.layers * self.layer_parameters + sum(box.parameters for box in (*self.inputs, *self.outputs))


class ModelParts(NamedTuple):
  """A model.

  Attributes:
    stacks: one column or two.
    parameters: the number of all parameters.
    notes: what the boxes do not show, in lines.
  """

  stacks: tuple[Stack, ...]
  parameters: int
  notes: tuple[str, ...]


class Sizes:
  """The number of parameters in each part of a model's tree of parameters."""

  def __init__(self, model: AnyModelConfig):
    leaves: dict[tuple[str, ...], PyTree] = flatten_dict(requirements.parameter_shapes(model))
    self._sizes = {path: math.prod(leaf.shape) for path, leaf in leaves.items()}

  def count(self, *path: str) -> int:
    """The number of the parameters below a path of the tree; without a path all of them."""
    return sum(size for found, size in self._sizes.items() if found[: len(path)] == path)


def embedding(model: AnyModelConfig, sizes: Sizes, axis: str, table: str, *, shared: bool) -> Box:
  """The embedding of the tokens of a model that translates.

  Args:
    model: the model's config.
    sizes: its parameters.
    axis: `source` or `target`.
    table: the parameter with the target's table.
    shared: whether the table is the source's, too.
  """
  name = "Input Embedding" if axis == "source" else "Output Embedding"
  times = f"times √{model.d_model}: [{axis}, {model.d_model}]"
  if shared and axis == "target":
    return Box(name, ("the table of the input", times))
  module = table if shared or axis == "target" else "own_source_embedding"
  vocab = model.vocab_sizes[0 if axis == "source" else -1]
  return Box(name, (f"table [{vocab}, {model.d_model}]", times), sizes.count(module))
