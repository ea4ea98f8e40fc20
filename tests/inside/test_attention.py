"""The command `attention`: its files and mistakes. The page loads nothing, and no token is code in it."""

import argparse
import io
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from transformer_jax import runs
from transformer_jax.commands import attention as command
from transformer_jax.decoding.attention import Attention
from transformer_jax.decoding.generator import Generator
from transformer_jax.decoding.translation import Translation
from transformer_jax.decoding.translator import Translator
from transformer_jax.inside import attention as inside
from transformer_jax.inside.attention import Choice
from transformer_jax.language.config import BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.runtime.errors import InputError

COMMAND = ("attention",)

HOSTILE = ("<s>", "</script><script>alert(1)</script>", " <!--", '"\u2028\\', " $x_$", "\n\x07&lt;", "</s>")


def uniform(*shape):
  weights = np.random.default_rng(0).random(shape, np.float32)
  return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture
def found():
  weights = {"encoder": uniform(2, 3, 7, 7), "decoder": uniform(2, 3, 5, 5), "cross": uniform(2, 3, 5, 7)}
  return Attention(HOSTILE, ("<s>", *HOSTILE[1:5]), HOSTILE[2:7], weights)


def embedded(page):
  [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
  return json.loads(data)


def test_the_page_is_one_file_and_no_token_is_code(found):
  page = inside.to_page(found, "a <run>", ["</script>", "</title><b>"]).decode()
  assert not re.search(r"https?:|src=|href=|url\(|@import|//[a-z]", page)
  assert page.count("</script>") == 2 and "alert(1)" in page and "<script>alert" not in page
  assert "script-src &#39;sha256-" in page and "unsafe-inline" not in page
  assert "<title>Attention: &lt;/script&gt;</title>" in page
  data = embedded(page)
  assert (data["run"], data["texts"]) == ("a <run>", ["</script>", "</title><b>"])
  kinds = {kind["name"]: kind for kind in data["kinds"]}
  assert [*kinds] == ["encoder", "decoder", "cross"]
  assert kinds["cross"]["query"] == ["␣<!--", '"\u2028\\', "␣$x_$", "⏎<0x07>&lt;", "</s>"]
  for name, kind in kinds.items():
    np.testing.assert_allclose(np.array(kind["weights"]) / 1000, found.weights[name], atol=5e-4)


def test_json_and_npz_hold_the_same(found):
  data = json.loads(inside.to_json(found))
  arrays = np.load(io.BytesIO(inside.to_npz(found)), allow_pickle=False)
  for name in ("source", "read", "target"):
    assert tuple(data[name]) == tuple(arrays[name]) == getattr(found, name)
  for kind, weights in found.weights.items():
    np.testing.assert_array_equal(arrays[kind], weights)
    np.testing.assert_allclose(data["weights"][kind], weights, atol=1e-6)
  assert {*arrays.files} == {"source", "read", "target", *found.weights}


@pytest.fixture
def pictures():
  """The module that draws, where matplotlib is installed."""
  pytest.importorskip("matplotlib")
  from transformer_jax.inside import attention_pictures

  return attention_pictures


@pytest.mark.parametrize("choice", [Choice("cross", 1), Choice("cross", 0, None, 1), Choice("decoder", 1)])
def test_no_caption_of_a_short_sentence_is_cut_off(pictures, choice):
  from matplotlib.backends.backend_agg import FigureCanvasAgg

  weights = {"decoder": uniform(2, 4, 3, 3), "cross": uniform(2, 4, 3, 3)}
  figures = pictures.pictures(
    Attention(("a", "dog", "</s>"), ("<s>", "ein", "hund"), ("ein", "hund", "</s>"), weights), choice
  )
  for name in ("cross", "lines"):
    canvas = FigureCanvasAgg(figures[name])
    canvas.draw()
    extent = figures[name].get_tightbbox(canvas.get_renderer())  # of all that is drawn, in inches
    assert extent.x0 >= 0 and extent.x1 <= figures[name].get_size_inches()[0], name


def test_the_lines_of_sixteen_heads_are_told_apart_and_stay_near_their_tokens(pictures):
  weights = {"cross": uniform(1, 16, 3, 3)}
  given = Attention(("a", "b", "c"), ("<s>",) * 3, ("d", "e", "f"), weights)
  [axis] = pictures.lines(given, Choice("cross", 0, None, 1)).axes
  looks = {(line.get_color(), line.get_linestyle()) for line in axis.lines}
  assert len(looks) == 16
  starts = [path.vertices[0, 0] for drawn in axis.collections for path in drawn.get_paths()]
  assert starts and all(abs(start - 1) < 0.4 for start in starts)


def test_no_caption_of_one_token_is_cut_off(pictures):
  from tests.inside.drawn import require_inside

  attention = Attention(("</s>",), ("<s>",), ("</s>",), {"cross": uniform(1, 1, 1, 1)})
  require_inside(pictures.matrix(attention, Choice("cross", 0)))


@pytest.mark.parametrize(
  "choice", [pytest.param(Choice("cross", 1, None, 2), marks=pytest.mark.long), Choice("encoder", 0, 1)]
)
def test_pictures(pictures, found, choice):
  figures = pictures.pictures(found, choice)
  assert [*figures] == ["heads-encoder", "heads-decoder", "heads-cross", "cross", "lines"]
  drawn = [collection.get_alpha() for collection in figures["lines"].axes[0].collections]
  weights = found.weights[choice.kind][choice.layer]
  expected = weights[:, choice.word] if choice.head is None else [weights[choice.head].flatten()]  # or a colour a head
  for one, other in zip(drawn, expected, strict=True):
    np.testing.assert_allclose(one, other[other >= 0.005])
  cells = figures["cross"].axes[0].collections[0].get_array()
  assert cells.shape == (5, 7)
  of_cross = found.weights["cross"][1].mean(axis=0)  # without a head of cross-attention: the mean of the last layer's
  np.testing.assert_allclose(cells, of_cross)
  assert figures["cross"].axes[0].yaxis_inverted()
  for kind, every in found.weights.items():
    shown = [axis.images[0].get_array() for axis in figures[f"heads-{kind}"].axes]
    np.testing.assert_array_equal(shown, every.reshape(-1, *every.shape[2:]))
  words = range(weights.shape[1]) if choice.word is None else [choice.word]
  seen = weights if choice.head is None else weights[choice.head : choice.head + 1]
  for head, collection in zip(seen, figures["lines"].axes[0].collections, strict=True):
    ends = [[round(x) for x, _ in path.vertices] for path in collection.get_paths()]
    assert ends == [[query, key] for query in words for key in range(head.shape[1]) if head[query, key] >= 0.005]
  from transformer_jax.inside.figures import files

  contents, _ = files(figures["lines"], ("png", "svg", "pdf"))
  assert contents["png"][:4] == b"\x89PNG" and b"</svg>" in contents["svg"] and contents["pdf"][:4] == b"%PDF"
  assert contents == files(pictures.lines(found, choice), ("png", "svg", "pdf"))[0]


@pytest.mark.parametrize("head", [None, 0])
def test_the_only_head_is_named(pictures, head):
  given = Attention(("a", "b", "c"), ("<s>",) * 3, ("d", "e", "f"), {"cross": uniform(1, 1, 3, 3)})
  for figure in pictures.pictures(given, Choice("cross", 0, head, 1)).values():
    texts = [figure.get_supxlabel(), *(axis.get_xlabel() for axis in figure.axes)]
    assert not any("mean of the heads" in text or "a colour for each head" in text for text in texts)
  assert figure.get_supxlabel().endswith("layer 1, head 1")


def test_bytes_of_a_character_are_shown_as_the_character():
  assert inside.text_of([" a<0xC5>", "<0xC5>", "<0xBD>", "b", "<0xFF>"]) == " a<0xC5>Žb\N{REPLACEMENT CHARACTER}"


def test_the_models_own_translation_is_shown_as_text(run, translator, tmp_path, monkeypatch):
  tokens = (" a", "<0xC5>", "<0xBD>", "</s>")
  found = Attention(("x", "</s>"), ("<s>", *tokens[:-1]), tokens, {"cross": uniform(1, 1, 4, 2)})
  monkeypatch.setattr(translator, "attention", lambda *arguments: found)
  pytest.importorskip("matplotlib")
  assert run("--sentence", "x", "--output", tmp_path / "out")[0] == 0
  assert embedded((tmp_path / "out" / "attention.html").read_text())["texts"] == ["x", "aŽ"]


def choice_of(found, *argv):
  """What the command draws as lines."""
  parser = argparse.ArgumentParser()
  command.add_arguments(parser)
  return command._choice(parser.parse_args(["--workdir", "run", "--sentence", "a", "--output", "b", *argv]), found)


@pytest.mark.parametrize(
  ("argv", "expected"),
  [
    ("", Choice("cross", 1, None, None)),  # the last layer, all heads and all tokens
    ("--layer 1 --head 2", Choice("cross", 0, 1, None)),
    ("--kind encoder --word 7", Choice("encoder", 1, None, 6)),
    ("--kind decoder --layer 2 --head 3 --word 5", Choice("decoder", 1, 2, 4)),
    ("--kind decoder --layer 1 --head 1 --word 1", Choice("decoder", 0, 0, 0)),
  ],
)
def test_what_is_drawn_as_lines(found, argv, expected):
  assert choice_of(found, *argv.split()) == expected


def test_the_kind_must_be_there_and_has_tokens_of_its_own(found):
  alone = found._replace(weights={"decoder": found.weights["decoder"]})
  assert choice_of(alone, "--head", "3") == Choice("decoder", 1, 2, None)
  with pytest.raises(InputError, match="--kind is cross, but the model has only decoder"):
    choice_of(alone, "--kind", "cross")
  with pytest.raises(InputError, match="--word is 6, but must be from 1 to 5"):
    choice_of(found, "--word", "6")
  assert choice_of(found, "--kind", "encoder", "--word", "6").word == 5


def test_the_command_writes_what_the_library_gives(run, pictures, translator, tmp_path):
  chosen = ["--kind", "encoder", "--head", 2, "--word", 3]
  target = "de 😀"  # whose last character has no token of its own
  status, out, err = run("--sentence", "abc de", "--target", target, "--output", tmp_path / "out", *chosen)
  assert (status, err) == (0, [])
  names = ["attention.json", "attention.html", *(f"heads-{kind}" for kind in ("encoder", "decoder", "cross"))]
  names = [*names[:2], *(f"{name}.{end}" for name in [*names[2:], "cross", "lines"] for end in ("png", "svg"))]
  assert out.split("\n")[:-1] == [str(tmp_path / "out" / name) for name in names]
  assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
  expected = translator.attention("abc de", target)
  assert "<0xF0>" in expected.target
  assert (tmp_path / "out" / "attention.json").read_bytes() == inside.to_json(expected)
  assert embedded((tmp_path / "out" / "attention.html").read_text())["texts"] == ["abc de", target]
  from transformer_jax.inside.figures import files

  contents, _ = files(pictures.lines(expected, Choice("encoder", 0, 1, 2)), ("png",))
  assert (tmp_path / "out" / "lines.png").read_bytes() == contents["png"]


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (["--layer", 2], "--layer is 2, but must be from 1 to 1"),
    (["--head", 0], "--head is 0, but must be from 1 to 2"),
    (["--word", 99], "--word is 99, but must be from 1 to"),
    (["--target", "a " * 40], "the sentence pair has a sentence of"),
    (["--output", "/dev/null"], "--output is /dev/null, but must be a folder: it is a file"),
    (["--target", "a\udcff"], "--target is not UTF-8: write it in UTF-8"),
    (["--output", "gs://bucket/x"], "--output gs://bucket/x is in a bucket"),
  ],
)
def test_mistakes_are_one_sentence(run, tmp_path, argv, message):
  status, out, [err] = run("--sentence", "ab", "--target", "de", "--output", tmp_path / "out", *argv)
  assert (status, out) == (2, "") and message in err
  assert not (tmp_path / "out").exists()


