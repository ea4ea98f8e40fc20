"""Figure 1 drawn for a config, by matplotlib. All places and sizes are in inches."""

from matplotlib.figure import Figure

from transformer_jax.inside.figures import Page
from transformer_jax.inside.parts import Box, ModelParts, Stack

_MARGIN, _GAP = 0.12, 0.46  # round the picture, and between its columns
_BOX, _LANE = 2.72, 0.3  # the width of a box, and of the lane of the residual connections
_COLUMN = _BOX + _LANE + 0.24
_LINE, _PAD = 0.155, 0.07  # a line of text, and the space above and below the lines of a box
_TOKENS = 0.2  # the line of the tokens at the bottom
_ARROW, _SHORT, _FRAME = 0.2, 0.1, 0.42  # between boxes, between a sub-layer's boxes, the heading of the layers
# Light in grey, too. As in the paper, each kind of box has a colour; a box is known by the first word of its name.
_KINDS = {
  "#fde3c8": ("Multi-Head", "Masked", "Additive", "Global"),
  "#d5e8f7": ("Feed", "LSTM", "GRU", "RNN", "Bidirectional"),
  "#f6f3c4": ("Add", "Norm"),
  "#fbe0e4": ("Input", "Output"),
  "#e2e0f3": ("Linear", "Maxout", "Projection", "Transform", "Pooler"),
  "#dcefdc": ("Softmax",),
}
_COLOURS = {word: colour for colour, words in _KINDS.items() for word in words}
_SHADE = "#f3f3f3"


def draw(parts: ModelParts, title: str) -> Figure:
  """The stacks beside each other, from below: the encoder of Figure 1 on the left, its decoder on the right.

  A number in a box is the number of its parameters.

  Args:
    parts: the model.
    title: its name.
  """
  first, *others = parts.stacks
  above = 0.62 + 0.19 * (len(parts.notes) + len(parts.stacks) + 2)  # the room for the title above the first stack
  height = 2 * _MARGIN + max([_height(first) + above, *map(_height, others)])
  page = Page(2 * (_MARGIN + _COLUMN) + _GAP if others else 2 * _MARGIN + _COLUMN, height)
  left = _Column(page, first, _MARGIN, left_lane=True)
  left.draw()
  for stack in others:
    right = _Column(page, stack, _MARGIN + _COLUMN + _GAP, left_lane=False)
    if first.branch is None:
      right.draw()
      if stack.begins_with_states:
        _pass_states(page, left, right)
      _connect(page, left, right)
    else:
      _branch(page, left, right)
  is_free = all(_height(stack) + above <= height for stack in others)  # the room above the other stacks
  _describe(page, parts, title, height - _MARGIN, page.width - 2 * _MARGIN if is_free else _COLUMN)
  return page.figure


def _one_line(box: Box) -> bool:
  """Whether name, shape and number of a box fit into one line."""
  return box.name in ("Add", "Norm", "Add & Norm")


def _box_height(box: Box) -> float:
  return 2 * _PAD + _LINE * (1 if _one_line(box) else 1 + len(box.lines))


def _inside(stack: Stack) -> float:
  """The height of a layer's boxes and arrows."""
  return sum(_ARROW + sum(map(_box_height, each)) + _SHORT * (len(each) - 1) for each in stack.sublayers)


def _height(stack: Stack) -> float:
  boxes = sum(_box_height(box) + _ARROW for box in (*stack.inputs, *stack.outputs))
  if not stack.layers:
    return boxes
  return _TOKENS + boxes + _inside(stack) + _FRAME + 2 * _ARROW


