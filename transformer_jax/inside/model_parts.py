"""The Transformer of Figure 1 as boxes: the shapes of their arrays and their parameters, for a config."""

import math
from typing import Any, NamedTuple

from flax.traverse_util import flatten_dict

from transformer_jax import registry
from transformer_jax.analysis import plan
from transformer_jax.model.config import Activation, AnyModelConfig, ModelConfig
from transformer_jax.runtime.errors import InputError

_ACTIVATIONS = {Activation.RELU: "ReLU", Activation.GELU: "GELU", Activation.GELU_TANH: "GELU (tanh)"}
# By whether the embeddings are shared, and the output layer.
_TABLES = {
  (True, True): "both embeddings and Linear",
  (True, False): "both embeddings",
  (False, True): "Output Embedding and Linear",
}


class Box(NamedTuple):
  """A box of the picture.

  Attributes:
    name: its name in the paper.
    lines: its arrays, with their shapes for one sentence.
    parameters: the number of its own parameters; a shared table belongs to the first box that uses it.
    reads_memory: whether it also reads the encoder's output.
  """

  name: str
  lines: tuple[str, ...]
  parameters: int = 0
  reads_memory: bool = False


class Stack(NamedTuple):
  """The encoder or the decoder, from below.

  Attributes:
    name: `encoder` or `decoder`.
    tokens: what it reads.
    inputs: the embedding and the positions.
    layers: N, the number of layers.
    sublayers: the boxes of each sub-layer of one layer. The residual connection leads round them to the last of them.
    outputs: what follows the layers.
  """

  name: str
  tokens: str
  inputs: tuple[Box, ...]
  layers: int
  sublayers: tuple[tuple[Box, ...], ...]
  outputs: tuple[Box, ...]

  @property
  def layer_parameters(self) -> int:
    """The parameters of one layer."""
    return sum(box.parameters for sublayer in self.sublayers for box in sublayer)

  @property
  def parameters(self) -> int:
    """The parameters of all its boxes and layers."""
    return self.layers * self.layer_parameters + sum(box.parameters for box in (*self.inputs, *self.outputs))


class ModelParts(NamedTuple):
  """A Transformer.

  Attributes:
    encoder, decoder: its stacks.
    parameters: the number of all parameters.
    notes: what the boxes do not show, in lines.
  """

  encoder: Stack
  decoder: Stack
  parameters: int
  notes: tuple[str, ...]


def model_parts(model: AnyModelConfig) -> ModelParts:
  """The boxes of a model.

  Raises:
    InputError: the model is no Transformer that translates.
  """
  if not isinstance(model, ModelConfig):
    raise InputError(
      f"config.model.family is {registry.name_of(model)}, but only the family {registry.FIRST} can be drawn so far: "
      "take a config of it"
    )
  parts = _Parts(model)
  stacks = parts.encoder(), parts.decoder()
  return ModelParts(*stacks, parameters=parts.count(), notes=_notes(model))