def test_an_own_translation_that_is_too_long_when_it_is_read_again(run, translator, tmp_path, monkeypatch):
  long = [[Translation("a " * 40, 0.0, 0.0, 80)]]
  monkeypatch.setattr(Translator, "translate_lines", lambda *args, **options: long)
  status, out, [err] = run("--sentence", "ab", "--output", tmp_path / "out")
  assert (status, out) == (2, "") and "the model's own translation has" in err and "give a target" in err


def test_without_matplotlib_the_data_and_the_page_are_there(run, tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "matplotlib", None)
  status, _, [err] = run("--sentence", "ab", "--target", "de", "--output", tmp_path / "out", "--format", "npz")
  assert status == 2 and "pip install 'transformer_jax[pictures]'" in err
  assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["attention.html", "attention.npz"]


def test_a_model_that_takes_no_target_or_has_no_attention(workdir):
  run = runs.open(workdir)
  run.config.model = ELMoConfig(277, num_layers=1, d_model=8)
  with pytest.raises(InputError, match="--target is for a model that translates"):
    inside.attention_of(run, "last", "ab", "de")
  with pytest.raises(InputError, match=r"holds a model without attention .elmo.: take"):
    inside.attention_of(run, "last", "ab")


def test_the_picture_of_many_tokens_has_a_bound(pictures):
  """Two texts of 1,000 tokens would be a picture of two gigapixels."""
  tokens = ("a",) * 1000
  many = Attention(tokens, tokens, tokens, {"cross": np.full((1, 1, 1000, 1000), 0.001, np.float32)})
  for draw in (pictures.matrix, pictures.lines):
    assert max(draw(many, Choice("cross", 0, None, 5)).get_size_inches()) <= 42