class _Column:
  """A stack, drawn from below.

  Attributes:
    middle: the place of the arrows from box to box.
    box_left: the left side of the boxes.
    y: the height of what is drawn so far.
    frame_top: the height of the frame round the layers.
    memory: the height of the box that reads the encoder's output; 0 if there is none.
    layers: the heights of the layers' boxes.
    branch: the height of the place from which the second stack reads.
  """

  def __init__(self, page: Page, stack: Stack, left: float, *, left_lane: bool):
    self._page, self._stack, self._left, self._left_lane = page, stack, left, left_lane
    self.box_left = left + (_LANE + 0.12 if left_lane else 0.12)
    self.middle = self.box_left + _BOX / 2
    self.y = _MARGIN
    self.frame_top = self.memory = self.branch = 0.0
    self.layers: list[float] = []

  def draw(self) -> None:
    page, stack = self._page, self._stack
    page.write(self.middle, self.y + _LINE / 2, stack.tokens, _BOX)
    self.y += _TOKENS
    for box in stack.inputs:
      self._arrow(_ARROW)
      self._box(box)
    bottom = self.y + 0.6 * _ARROW
    self.frame_top = bottom + _inside(stack) + _FRAME + 0.6 * _ARROW
    page.box(self._left, bottom, _COLUMN, self.frame_top - bottom, fc=_SHADE, ec="#8c8c8c", zorder=0.5)
    self._arrow(0.6 * _ARROW, arrow=False)
    for sublayer in stack.sublayers:
      self._sublayer(sublayer)
    self._heading()
    self.branch = self.frame_top + 0.5 * _ARROW
    for place, box in enumerate(stack.outputs):
      # The arrow that leaves the layers is longer where another stack branches off.
      self._arrow(_ARROW if place else self.frame_top - self.y + (1.0 if stack.branch == 0 else 0.6) * _ARROW)
      self._box(box)
      if stack.branch == place + 1:
        self.branch = self.y + 0.5 * _ARROW

  def draw_outputs(self, bottom: float) -> None:
    """Draws the outputs alone, above the height `bottom`."""
    self.y = bottom
    for box in self._stack.outputs:
      self._arrow(_ARROW)
      self._box(box)

  def _sublayer(self, boxes: tuple[Box, ...]) -> None:
    """Draws a sub-layer's boxes, and the connection round them."""
    start = self.y + 0.25 * _ARROW
    for place, box in enumerate(boxes):
      self._arrow(_ARROW if place == 0 else _SHORT)
      self.layers.append(self.y + _box_height(box) / 2)
      self._box(box)
    if not self._stack.residual:
      return
    side = self.box_left if self._left_lane else self.box_left + _BOX
    lane = side + (-0.7 if self._left_lane else 0.7) * _LANE
    end = self.y - _box_height(boxes[-1]) / 2
    self._page.line((self.middle, start), (lane, start), (lane, end), (side, end), arrow=True)

  def _box(self, box: Box) -> None:
    page, height = self._page, _box_height(box)
    if box.reads_memory:
      self.memory = self.y + height / 2
    page.box(self.box_left, self.y, _BOX, height, fc=_COLOURS[box.name.split()[0]], zorder=2)
    y = self.y + height - _PAD - _LINE / 2
    left, right = self.box_left + 0.08, self.box_left + _BOX - 0.08
    number = f"{box.parameters:,}" if box.parameters else ""
    room = _BOX - 0.16 - (page.write(right, y, number, _BOX / 2, ha="right") + 0.1 if number else 0)
    used = page.write(left, y, box.name, room, ha="left", weight="bold")
    if _one_line(box):
      page.write(left + used + 0.1, y, box.lines[0], room - used - 0.1, ha="left")
    else:
      for place, line in enumerate(box.lines, 1):
        page.write(left, y - _LINE * place, line, _BOX - 0.16, ha="left")
    self.y += height

  def _arrow(self, length: float, arrow: bool = True) -> None:
    self._page.line((self.middle, self.y), (self.middle, self.y + length), arrow=arrow)
    self.y += length

  def _heading(self) -> None:
    """Writes the name, the number of layers and their parameters into the frame, on both sides of the arrow."""
    stack, upper, lower = self._stack, self.frame_top - 0.12, self.frame_top - 0.12 - _LINE
    left, right = self._left + 0.1, self._left + _COLUMN - 0.1
    self._page.write(left, upper, stack.name.capitalize(), self.middle - left - 0.1, ha="left", weight="bold", size=9)
    self._page.write(left, lower, stack.about, self.middle - left - 0.1, ha="left")
    times = "\N{MULTIPLICATION SIGN}"
    every, each = f"{stack.layers * stack.layer_parameters:,}", f"{stack.layers} {times} {stack.layer_parameters:,}"
    self._page.write(right, upper, every, right - self.middle - 0.1, ha="right")
    if not stack.heading:
      self._page.write(right, lower, each, right - self.middle - 0.1, ha="right")


def _connect(page: Page, encoder: _Column, decoder: _Column) -> None:
  """Draws the way of the encoder's output to the box of the decoder that reads it, if there is one."""
  if not decoder.memory:
    return
  x, y = encoder.middle, max(encoder.y, encoder.frame_top) + 0.15
  between = decoder.box_left - 0.12 - 0.6 * _GAP
  page.line(
    (x, encoder.y), (x, y), (between, y), (between, decoder.memory), (decoder.box_left, decoder.memory), arrow=True
  )


def _pass_states(page: Page, encoder: _Column, decoder: _Column) -> None:
  """Draws the ways of the last states of the encoder's layers to the layers of the decoder, which begin with them."""
  start, end = encoder.box_left + _BOX, decoder.box_left
  between = (start + end) / 2
  for one, other in zip(encoder.layers, decoder.layers, strict=True):
    page.line((start, one), (between, one), (between, other), (end, other), arrow=True)


def _branch(page: Page, left: _Column, right: _Column) -> None:
  """Draws the outputs of a second stack, which read the output of the first one's layers."""
  page.line((left.middle, left.branch), (right.middle, left.branch))
  right.draw_outputs(left.branch)


def _describe(page: Page, parts: ModelParts, title: str, top: float, width: float) -> None:
  left, y = _MARGIN, top - 0.12
  page.write(left, y, title, width, ha="left", weight="bold", size=12)
  several = len(parts.stacks) > 1
  names = [f"{stack.name}, with embeddings" if stack.inputs else stack.name for stack in parts.stacks]
  numbers = list(zip(names, (stack.parameters for stack in parts.stacks), strict=True)) if several else []
  for name, number in (*numbers, ("together" if numbers else "all", parts.parameters)):
    y -= 0.19
    page.write(left, y, name, 1.72, ha="left")
    page.write(left + 2.4, y, f"{number:,}", 0.8, ha="right")
    page.write(left + 2.46, y, "parameters", 0.8, ha="left")
  y -= 0.06
  for note in parts.notes:
    y -= 0.19
    page.write(left, y, note, width, ha="left")
