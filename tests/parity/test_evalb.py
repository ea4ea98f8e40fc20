"""Labelled F1 beside EVALB itself (Sekine and Collins), and trees beside NLTK's reader.

EVALB is a C program without a package. `evalb` on the PATH, built from its one file, is used with the rules of its
COLLINS.prm.
"""

import random
import re
import shutil
import subprocess

import pytest

from transformer_jax.data import grammar
from transformer_jax.data.trees import TOP, Span, Tree, delinearise, linearise, read_trees
from transformer_jax.evaluation.parseval import parseval

COLLINS = """\
DEBUG 0
MAX_ERROR 10
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL ADVP PRT
"""
PUNCTUATION = [",", ".", ":", "``", "''"]


def a_tree(draw):
  """A random tree, with unary chains, repeated labels, and phrases of punctuation alone."""
  length = draw.randint(1, 12)
  tags = [draw.choice(["NN", "VB", "DT", *PUNCTUATION]) for _ in range(length)]
  if all(tag in PUNCTUATION for tag in tags):
    tags[0] = "NN"

  def spans(start, end, depth):
    label = draw.choice(["S", "NP", "VP", "PRT", "ADVP", TOP])
    found = [Span(label, start, end)]
    if depth and draw.random() < 0.3:
      return found + spans(start, end, depth - 1)
    if depth and end - start > 1:
      middle = draw.randint(start + 1, end - 1)
      for part in ((start, middle), (middle, end)):
        if draw.random() < 0.7:
          found += spans(*part, depth - 1)
    return found

  return Tree(tuple(f"w{i}" for i in range(length)), tuple(tags), tuple(spans(0, length, 5)))


def another(tree, draw):
  """The output of a model that is right at times: pieces of the linearised tree are lost, doubled or changed."""
  symbols = []
  for symbol in linearise(tree).split():
    chance = draw.random()
    if chance < 0.9:
      symbols.append(symbol)
    elif chance < 0.93 and symbol[0] in "()":
      symbols += [symbol, symbol]
    elif chance < 0.96 and symbol[0] in "()":
      symbols.append(symbol[0] + draw.choice(["NP", "VP", "ADVP"]))
  found = delinearise(" ".join(symbols), tree.words)[0]
  # EVALB takes the words that count from the tags of both trees. Here the reference's decide.
  pairs = zip(found.tags, tree.tags, strict=True)
  tags = [ours if theirs == "NN" and ours not in PUNCTUATION else theirs for ours, theirs in pairs]
  return Tree(tree.words, tuple(tags), found.spans)


@pytest.mark.skipif(shutil.which("evalb") is None, reason="no evalb on the PATH")
def test_scores_are_those_of_evalb(tmp_path):
  draw = random.Random(5)
  references = [a_tree(draw) for _ in range(300)] + [grammar.tree_of(i) for i in range(300)]
  parses = [another(tree, draw) for tree in references]
  for name, trees in (("gold", references), ("test", parses)):
    (tmp_path / name).write_text("".join(f"{tree}\n" for tree in trees))
  (tmp_path / "prm").write_text(COLLINS)
  command = ["evalb", "-p", "prm", "gold", "test"]
  printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
  every = printed.split("-- All --")[1].split("--")[0]
  values = {name.strip(): float(value) for name, value in re.findall(r"(.+?) +=\s+([\d.]+)", every)}
  assert values["Number of Valid sentence"] == 600
  found = parseval(parses, references)
  ours = {
    "Bracketing FMeasure": found.f1,
    "Bracketing Recall": found.recall,
    "Bracketing Precision": found.precision,
    "Complete match": found.complete_match,
    "Tagging accuracy": found.tag_accuracy,
  }
  assert 20 < found.f1 < 95
  assert {name: round(value, 2) for name, value in ours.items()} == {name: values[name] for name in ours}


def test_trees_are_read_as_by_nltk():
  nltk = pytest.importorskip("nltk")
  draw = random.Random(7)
  texts = [str(a_tree(draw)) for _ in range(100)] + [str(grammar.tree_of(i)) for i in range(100)]
  for text in texts:
    theirs = nltk.Tree.fromstring(f"(ROOT {text})")
    (ours,) = read_trees([f"(ROOT {text})"], "a tree")
    assert list(ours.words) == theirs.leaves()
    assert list(zip(ours.words, ours.tags, strict=True)) == theirs.pos()
    whole = theirs[0] if ours.spans[0].label != TOP or theirs[0].label() == TOP else theirs
    labels = [node.label() for node in whole.subtrees(lambda node: node.height() > 2)]
    if TOP not in labels:
      assert [span.label for span in ours.spans] == labels