def test_tokens_and_captions_stand_at_their_sides(pictures, found):
  target, source = map(inside.visible, found.axes("cross"))
  [axis] = pictures.lines(found, Choice("cross", 1, 0)).axes
  for above, tokens in ((True, target), (False, source)):
    assert [text.get_text() for text in axis.texts if (text.get_position()[1] > 0.5) == above] == tokens
  [axis] = pictures.matrix(found, Choice("cross", 1)).axes
  assert [tick.get_text() for tick in axis.get_xticklabels()] == source
  assert [tick.get_text() for tick in axis.get_yticklabels()] == target
  assert axis.get_ylabel() == "written" and axis.get_xlabel().startswith("source\n")
  figure = pictures.grid(found, "cross")
  assert figure.get_supylabel() == "written" and figure.get_supxlabel().startswith("source ")
  assert [axis.get_title() for axis in figure.axes] == ["head 1", "head 2", "head 3", "", "", ""]
  assert [axis.get_ylabel() for axis in figure.axes] == ["layer 1", "", "", "layer 2", "", ""]


def test_the_matrix_is_of_the_layer_and_the_head_that_are_chosen(pictures, found):
  weights = found.weights["cross"]
  for choice, expected in (
    (Choice("cross", 0), weights[0].mean(axis=0)),
    (Choice("cross", 0, 2), weights[0, 2]),
    (Choice("encoder", 0, 2), weights[1].mean(axis=0)),
  ):
    cells = pictures.pictures(found, choice)["cross"].axes[0].collections[0].get_array()
    np.testing.assert_allclose(cells, expected)


