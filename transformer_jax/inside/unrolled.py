"""The recurrent models unrolled in time: their states, inputs and outputs, and what each is computed from."""

from typing import NamedTuple

from transformer_jax import registry
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.recurrent.config import BahdanauConfig, Cell, LuongConfig, Score, SequenceToSequenceConfig
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.wording import counted

STEPS = 3  # tokens of the source and of the target
MOST_LAYERS = 4
# What an arrow is: an input or a state, a look at the source, the attentional vector of the step before, or a context
# that has its own sign at each place where it is read, without a line.
STATE, ATTENTION, FEEDING, NAMED = "state", "attention", "feeding", "named"
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_EQUATIONS = {
  Cell.RNN: ("RNN: hₜ = tanh(xₜ W + hₜ₋₁ U + b)",),
  Cell.GRU: ("GRU: z, r = sigmoid(xₜ W + sₜ₋₁ U + b);  sₜ = (1 - z) sₜ₋₁ + z tanh(xₜ W + (r sₜ₋₁) U + b)",),
  Cell.LSTM: (
    "LSTM: i, f, o = sigmoid(xₜ W + hₜ₋₁ U + b), g = tanh(xₜ W + hₜ₋₁ U + b);",
    "cₜ = f cₜ₋₁ + i g;  hₜ = o tanh(cₜ). An arrow to the right is h and c.",
  ),
}
_SCORES = {Score.DOT: "h h̄", Score.GENERAL: "h W h̄", Score.CONCAT: "v tanh(W [h; h̄])"}


class Node(NamedTuple):
  """A state, an input or an output.

  Attributes:
    label: what is written there.
    x: its place from left to right, in columns.
    y: its row, from below.
    boxed: whether it is computed, and not a token or a sign.
  """

  label: str
  x: float
  y: float
  boxed: bool = True


class Edge(NamedTuple):
  """The node `end` is computed from the node `start`, by an arrow of this kind."""

  start: str
  end: str
  kind: str = STATE


class Unrolled(NamedTuple):
  """A model in time.

  Attributes:
    nodes: the nodes by name: `x1`, ... are the source's tokens, `in1`, ... the target tokens that are read, `out1`, ...
      those that are written.
    edges: the arrows.
    rows: the names of rows, by their number.
    about: the model in one line.
    notes: equations and explanations.
  """

  nodes: dict[str, Node]
  edges: list[Edge]
  rows: dict[float, str]
  about: str
  notes: list[str]


def unrolled(model: AnyModelConfig) -> Unrolled:
  """A recurrent model for three tokens of the source and three of the target.

  Raises:
    InputError: the model is not recurrent, or has too many layers.
  """
  if isinstance(model, BahdanauConfig):
    return _bahdanau(model)
  if not isinstance(model, SequenceToSequenceConfig | LuongConfig):
    raise InputError(
      f"config.model.family is {registry.name_of(model)}, which is no recurrent model that translates: take a config "
      "such as rnn:gru or rnn:bahdanau"
    )
  if model.num_layers > MOST_LAYERS:
    raise InputError(
      f"config.model.num_layers is {model.num_layers}, but the picture has room for at most {MOST_LAYERS} layers"
    )
  return _stacks(model)


def _numbered(letter: str, number: int) -> str:
  return letter + str(number).translate(_SUBSCRIPTS)


def _tokens(nodes: dict[str, Node], places: list[float], y: float, output: float) -> None:
  """Adds the tokens that the decoder reads, and the row of those that it writes."""
  for j, x in enumerate(places, 1):
    nodes[f"in{j}"] = Node("<s>" if j == 1 else _numbered("y", j - 1), x, y, boxed=False)
    nodes[f"out{j}"] = Node("</s>" if j == STEPS else _numbered("y", j), x, output, boxed=False)


def _stacks(model: SequenceToSequenceConfig | LuongConfig) -> Unrolled:
  attends, layers = isinstance(model, LuongConfig), model.num_layers
  nodes: dict[str, Node] = {}
  edges: list[Edge] = []
  order = range(STEPS, 0, -1) if model.reverse_source else range(1, STEPS + 1)
  for place, i in enumerate(order):
    nodes[f"x{i}"] = Node(_numbered("x", i), place, 0, boxed=False)
  top = layers + (2 if attends else 1)
  columns = [STEPS + 0.35 + 1.15 * j for j in range(STEPS)]
  _tokens(nodes, columns, 0, top)
  time = [f"x{i}" for i in order], [f"in{j}" for j in range(1, STEPS + 1)]
  for side, inputs in zip(("enc", "dec"), time, strict=True):
    for place, read in enumerate(inputs):
      for layer in range(1, layers + 1):
        name = f"{side}{layer}.{place + 1}"
        nodes[name] = Node(model.cell.value.upper(), nodes[read].x, layer)
        edges.append(Edge(read if layer == 1 else f"{side}{layer - 1}.{place + 1}", name))
        if place:
          edges.append(Edge(f"{side}{layer}.{place}", name))
        elif side == "dec":
          edges.append(Edge(f"enc{layer}.{STEPS}", name))
  for j in range(1, STEPS + 1):
    _add_output(model, nodes, edges, j)
  direction = "right to left" if model.reverse_source else "left to right"
  about = f"{counted(layers, 'layers')} of {model.hidden_size}, which read the source from {direction}"
  rows = {float(layer): f"layer {layer}" for layer in range(1, layers + 1)} | (
    {layers + 1.0: "attention"} if attends else {}
  )
  return Unrolled(nodes, edges, rows, about, [*_EQUATIONS[model.cell], *_notes(model)])


