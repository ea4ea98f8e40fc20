"""The model of Figure 1: its numbers against the parameters and arrays of the model itself."""

import argparse
import dataclasses
import re
import sys

import jax
import jax.numpy as jnp
import pytest

from configs import base
from tests.marks import long
from tests.model.example import SOURCE, TARGET, options
from transformer_jax import registry
from transformer_jax.analysis import requirements
from transformer_jax.commands import draw_config
from transformer_jax.config import Config, DataConfig, DecodeConfig, TrainConfig
from transformer_jax.inside.layer_parts import ACTIVATIONS
from transformer_jax.inside.model_parts import model_parts
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.model.config import Activation, AnyModelConfig, Dtype
from transformer_jax.model.transformer import Transformer
from transformer_jax.recurrent.config import BahdanauConfig, Cell, LuongConfig, Score, SequenceToSequenceConfig
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params
from transformer_jax.training.task import task_of

OPTIONS = [
  {},
  {"pre_norm": True, "attention_bias": True, "learned_positions": True},
  {"share_embeddings": False},
  {"share_logits": False, "attention_window": 3, "activation": Activation.GELU, "dropout": 0.2},
  {"share_embeddings": False, "share_logits": False, "pre_norm": True, "num_layers": 1, "attention_dropout": 0.1},
  {"encoder_layers": 3, "decoder_layers": 1},
]


def boxes(stack):
  return [*stack.inputs, *(box for sublayer in stack.sublayers for box in sublayer), *stack.outputs]


@pytest.mark.parametrize("changes", [*OPTIONS[:2], *long(OPTIONS[2:])])
def test_parameters_are_those_of_the_model(changes):
  model = options(**changes)
  parts = model_parts(model)
  tree = jax.eval_shape(lambda: init_params(Config(model=model), TASK))
  total = sum(leaf.size for leaf in jax.tree.leaves(tree))
  assert sum(stack.parameters for stack in parts.stacks) == parts.parameters == total
  assert total == requirements.parameters(Config(model=model))["total"]
  for stack in parts.stacks:
    for layer in tree[stack.name].values():
      size = sum(leaf.size for leaf in jax.tree.leaves(layer))
      assert size == (stack.layer_parameters if len(layer) > 2 else stack.outputs[0].parameters)


def test_every_activation_has_a_name():
  assert {*ACTIVATIONS} == {*Activation}


def test_parameters_of_base_by_hand():
  parts = model_parts(base.get_config().model)
  attention, feed_forward, norm = 4 * 512 * 512, 512 * 2048 + 2048 + 2048 * 512 + 512, 2 * 512
  encoder = [37_000 * 512, 0, attention, norm, feed_forward, norm]
  decoder = [0, 0, attention, norm, attention, norm, feed_forward, norm, 0, 0]
  assert [[box.parameters for box in boxes(stack)] for stack in parts.stacks] == [encoder, decoder]
  assert parts.parameters == 63_045_632


@pytest.mark.parametrize("changes", OPTIONS[:2])
def test_shapes_are_those_of_the_arrays(changes):
  """Every shape in a box is one of an array that the model computes there, and the other way round."""
  model = options(**changes)
  module = Transformer(model)
  source, target = jnp.ones(SOURCE, jnp.int32), jnp.ones(TARGET, jnp.int32)

  def forward():
    params = init_params(Config(model=model), TASK)
    hidden, state = module.apply({"params": params}, source, target, capture_intermediates=True, mutable=True)
    return state["intermediates"], module.apply({"params": params}, hidden, method="logits")

  arrays, logits = jax.eval_shape(forward)

  def shown(box):
    text = " ".join(box.lines).replace("source", str(SOURCE)).replace("target", str(TARGET))
    return [tuple(map(int, shape.split(", "))) for shape in re.findall(r"\[([\d, ]+)\]", text)]

  def shapes(stack, *path):
    found = arrays[stack]["layers_0"]
    for name in path:
      found = found[name]
    return found["__call__"][0].shape

  (encoder, decoder), offset = model_parts(model).stacks, int(model.pre_norm)
  for stack, names in (
    (encoder, ("attention", "feed_forward")),
    (decoder, ("self_attention", "cross_attention", "feed_forward")),
  ):
    for name, sublayer in zip(names, stack.sublayers, strict=True):
      box, found = sublayer[offset], arrays[stack.name]["layers_0"][name]
      if name == "feed_forward":
        expected = {found["inner"]["__call__"][0].shape, shapes(stack.name, name, "outer")}
      else:
        expected = {shapes(stack.name, name, part) for part in ("query", "key", "value")}
        expected |= {found["attention_weights"][0].shape}
      assert set(shown(box)) == expected, box
      assert set(shown(sublayer[-1])) == {shapes(stack.name, f"{name.removesuffix('_attention')}_sublayer", "norm")}
  linear, softmax = decoder.outputs[-2:]
  assert shown(linear)[-1] == shown(softmax)[0] == logits.shape