def test_each_head_of_a_word_has_its_number_its_colour_and_its_bars(pictures, found):
  from matplotlib.colors import to_hex

  figure = pictures.lines(found, Choice("cross", 0, None, 2))
  [axis], [legend] = figure.axes, figure.legends
  assert [text.get_text() for text in legend.get_texts()] == ["1", "2", "3"]
  colours = [to_hex(line.get_color()) for line in axis.lines]
  assert len({*colours}) == 3 and [to_hex(lines.get_edgecolor()[0]) for lines in axis.collections] == colours
  assert [to_hex(bar.get_facecolor()) for bar in axis.patches] == [colour for colour in colours for _ in range(7)]
  np.testing.assert_allclose([bar.get_alpha() for bar in axis.patches], found.weights["cross"][0, :, 2].ravel())
  bold = [text.get_text() for text in axis.texts if text.get_weight() == "bold"]
  assert bold == [inside.visible(found.target)[2]]
  assert figure.get_supxlabel().endswith("layer 1, a colour for each head")
  assert pictures.lines(found, Choice("cross", 1)).get_supxlabel().endswith("layer 2, mean of the heads")


def test_a_language_model_shows_the_text_at_the_step_that_is_asked_for(workdir, monkeypatch):
  run = runs.open(workdir)
  run.config.model = GPTConfig(277, num_layers=1, d_model=8, num_heads=2)
  loaded = lambda run, *, step: SimpleNamespace(attention=lambda text: (step, text))  # noqa: E731
  monkeypatch.setattr(Generator, "load", loaded)
  assert inside.attention_of(run, 3, "ab") == (3, "ab")
  run.config.model = BERTConfig(277, num_layers=1, d_model=8, num_heads=2)
  restored = lambda run, *, step: SimpleNamespace(config=step, params="p", tokenizer="t")  # noqa: E731
  monkeypatch.setattr(type(run), "model", restored)
  monkeypatch.setattr(inside, "encoder_attention", lambda *given: given)
  assert inside.attention_of(run, 3, "ab") == (3, "p", "t", "ab")


@pytest.mark.parametrize(
  "sides", [((), ("<s>", "x"), ("x", "</s>")), (("[CLS]", "x", "[SEP]"), (), ())], ids=["gpt", "bert"]
)
def test_the_page_of_a_language_model_has_its_sentence_alone(sides):
  assert command._texts(argparse.Namespace(sentence="ab", target=None), Attention(*sides, {})) == ["ab"]


def test_characters_that_the_fonts_lack_are_told_once_whichever_picture_has_them(
  pictures, found, tmp_path, monkeypatch, capsys
):
  from transformer_jax.inside import figures

  monkeypatch.setattr(pictures, "pictures", lambda *_: {"a": True, "b": False})
  monkeypatch.setattr(figures, "files", lambda lacking: ({"svg": b""}, lacking))
  assert [name for name, _ in command._pictures(found, Choice("cross", 0), tmp_path)] == ["a.svg", "b.svg"]
  said = "the fonts of this machine lack some characters, which are boxes in the pictures: install Noto Sans CJK"
  assert capsys.readouterr().err == f"{said}; the page has them\n"
