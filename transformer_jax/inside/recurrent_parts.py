"""The recurrent models as boxes: the shapes of their arrays and their parameters, for a config."""

from collections.abc import Sequence

from transformer_jax.inside.parts import Box, ModelParts, Sizes, Stack, embedding
from transformer_jax.recurrent.config import (
  BahdanauConfig,
  Cell,
  LuongConfig,
  RecurrentConfig,
  Score,
  SequenceToSequenceConfig,
)
from transformer_jax.runtime.wording import counted

_AXES = {"encoder": "source", "decoder": "target"}
_STATES = {Cell.LSTM: "h and c", Cell.GRU: "s", Cell.RNN: "h"}
_SCORES = {
  Score.DOT: "dot product h s",
  Score.GENERAL: "h W s",
  Score.CONCAT: "v tanh(W [h; s])",
}


def stacks(model: SequenceToSequenceConfig | LuongConfig) -> ModelParts:
  """Sutskever's, Cho's, Elman's and Luong's models: a stack reads the source, another one writes the target."""
  sizes = Sizes(model)
  order = "from right to left" if model.reverse_source else "from left to right"
  heading = counted(model.num_layers, "layers")
  encoder = _stack(model, sizes, "encoder", _layers(model, sizes, "encoder", order), heading=heading)
  begins = "begins with the encoder's last state" + (" of its layer" if model.num_layers > 1 else "")
  written = _layers(model, sizes, "decoder", begins, begins)
  if isinstance(model, LuongConfig):
    extra, outputs = _feeding(model, sizes), _luong_outputs(model, sizes)
  else:
    extra, outputs = (), _plain_outputs(model, sizes)
  decoder = _stack(model, sizes, "decoder", written, outputs, heading=heading, extra=extra)
  return ModelParts((encoder, decoder._replace(begins_with_states=True)), sizes.count(), _notes(model))


def bahdanau(model: BahdanauConfig) -> ModelParts:
  """Bahdanau's model: an encoder in both directions, and a decoder that looks at all of the source in each step."""
  sizes, hidden = Sizes(model), model.hidden_size
  directions = sizes.count("encoder_forward") + sizes.count("encoder_backward")
  both = (f"→ [source, {hidden}] and ← [source, {hidden}]", f"side by side: [source, {2 * hidden}]")
  read = Box("Bidirectional GRU", both, directions)
  encoder = _stack(model, sizes, "encoder", [read], heading="1 layer in each direction")
  look = (f"scores v tanh(W s + U h), width {model.attention_size}", "weights [target, source]")
  recurrent = sizes.count("decoder") + sizes.count("context") + sizes.count("initial")
  update = (f"of y and c [target, {2 * hidden}]: s [target, {hidden}]", "begins with tanh(W h), h the first state ←")
  attention = Box("Additive Attention", look, sizes.count("alignment"), reads_memory=True)
  maxout = Box("Maxout", (f"of s, y and c: [target, {model.d_model}]",), sizes.count("output"))
  written = [attention, Box("GRU", update, recurrent)]
  decoder = _stack(model, sizes, "decoder", written, (maxout, *_probabilities(model)), heading="1 layer")
  passes = "attention reads s, and y passes it by"
  return ModelParts((encoder, decoder), sizes.count(), (passes, *_notes(model)))


def _stack(
  model: RecurrentConfig,
  sizes: Sizes,
  name: str,
  layers: Sequence[Box],
  outputs: tuple[Box, ...] = (),
  *,
  heading: str,
  extra: tuple[Box, ...] = (),
) -> Stack:
  """The encoder or the decoder, by its name; `extra` is between its embedding and its layers."""
  axis = _AXES[name]
  tokens = f"{axis} tokens{', shifted right' if name == 'decoder' else ''} [{axis}]"
  read = embedding(model, sizes, axis, "embedding", shared=len(model.vocab_sizes) == 1)
  one_each = tuple((box,) for box in layers)
  return Stack(name, tokens, (read, *extra), 1, one_each, outputs, residual=False, heading=heading)


def _layers(model: SequenceToSequenceConfig | LuongConfig, sizes: Sizes, stack: str, *about: str) -> list[Box]:
  """The first layer, whose input has another width, and one box for all others; `about` has a line for each box."""
  cell, axis = model.cell.value.upper(), _AXES[stack]
  counts = [sizes.count(stack, f"{model.cell.value}_{i}") for i in range(model.num_layers)]
  states = f"{_STATES[model.cell]}: [{axis}, {model.hidden_size}]"
  first = Box(cell if len(counts) == 1 else f"{cell} 1", (about[0], states), counts[0])
  if len(counts) == 1:
    return [first]
  name = f"{cell} 2" if len(counts) == 2 else f"{cell} 2 to {len(counts)}"
  lines = (f"reads the layer below: [{axis}, {model.hidden_size}]", *about[1:], states)
  return [first, Box(name, lines, sum(counts[1:]))]


def _feeding(model: LuongConfig, sizes: Sizes) -> tuple[Box, ...]:
  if not model.input_feeding:
    return ()
  line = f"h~ of the step before: [target, {model.d_model}]"
  return (Box("Input Feeding", (line,), sizes.count("input_feeding")),)


def _luong_outputs(model: LuongConfig, sizes: Sizes) -> tuple[Box, ...]:
  weights = f"{_SCORES[model.score]}: weights [target, source]"
  combined = f"h~ = tanh(W [c; h]): [target, {model.d_model}]"
  attention = Box("Global Attention", (weights, combined), sizes.count("attention"), reads_memory=True)
  return attention, *_probabilities(model)


def _plain_outputs(model: SequenceToSequenceConfig, sizes: Sizes) -> tuple[Box, ...]:
  reads = "of h and the context" if model.feed_context else "of h"
  return Box("Projection", (f"{reads}: [target, {model.d_model}]",), sizes.count("output")), *_probabilities(model)


def _probabilities(model: RecurrentConfig) -> tuple[Box, Box]:
  shape = f"[target, {model.vocab_size}]"
  table = "the table of the input" if len(model.vocab_sizes) == 1 else "the table of the target"
  return Box("Linear", (table, f"logits {shape}")), Box("Softmax", (shape,))


def _notes(model: RecurrentConfig) -> tuple[str, ...]:
  both = len(model.vocab_sizes) == 1
  notes = [f"one table for {'both embeddings' if both else 'Output Embedding'} and Linear"]
  if isinstance(model, SequenceToSequenceConfig) and model.feed_context:
    notes.append("context: the encoder's last output, read in each step")
  if model.dropout:
    notes.append(f"dropout {model.dropout:g}, not between positions")
  return (*notes, f"matmuls in {model.dtype.value}")