def test_each_layer_of_the_decoder_begins_with_the_state_of_its_own(picture):
  """A line from the right side of each box of the encoder's layers to the left side of the decoder's."""
  figure = picture.draw(model_parts(SequenceToSequenceConfig(31, 6, hidden_size=7, num_layers=3)), "a")
  ways = [line.get_xydata() for line in figure.axes[0].lines if len(line.get_xydata()) == 4]
  boxes = [patch.get_bbox() for patch in figure.axes[0].patches if hasattr(patch, "get_boxstyle")]
  rights = {(box.x1.round(3), ((box.y0 + box.y1) / 2).round(3)) for box in boxes}
  lefts = {(box.x0.round(3), ((box.y0 + box.y1) / 2).round(3)) for box in boxes}
  assert len(ways) == 2  # of the first layer, and of the two others, which are one box
  for way in ways:
    assert tuple(way[0].round(3)) in rights and tuple(way[-1].round(3)) in lefts


@pytest.mark.parametrize("changes", [{"vocab_size": 1_234_567, "d_model": 12_288, "d_ff": 98_765}, *long(OPTIONS)])
def test_the_picture_is_readable(picture, changes):
  from tests.inside.drawn import require_texts_apart, texts

  parts = model_parts(options(**changes))
  figure = picture.draw(parts, "a model with a long name, " * 5)
  require_texts_apart(figure)
  shown = texts(figure)
  for stack in parts.stacks:
    for box in boxes(stack):
      assert {box.name, *box.lines} <= set(shown)
      assert not box.parameters or f"{box.parameters:,}" in shown
  assert f"{parts.parameters:,}" in shown and {*parts.notes} <= set(shown)
  assert max(figure.get_size_inches()) < 12


FAMILIES = {
  "rnn": SequenceToSequenceConfig(31, 6, hidden_size=7, dropout=0.1, num_layers=1, cell=Cell.RNN, feed_context=True),
  "gru": SequenceToSequenceConfig(31, 6, hidden_size=7, num_layers=3, cell=Cell.GRU),
  "luong": LuongConfig(31, 6, hidden_size=7, num_layers=2, score=Score.CONCAT),
  "luong without feeding": LuongConfig(31, 6, hidden_size=7, num_layers=1, score=Score.DOT, input_feeding=False),
  "bahdanau": BahdanauConfig(31, 6, hidden_size=7, attention_size=5),
  "gpt": GPTConfig(31, num_layers=2, d_model=6, d_ff=11, num_heads=2, max_positions=13),
  "bert": BERTConfig(31, num_layers=2, d_model=6, d_ff=11, num_heads=2, max_positions=13, pre_norm=True),
  "classifier": BERTClassifierConfig(31, num_layers=2, d_model=6, d_ff=11, num_heads=2, labels="a,b,c"),
  "elmo": ELMoConfig(31, num_layers=2, d_model=6),
}


QUICK = ("gru", "bert")
SECOND = [pytest.param(name, marks=pytest.mark.long) for name in FAMILIES if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SECOND])
def test_every_family_is_drawn_with_all_its_parameters(picture, name):
  from tests.inside.drawn import require_texts_apart, texts

  model = FAMILIES[name]
  parts = model_parts(model)
  short = {"data": DataConfig(row_length=2), "decode": DecodeConfig(max_source_length=2, extra_length=1)}
  config = Config(model=model, train=TrainConfig(batch_tokens=2), **short)
  tree = jax.eval_shape(lambda: init_params(config, task_of(model)))
  total = sum(leaf.size for leaf in jax.tree.leaves(tree))
  assert sum(stack.parameters for stack in parts.stacks) == parts.parameters == total
  figure = picture.draw(parts, name)
  require_texts_apart(figure)
  shown = texts(figure)
  for stack in parts.stacks:
    for box in boxes(stack):
      assert {box.name, *box.lines} <= {*shown}
  assert {f"{total:,}", *parts.notes} <= {*shown}