class _Parts:
  """Makes the boxes of a config."""

  def __init__(self, model: ModelConfig):
    self._model = model
    leaves: dict[tuple[str, ...], Any] = flatten_dict(plan.parameter_shapes(model))
    self._sizes = {path: math.prod(leaf.shape) for path, leaf in leaves.items()}

  def count(self, *path: str) -> int:
    """The number of the parameters below a path of the tree."""
    return sum(size for found, size in self._sizes.items() if found[: len(path)] == path)

  def encoder(self) -> Stack:
    shared = self._model.share_embeddings
    return Stack(
      "encoder",
      "source tokens [source]",
      (
        self._embedding("Input Embedding", "target_embedding" if shared else "own_source_embedding", "source"),
        self._positions("source"),
      ),
      self._model.num_layers,
      (
        self._sublayer("encoder", "attention", self._attention("encoder", "attention", "source", "source")),
        self._sublayer("encoder", "feed_forward", self._feed_forward("encoder", "source")),
      ),
      self._final_norm("encoder", "source"),
    )

  def decoder(self) -> Stack:
    model = self._model
    embedding = self._embedding("Output Embedding", "target_embedding", "target")
    if model.share_embeddings:
      embedding = embedding._replace(lines=("the table of the input", embedding.lines[1]), parameters=0)
    return Stack(
      "decoder",
      "target tokens, shifted right [target]",
      (embedding, self._positions("target")),
      model.num_layers,
      (
        self._sublayer("decoder", "self", self._attention("decoder", "self_attention", "target", "target")),
        self._sublayer("decoder", "cross", self._attention("decoder", "cross_attention", "target", "source")),
        self._sublayer("decoder", "feed_forward", self._feed_forward("decoder", "target")),
      ),
      (*self._final_norm("decoder", "target"), *self._probabilities()),
    )

  def _embedding(self, name: str, module: str, axis: str) -> Box:
    model = self._model
    table = f"table [{model.vocab_size}, {model.d_model}]"
    return Box(name, (table, f"times √{model.d_model}: [{axis}, {model.d_model}]"), self.count(module))

  def _positions(self, axis: str) -> Box:
    model = self._model
    kind = f"learned table [{model.max_positions}, {model.d_model}]" if model.learned_positions else "sinusoids"
    return Box("Add Positional Encoding", (f"{kind}: [{axis}, {model.d_model}]",), self.count(f"{axis}_positions"))

  def _attention(self, stack: str, module: str, query: str, key: str) -> Box:
    model, cross = self._model, query != key
    heads, d_k, d_v = model.num_heads, model.head_dim_k, model.head_dim_v
    # Arrays of the same shape are named together.
    shapes: dict[str, list[str]] = {}
    for name, axis, width in (("Q", query, d_k), ("K", key, d_k), ("V", key, d_v)):
      shapes.setdefault(f"[{axis}, {heads}, {width}]", []).append(name)
    arrays = ", ".join(f"{', '.join(names)} {shape}" for shape, names in shapes.items())
    weights = f"weights [{heads}, {query}, {key}]"
    if model.attention_window is not None and not cross:
      weights += f", at most {model.attention_window} apart"
    masked = "Masked " if module == "self_attention" else ""
    return Box(
      f"{masked}Multi-Head Attention", (arrays, weights), self.count(stack, "layers_0", module), reads_memory=cross
    )

  def _feed_forward(self, stack: str, axis: str) -> Box:
    model = self._model
    lines = (
      f"[{axis}, {model.d_model}] → [{axis}, {model.d_ff}]",
      f"{_ACTIVATIONS[model.activation]} → [{axis}, {model.d_model}]",
    )
    return Box("Feed Forward", lines, self.count(stack, "layers_0", "feed_forward"))

  def _sublayer(self, stack: str, name: str, box: Box) -> tuple[Box, ...]:
    """A sub-layer's boxes: LayerNorm(x + f(x)), or x + f(LayerNorm(x))."""
    axis = "source" if stack == "encoder" else "target"
    shape = (f"[{axis}, {self._model.d_model}]",)
    parameters = self.count(stack, "layers_0", f"{name}_sublayer")
    if self._model.pre_norm:
      return Box("Norm", shape, parameters), box, Box("Add", shape)
    return box, Box("Add & Norm", shape, parameters)

  def _final_norm(self, stack: str, axis: str) -> tuple[Box, ...]:
    if not self._model.pre_norm:
      return ()
    return (Box("Norm", (f"[{axis}, {self._model.d_model}]",), self.count(stack, "norm")),)

  def _probabilities(self) -> tuple[Box, Box]:
    model = self._model
    table = "the table of the target" if model.share_logits else f"table [{model.vocab_size}, {model.d_model}]"
    shape = f"[target, {model.vocab_size}]"
    return Box("Linear", (table, f"logits {shape}"), self.count("own_output")), Box("Softmax", (shape,))


def _notes(model: ModelConfig) -> tuple[str, ...]:
  norm = "x + f(Norm(x))" if model.pre_norm else "Norm(x + f(x))"
  notes = [f"each sub-layer f: {norm}"]
  if model.dropout:
    notes.append(f"dropout {model.dropout:g} on f(x), and on embedding + position")
  if model.attention_dropout:
    notes.append(f"dropout {model.attention_dropout:g} on the attention weights")
  if model.attention_bias:
    notes.append("biases in the attention projections")
  if tables := _TABLES.get((model.share_embeddings, model.share_logits)):
    notes.append(f"one table for {tables}")
  notes.append(f"matmuls in {model.dtype.value}")
  return tuple(notes)
