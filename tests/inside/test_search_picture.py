"""A search as a picture: its places, its texts, and the command."""

import itertools

import numpy as np
import pytest

from transformer_jax.config import LengthPenalty
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.decoding.search_tree import FINISHED, KEPT, PRUNED, Node, SearchTree
from transformer_jax.model.special_tokens import BOS, EOS
from transformer_jax.runtime.errors import InputError

pytest.importorskip("matplotlib")

from transformer_jax.inside import search_picture as picture

COMMAND = ("draw", "search")


def random_tree(seed, beam, steps, pieces):
  """A tree of a search that ends with its first finished hypothesis."""
  generator, nodes, kept = np.random.default_rng(seed), [Node(None, 0, BOS, 0.0, KEPT)], [0]
  for step in range(1, steps + 1):
    fates = [KEPT] * beam + [PRUNED] * 3 + [FINISHED] * (step == steps)
    parents = generator.choice(kept, len(fates))
    first = len(nodes)
    for parent, fate in zip(parents, fates, strict=True):
      log_prob = nodes[parent].log_prob - generator.exponential()
      token, score = (EOS, log_prob / 2) if fate == FINISHED else (7, None)
      nodes.append(Node(int(parent), step, token, log_prob, fate, score))
    kept = list(range(first, first + beam))
  shown = [pieces[i % len(pieces)] for i in range(len(nodes))]
  options = SearchOptions(beam, LengthPenalty.GNMT, 0.6)
  return SearchTree(nodes, shown, [len(nodes) - 1], ["a translation " * 20], options)


@pytest.mark.parametrize(("beam", "steps"), [(1, 1), (4, 7), pytest.param(11, 3, marks=pytest.mark.long)])
@pytest.mark.parametrize("pieces", [["a", " und", "ß"], [" Donaudampfschifffahrt", "$x_2$", "\n", " ", "<0xE2>"]])
def test_the_picture_is_readable(beam, steps, pieces):
  from tests.inside.drawn import require_texts_apart, texts

  tree = random_tree(0, beam, steps, pieces)
  figure = picture.draw(tree, "a sentence that is rather long " * 9)
  require_texts_apart(figure)
  shown = texts(figure)
  for node in tree.nodes[1:]:
    assert f"{node.log_prob:.2f}" in shown
  assert f"= {tree.nodes[-1].score:.3f}" in shown and str(steps) in shown
  lines = figure.axes[0].lines
  assert len(lines) == len(tree.nodes) - 1
  assert sum(line.get_linewidth() > 2 for line in lines) == len(tree.path(tree.best[0]))


def test_several_hypotheses_have_ranks():
  from tests.inside.drawn import texts

  options = SearchOptions(2, LengthPenalty.GNMT, 0.6)
  ends = [(-1.5, FINISHED, -0.75), (-0.5, FINISHED, -0.25), (-2.0, FINISHED, -1.0)]  # log P, fate, score
  nodes = [Node(None, 0, BOS, 0.0, KEPT), *(Node(0, 1, EOS, log_prob, *rest) for log_prob, *rest in ends)]
  several = SearchTree(nodes, ["a"] * 4, [2, 1], ["house", "home"], options)
  shown = texts(picture.draw(several, "a"))
  assert {"best: house", "no. 2: home", "1: -0.250", "2: -0.750", "= -1.000"} <= set(shown)
  alone = texts(picture.draw(several._replace(best=[2], texts=["house"]), "a"))
  assert {"best: house", "= -0.250", "= -0.750"} <= set(alone)


def test_no_lines_cross():
  figure = picture.draw(random_tree(1, 5, 6, ["a"]), "a")
  ends = [tuple(np.array(line.get_data()).T.ravel()) for line in figure.axes[0].lines]
  for (x1, y1, x2, _), (x3, y3, x4, _) in itertools.combinations(ends, 2):
    if y1 == y3:
      assert (x1 - x3) * (x2 - x4) >= 0