def test_the_titles_of_two_equal_stacks_use_the_whole_width(picture):
  parts = model_parts(FAMILIES["elmo"])
  sizes = {text.get_text(): text.get_fontsize() for text in picture.draw(parts, "elmo").axes[0].texts}
  names = [f"{stack.name}, with embeddings" for stack in parts.stacks if stack.inputs]
  assert names and {sizes[text] for text in (*names, *parts.notes)} == {8}


@pytest.mark.parametrize(("layers", "about"), [(1, "last state"), (3, "last state of its layer")])
def test_each_layer_of_a_decoder_begins_with_the_encoders_state_of_its_own(layers, about):
  parts = model_parts(dataclasses.replace(FAMILIES["gru"], num_layers=layers))
  for [box] in parts.stacks[1].sublayers:
    assert f"begins with the encoder's {about}" in box.lines


def test_a_family_of_another_package_is_named(monkeypatch):
  @dataclasses.dataclass
  class Own(AnyModelConfig):
    pass

  place = f"{Own.__module__}:{Own.__qualname__}"
  monkeypatch.setitem(registry._FAMILIES, "own", registry.Family(place, "nowhere:Own"))
  with pytest.raises(InputError, match=r"config.model.family is own, a family of another package"):
    model_parts(Own(31, 6, Dtype.FLOAT32))


def test_the_command_draws_a_config_or_a_run(command, workdir, tmp_path):
  pytest.importorskip("matplotlib")
  output = tmp_path / "model.svg"
  flags = ["--config=base", "--config.model.num_layers=3"]
  status, out, [err, _] = command("model", *flags, "--output", output)
  assert (status, out) == (0, f"{output}\n") and "comes with transformer_jax" in err
  first = output.read_bytes()
  assert b"</svg>" in first
  assert command("model", *flags, "--output", output)[0] == 0 and output.read_bytes() == first
  status, _, err = command("model", "--workdir", workdir, "--output", tmp_path / "run.pdf")
  assert (status, err) == (0, []) and (tmp_path / "run.pdf").read_bytes()[:4] == b"%PDF"


def test_a_picture_is_written_through_a_link_to_its_file(command, tmp_path):
  pytest.importorskip("matplotlib")
  (tmp_path / "link.svg").symlink_to("real.svg")
  status, _, _ = command("schedule", "--config=base", "--output", tmp_path / "link.svg")
  assert status == 0 and (tmp_path / "link.svg").is_symlink() and b"</svg>" in (tmp_path / "real.svg").read_bytes()


def test_a_name_that_is_too_long_is_refused_before_the_picture_is_drawn(command, tmp_path):
  status, out, [err] = command("masks", "--output", tmp_path / f"{'x' * 240}.svg")
  assert (status, out) == (2, "") and "cannot be written: give a file in a folder that can be" in err


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    ([], "required: PICTURE"),
    (["modle"], "invalid choice"),
    (["model"], "--output is missing"),
    (["model", "--output", "x.gif"], "--output is x.gif, but must end in .svg, .png, .pdf"),
    (["model", "--output", "/nowhere/x.svg"], "--output /nowhere/x.svg cannot be written"),
    (["model", "--output", "gs://bucket/x.svg"], "--output gs://bucket/x.svg is in a bucket"),
    (
      ["search", "--config.model.num_heads=2"],
      "--config.model.num_heads is not a flag of `transformer-jax draw search`",
    ),
    (["search", "--output", "x.svg"], "required: --workdir, --sentence"),
    (["search", "--workdir", "W", "--sentence", "a"], "--output is missing"),
  ],
)
def test_mistakes_are_one_sentence(command, argv, message):
  status, out, err = command(*argv)
  assert (status, out) == (2, "") and message in err[-1]


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (["model", "--workdir", "W", "--config=base"], "--workdir and --config exclude each other"),
    (["model", "--workdir", "W", "--config.model.num_layers=3"], "--workdir and --config exclude each other"),
    (["unrolled", "--config=gpt"], "config.model.family is gpt, which is no recurrent model"),
    (["model", "--config.model.heads=2"], "model.heads"),
    (["search", "--workdir", "W", "--sentence", "\udcff"], "--sentence is not UTF-8: write it in UTF-8"),
    (["next", "--workdir", "W", "--sentence", "a", "--prefix", "\udcff"], "--prefix is not UTF-8: write it in UTF-8"),
    (["self-attention", "--workdir", "W", "--sentence", "\udcff"], "--sentence is not UTF-8: write it in UTF-8"),
  ],
)
def test_mistakes_of_the_pictures(command, argv, message):
  pytest.importorskip("matplotlib")
  status, out, err = command(*argv, "--output", "x.svg")
  assert (status, out) == (2, "") and message in err[-1]


