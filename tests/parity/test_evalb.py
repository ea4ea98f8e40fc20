"""Labelled F1 beside EVALB itself (Sekine and Collins), and trees beside NLTK's reader.

EVALB is a C program without a package. `evalb` on the PATH, built from its one file, is used with the rules of its
COLLINS.prm. `tests/evaluation/test_parseval.py` has what it prints.
"""

import random
import re
import shutil
import subprocess

import pytest

from tests.evaluation.random_trees import a_tree, examples
from transformer_jax.data import grammar
from transformer_jax.data.trees import TOP, read_trees
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


@pytest.mark.skipif(shutil.which("evalb") is None, reason="no evalb on the PATH")
def test_scores_are_those_of_evalb(tmp_path):
  parses, references = examples()
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