@pytest.mark.parametrize("wanted", [[3, 3, 3], [0, 0, 9], [9, 9, 9, 9], [1.5], [2, 2.2, 7, 7.1, 7.2]])
def test_places_are_the_nearest(wanted):
  """Against a search over a fine grid of places."""
  columns = 10
  found = picture._places(wanted, columns)
  assert found[0] >= 0 and found[-1] <= columns - 1 and min(np.diff(found), default=1) >= 1 - 1e-9
  error = np.sum((np.array(found) - wanted) ** 2)
  generator = np.random.default_rng(0)
  for _ in range(500):
    other = np.array(found) + 0.3 * generator.standard_normal(len(found))
    if other[0] >= 0 and other[-1] <= columns - 1 and min(np.diff(other), default=1) >= 1:
      assert np.sum((other - wanted) ** 2) >= error - 1e-9


@pytest.mark.parametrize(("beam", "steps", "message"), [(33, 1, "give a smaller --beam-size"), (1, 301, "shorter")])
def test_a_picture_that_is_too_large(beam, steps, message):
  with pytest.raises(InputError, match=message):
    picture.draw(random_tree(0, beam, steps, ["a"]), "a")


@pytest.mark.long
def test_the_command(run, translator, tmp_path):
  output = tmp_path / "tree.png"
  status, out, err = run("--sentence", "abc de", "--beam-size", 3, "--output", output)
  assert (status, out, err) == (0, f"{output}\n", []) and output.read_bytes()[:4] == b"\x89PNG"
  status, out, [err] = run("--sentence", " ", "--output", output)
  assert (status, out) == (2, "") and "the sentence is empty" in err


def test_a_beam_that_has_no_room_is_told_before_the_search(run, translator, tmp_path, monkeypatch):
  monkeypatch.setattr(translator, "search_tree", lambda *args, **options: pytest.fail("it searches"))
  status, out, said = run("--sentence", "ab", "--beam-size", 33, "--output", tmp_path / "x.svg")
  assert (status, out) == (2, "") and "at most 32 hypotheses in the beam: give --beam-size 32 or less" in said[-1]


def test_only_wide_characters_make_lines_shorter():
  text = "a market " * 29
  widths = {kind: max(map(len, picture._wrapped(text + kind, 5))) for kind in ("", "“", "…", "가")}
  assert widths[""] == widths["“"] == widths["…"] > 1.5 * widths["가"]


def test_the_search_has_the_flags(run, translator, tmp_path, monkeypatch):
  asked = []

  def noted(*args, **options):
    asked.append((args, options))
    return random_tree(0, 2, 1, ["a"])

  monkeypatch.setattr(translator, "search_tree", noted)
  flags = ["--beam-size", 3, "--length-penalty", 0.7, "--patience", 2, "--n-best", 2]
  assert run("--sentence", "ab", *flags, "--output", tmp_path / "x.svg")[0] == 0
  assert asked == [(("ab",), {"n_best": 2, "beam_size": 3, "length_penalty": 0.7, "patience": 2.0})]


@pytest.mark.parametrize(
  ("penalty", "formula", "divisor"),
  [(LengthPenalty.GNMT, "((5 + |Y|) / 6)^0.6", (7 / 6) ** 0.6), (LengthPenalty.FAIRSEQ, "|Y|^0.6", 2**0.6)],
)
def test_the_lines_above_say_how_the_score_is_made(penalty, formula, divisor):
  from tests.inside.drawn import texts

  ends = [Node(1, 2, EOS, -3.0, FINISHED, -3.0 / divisor), Node(0, 1, EOS, -9.0, FINISHED, -9.0)]
  nodes = [Node(None, 0, BOS, 0.0, KEPT), Node(0, 1, 7, -1.0, KEPT), *ends]
  tree = SearchTree(nodes, ["a"] * 4, [2, 3], ["house", "home"], SearchOptions(2, penalty, 0.6))
  shown = texts(picture.draw(tree, "a"))
  assert f"score {-3 / divisor:.3f} = log P -3.000 / length penalty {divisor:.3f}" in shown
  assert f"beam size 2, length penalty {formula} for |Y| tokens" in shown