def test_without_matplotlib(command, monkeypatch):
  monkeypatch.setitem(sys.modules, "matplotlib", None)
  status, out, err = command("model", "--output", "x.svg")
  assert (status, out) == (2, "") and "pip install 'transformer_jax[pictures]'" in err[-1]


def test_help_shows_the_keys(command):
  status, out, _ = command("model", "--config=base", "--help")
  assert status == 0 and "--workdir DIR" in out and "--config.model.d_ff=2048" in out


def test_the_decoders_own_attention_is_masked_and_the_other_one_reads_the_encoder():
  found = [
    [(box.name, box.reads_memory) for box in boxes(stack) if box.name.endswith("Attention")]
    for stack in model_parts(options()).stacks
  ]
  plain, masked = "Multi-Head Attention", "Masked Multi-Head Attention"
  assert found == [[(plain, False)], [(masked, False), (plain, True)]]
  for pre_norm, formula in ((False, "Norm(x + f(x))"), (True, "x + f(Norm(x))")):
    assert f"each sub-layer f: {formula}" in model_parts(options(pre_norm=pre_norm)).notes


def test_the_numbers_stand_by_the_names_of_the_stacks(picture):
  from tests.inside.drawn import texts

  parts = model_parts(options(encoder_layers=3, decoder_layers=1))
  shown = texts(picture.draw(parts, "a"))
  for stack, layers, about in zip(parts.stacks, (3, 1), ("N = 3 layers", "N = 1 layer"), strict=True):
    first, each = shown.index(stack.name.capitalize()) + 1, stack.layer_parameters
    assert shown[first : first + 3] == [about, f"{layers * each:,}", f"{layers} \N{MULTIPLICATION SIGN} {each:,}"]
    assert shown[shown.index(f"{stack.name}, with embeddings") + 1] == f"{stack.parameters:,}"


@pytest.mark.parametrize(("backwards", "words"), [(True, "from right to left"), (False, "from left to right")])
def test_the_order_of_reading_is_said(backwards, words):
  from transformer_jax.inside.unrolled import unrolled

  model = dataclasses.replace(FAMILIES["gru"], reverse_source=backwards)
  [first] = model_parts(model).stacks[0].sublayers[0]
  assert words in first.lines and unrolled(model).about.endswith(words)


def test_each_direction_of_elmo_predicts_what_it_has_not_read():
  expected = {
    "forward": ("from left to right", "the next token"),
    "backward": ("from right to left", "the previous token"),
  }
  stacks = model_parts(FAMILIES["elmo"]).stacks
  assert [stack.name for stack in stacks] == [*expected]
  for stack in stacks:
    [[lstm]], (order, predicted) = stack.sublayers, expected[stack.name]
    assert lstm.lines[0].startswith(order) and stack.outputs[-1].lines[0].startswith(predicted)


@pytest.mark.parametrize(
  ("config", "name"),
  [(None, "numbers"), ("base", "base"), ("gpt", "gpt"), ("rnn", "rnn: bahdanau"), ("rnn:gru", "rnn-gru")],
)
def test_a_family_is_named_that_the_name_of_its_config_does_not_tell(config, name):
  args = argparse.Namespace(config=config, overrides=[], workdir=None, accept_edits=False)
  assert draw_config._config(args)[1] == name
