"""The recurrent models unrolled: what an output is computed from, against the model; the picture; the command."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax import registry
from transformer_jax.inside.unrolled import ATTENTION, FEEDING, STATE, STEPS, unrolled
from transformer_jax.model.config import ModelConfig
from transformer_jax.recurrent.config import BahdanauConfig, Cell, LuongConfig, SequenceToSequenceConfig
from transformer_jax.runtime.errors import InputError

SIZES = {"vocab_size": 31, "d_model": 6, "hidden_size": 7}
MODELS = {
  "rnn": SequenceToSequenceConfig(**SIZES, num_layers=2, cell=Cell.RNN, reverse_source=False),
  "gru": SequenceToSequenceConfig(**SIZES, num_layers=4, cell=Cell.GRU, feed_context=True),
  "lstm": SequenceToSequenceConfig(**SIZES, num_layers=1),
  "bahdanau": BahdanauConfig(**SIZES, attention_size=5),
  "luong": LuongConfig(**SIZES, dropout=0.0, num_layers=2),
}


def sources(drawn, name):
  """All nodes that a node is computed from, directly or through others."""
  found, new = set(), {name}
  while new:
    new = {edge.start for edge in drawn.edges if edge.end in new} - found
    found |= new
  return found


@pytest.mark.long
@pytest.mark.parametrize("name", ["bahdanau", "rnn", "luong"])
def test_an_output_is_computed_from_what_it_depends_on(name):
  """Another token changes the outputs that the arrows lead to from it, and no other output."""
  model = registry.module(MODELS[name])
  source, target = np.arange(5, 5 + STEPS), np.arange(9, 9 + STEPS)
  every_source, targets = np.tile(source, (2 * STEPS + 1, 1)), np.tile(target, (2 * STEPS + 1, 1))
  for i in range(STEPS):  # one row for each changed token
    every_source[1 + i, i] = targets[1 + STEPS + i, i] = 20

  @jax.jit
  def outputs(sources, targets):
    params = model.init(jax.random.key(0), jnp.asarray(source), jnp.asarray(target))
    return jax.vmap(lambda x, y: model.apply(params, x, y))(sources, targets)

  found = outputs(every_source, targets)
  drawn = unrolled(MODELS[name])
  tokens = [*(f"x{i}" for i in range(1, STEPS + 1)), *(f"in{j}" for j in range(1, STEPS + 1))]
  for row, token in enumerate(tokens, 1):
    for j in range(STEPS):
      depends = bool(jnp.any(jnp.abs(found[row, j] - found[0, j]) > 1e-5))  # more than the rounding of a row
      assert depends == (token in sources(drawn, f"out{j + 1}")), (token, j)


def test_the_arrows_of_attention_feeding_and_contexts():
  """An output would depend on the same tokens without them, by the encoder's last state."""

  def arrows(name, kind):
    return {(edge.start, edge.end) for edge in unrolled(MODELS[name]).edges if edge.kind == kind}

  steps = range(1, STEPS + 1)
  assert arrows("bahdanau", ATTENTION) == {(f"h{i}", f"c{j}") for i in steps for j in steps}
  assert arrows("luong", ATTENTION) == {(f"enc2.{i}", f"h~{j}") for i in steps for j in steps}
  assert arrows("luong", FEEDING) == {("h~1", "dec1.2"), ("h~2", "dec1.3")}
  assert {("s0", "c1"), ("s1", "c2"), ("s2", "c3")} <= arrows("bahdanau", STATE)
  contexts = {*((f"c.in{j}", f"dec1.{j}") for j in steps), *((f"c.out{j}", f"out{j}") for j in steps)}
  assert contexts <= arrows("gru", STATE)


def test_the_order_of_reading():
  backwards = unrolled(MODELS["lstm"])
  assert backwards.nodes["x3"].x < backwards.nodes["x1"].x and sources(backwards, "enc1.1") == {"x3"}
  forwards = unrolled(dataclasses.replace(MODELS["lstm"], reverse_source=False))
  assert forwards.nodes["x1"].x < forwards.nodes["x3"].x and sources(forwards, "enc1.1") == {"x1"}
  both = unrolled(MODELS["bahdanau"])
  assert sources(both, "right2") == {"x1", "x2", "right1"} and sources(both, "left2") == {"x2", "x3", "left3"}


@pytest.mark.parametrize("name", MODELS)
def test_the_picture(picture, name):
  from tests.inside.drawn import require_readable, texts

  model = unrolled(MODELS[name])
  figure = picture.draw(model, "a name")
  require_readable(figure)
  shown = texts(figure)
  assert {node.label for node in model.nodes.values()} | {*model.rows.values(), model.about} <= {*shown}
  assert model.notes[-1] in shown


@pytest.mark.parametrize("name", MODELS)
def test_no_arrow_passes_a_box(picture, name):
  """An arrow through a box would say that the box is computed from what it begins at."""
  axis = picture.draw(unrolled(MODELS[name]), "a name").axes[0]
  boxes = [patch.get_path().get_extents() for patch in axis.patches]
  assert boxes and axis.lines
  for line in axis.lines:
    for (x0, y0), (x1, y1) in itertools.pairwise(line.get_xydata()):
      x, y = np.linspace(x0, x1, 301), np.linspace(y0, y1, 301)
      for box in boxes:  # an arrow begins and ends at the side of a box
        inside = (box.x0 + 0.01 < x) & (x < box.x1 - 0.01) & (box.y0 + 0.01 < y) & (y < box.y1 - 0.01)
        assert not inside.any(), ((x0, y0), (x1, y1), box)


def test_models_that_cannot_be_drawn():
  with pytest.raises(InputError, match=r"config.model.family is transformer, which is no recurrent model"):
    unrolled(ModelConfig())
  with pytest.raises(InputError, match=r"config.model.num_layers is 5, but the picture has room for at most 4 layers"):
    unrolled(dataclasses.replace(MODELS["lstm"], num_layers=5))


def test_the_command(command, tmp_path):
  pytest.importorskip("matplotlib")
  output = tmp_path / "unrolled.svg"
  status, out, _ = command("unrolled", "--config=rnn:gru", "--config.model.num_layers=1", "--output", output)
  assert (status, out) == (0, f"{output}\n") and "<!-- rnn-gru -->" in output.read_text()


@pytest.mark.parametrize("name", MODELS)
def test_each_arrow_points_to_what_is_computed(picture, name):
  model = unrolled(MODELS[name])
  page = picture.Page(7, 9)
  drawn = picture._Picture(page, model, 0.5)
  for edge in model.edges:
    before = len(page.axis.texts)
    drawn.arrow(edge)
    for head in page.axis.texts[before:]:
      far = {n: math.dist(head.xy, (drawn.x(node.x), drawn.y(node.y))) for n, node in model.nodes.items()}
      assert min(far, key=far.get) == edge.end