def _add_output(
  model: SequenceToSequenceConfig | LuongConfig, nodes: dict[str, Node], edges: list[Edge], j: int
) -> None:
  """Adds what leads from the decoder's top state to the j-th output."""
  layers, state = model.num_layers, f"dec{model.num_layers}.{j}"
  x = nodes[state].x
  if isinstance(model, LuongConfig):
    nodes[f"h~{j}"] = Node(_numbered("h~", j), x, layers + 1)
    edges += [Edge(state, f"h~{j}"), Edge(f"h~{j}", f"out{j}")]
    edges += [Edge(f"enc{layers}.{place}", f"h~{j}", ATTENTION) for place in range(1, STEPS + 1)]
    if model.input_feeding and j > 1:
      edges.append(Edge(f"h~{j - 1}", f"dec1.{j}", FEEDING))
    return
  edges.append(Edge(state, f"out{j}"))
  if model.feed_context:
    nodes[f"c.in{j}"] = Node("c", x + 0.42, 0, boxed=False)
    nodes[f"c.out{j}"] = Node("c", x + 0.42, layers + 0.4, boxed=False)
    edges += [Edge(f"c.in{j}", f"dec1.{j}"), Edge(f"c.out{j}", f"out{j}")]
    edges += [Edge(f"enc{layers}.{STEPS}", f"c.{place}{j}", NAMED) for place in ("in", "out")]


def _notes(model: SequenceToSequenceConfig | LuongConfig) -> list[str]:
  if isinstance(model, LuongConfig):
    feeding = ["Dotted: h~ is an input of the next step (input feeding)."] if model.input_feeding else []
    return [
      f"Dashed: attention. h~ = tanh(W [c; h]); c = the mean of the states h̄, weights softmax({_SCORES[model.score]}).",
      *feeding,
    ]
  if model.feed_context:
    return ["c: the encoder's last output, which each step of the decoder and each output reads."]
  return ["The decoder knows the source by the encoder's last state alone."]


def _bahdanau(model: BahdanauConfig) -> Unrolled:
  nodes: dict[str, Node] = {}
  edges: list[Edge] = []
  for i in range(1, STEPS + 1):
    nodes[f"x{i}"] = Node(_numbered("x", i), i - 1, 0, boxed=False)
    # So far apart that the arrow to the second passes the first one's box, and the arrow from the first the second's.
    nodes[f"right{i}"], nodes[f"left{i}"] = Node("GRU →", i - 1.3, 1), Node("← GRU", i - 0.7, 2)
    nodes[f"h{i}"] = Node(_numbered("h", i), i - 1, 3)
    for name in (f"right{i}", f"left{i}"):
      edges += [Edge(f"x{i}", name), Edge(name, f"h{i}")]
    if i > 1:
      edges += [Edge(f"right{i - 1}", f"right{i}"), Edge(f"left{i}", f"left{i - 1}")]
  columns = [STEPS + 0.3 + 1.3 * j for j in range(STEPS)]
  _tokens(nodes, columns, 4, 6)
  for j, x in enumerate(columns, 1):
    nodes[f"in{j}"] = nodes[f"in{j}"]._replace(x=x + 0.42)
    nodes[f"c{j}"], nodes[f"s{j}"] = Node(_numbered("c", j), x - 0.3, 4), Node(f"GRU {_numbered('s', j)}", x, 5)
    edges += [Edge(f"c{j}", f"s{j}"), Edge(f"in{j}", f"s{j}"), Edge(f"s{j}", f"out{j}")]
    edges += [Edge(f"h{i}", f"c{j}", ATTENTION) for i in range(1, STEPS + 1)]
    if j > 1:
      edges += [Edge(f"s{j - 1}", f"c{j}"), Edge(f"s{j - 1}", f"s{j}")]
  nodes["s0"] = Node("s₀", columns[0] - 1.3, 5)
  edges += [Edge("left1", "s0", NAMED), Edge("s0", "c1"), Edge("s0", "s1")]
  return Unrolled(
    nodes,
    edges,
    {1.0: "forward", 2.0: "backward", 3.0: "annotations", 4.0: "contexts", 5.0: "decoder"},
    f"GRUs of {model.hidden_size} in both directions, and a GRU of {model.hidden_size} that writes",
    [
      *_EQUATIONS[Cell.GRU],
      "Dashed: attention. c = the mean of the annotations h, weights softmax(v tanh(W s + U h)).",
      "s₀ = tanh(W ←h₁), from the backward state of x₁. An output also reads c and the token before it.",
    ],
  )
