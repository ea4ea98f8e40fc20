"""Parse trees: Penn's format, the linearised form and its repair, and the corpus of files."""

import gzip
import os
import random

import pytest

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import grammar, pipeline, trees
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.trees import TOP, Outcome, Span, Tree, TreePairs, delinearise, linearise, read_trees, symbols
from transformer_jax.runtime.errors import InputError

JOHN = "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"
# Vinyals et al. 2015, Figure 2.
TARGET = "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"
WORDS = ["John", "has", "a", "dog", "."]


def read(*lines):
  return list(read_trees(lines, "wsj.mrg"))


def test_the_linearised_tree_is_that_of_vinyals_et_al():
  (tree,) = read(JOHN)
  assert tree == Tree(
    tuple(WORDS),
    ("NNP", "VBZ", "DT", "NN", "."),
    (Span("S", 0, 5), Span("NP", 0, 1), Span("VP", 1, 4), Span("NP", 2, 4)),
  )
  assert (linearise(tree), str(tree)) == (TARGET, JOHN)
  assert delinearise(TARGET, WORDS) == (tree, Outcome.WHOLE)


def test_a_tree_in_penns_format_loses_functions_traces_and_the_root():
  lines = [
    "( (S",
    "    (NP-SBJ-1 (NNP John) )",
    "    (VP (VBZ has)",
    "      (NP=2 (DT a) (NN dog) (SBAR (-NONE- 0) (S (NP (-NONE- *T*-1)))))) (. .) ))",
    "(TOP (NP (-LRB- -LRB-) (NN b))) ((S (-NONE- *)))",
    "((NP (NN c)) (NP (NN d)))",
    "(ROOT (NP (NN e)))",
    "(S1 (NP (NN f)))",
  ]
  assert [*map(str, read(*lines))] == [
    JOHN,
    "(NP (-LRB- -LRB-) (NN b))",
    "(TOP (NP (NN c)) (NP (NN d)))",
    "(NP (NN e))",
    "(NP (NN f))",
  ]


def test_unary_constituents_keep_their_order():
  (tree,) = read("(S (VP (VP (NP (VB go)))))")
  assert linearise(tree) == "(S (VP (VP (NP VB )NP )VP )VP )S"
  assert delinearise(linearise(tree), ["go"]) == (tree, Outcome.WHOLE)


REPAIRED = {
  # a bracket that nothing closes, or that was never opened
  "(S (NP NNP (VP VBZ (NP DT NN )NP )VP . )S": "(S (NP NNP (VP VBZ (NP DT NN )NP )VP . )NP )S",
  "(S (NP NNP )VP )NP (VP VBZ (NP DT NN )NP )VP . )S": TARGET,
  "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP .": TARGET,
  "(S (NP NNP )NP (VP VBZ (NP DT NN )VP . )S": TARGET,
  # constituents without words, signs that are neither brackets nor tags
  "(S (NP NNP )NP (ADVP )ADVP (VP VBZ (NP DT NN )NP )VP . )S": TARGET,
  "(S (NP NNP )NP ( (VP VBZ (NP DT NN )NP )VP ) . )S": TARGET,
  # too many words, too few
  "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . . )S": TARGET,
  "(S (NP NNP )NP (VP VBZ (NP DT )NP )VP )S": "(S (NP NNP )NP (VP VBZ (NP DT )NP )VP XX XX )S",
  # several roots, and words before the root
  "(NP NNP )NP (VP VBZ (NP DT NN )NP )VP .": "(TOP (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )TOP",
  "NNP (VP VBZ DT NN )VP .": "(TOP NNP (VP VBZ DT NN )VP . )TOP",
}


@pytest.mark.parametrize("text", REPAIRED)
def test_an_output_is_repaired(text):
  tree, outcome = delinearise(text, WORDS)
  assert (linearise(tree), outcome) == (REPAIRED[text], Outcome.REPAIRED)
  assert tree.words == tuple(WORDS)


@pytest.mark.parametrize("text", ["", "NNP VBZ", "(S )S", "(S", ")S )NP", "( )", "NNP VBZ DT NN ."])
def test_an_output_without_a_constituent_is_refused(text):
  tree, outcome = delinearise(text, WORDS)
  assert outcome is Outcome.REFUSED and tree.words == tuple(WORDS) and tree.spans == (Span(TOP, 0, 5),)


def test_whatever_the_output_is_there_is_a_tree_of_the_sentence():
  draw = random.Random(0)
  known = ["(S", ")S", "(NP", ")NP", "(", ")", "NN", "DT", "((", "))", "(TOP"]
  for _ in range(2000):
    text = " ".join(draw.choices(known, k=draw.randint(0, 15)))
    words = [f"w{i}" for i in range(draw.randint(1, 6))]
    tree, outcome = delinearise(text, words)
    assert tree.words == tuple(words) and len(tree.tags) == len(words)
    assert tree.spans[0][1:] == (0, len(words)) and all(span.start < span.end for span in tree.spans)
    again = delinearise(linearise(tree), words)
    assert again[0] == tree  # so its brackets match
    assert (linearise(tree) == text) == (outcome is Outcome.WHOLE)


def test_many_roots_are_one():
  """In a time that grows with their number alone."""
  [tree] = read("(S1 " * 200_000 + "(X (NN a))" + ")" * 200_000)
  assert tree.spans == (Span("X", 0, 1),)


def test_depth_has_no_limit():
  text = "(S " * 5000 + "NN" + " )S" * 5000
  tree, outcome = delinearise(text, ["a"])
  assert outcome is Outcome.WHOLE and linearise(tree) == text
  assert read(str(tree)) == [tree]


@pytest.mark.parametrize(
  ("lines", "message"),
  [
    ((JOHN, "(S (NP (NN a))"), "wsj.mrg, line 2: the tree that begins there has no end"),
    ((JOHN + ")",), r"wsj.mrg, line 1: '\)' is not expected"),
    (("(S (NN a b))",), "wsj.mrg, line 1: 'b' is not expected"),
    (("the dog .",), "wsj.mrg, line 1: 'the' is not expected"),
    (("", "(NN dog)"), "wsj.mrg, line 2: .*is a word without a tree"),
    (("(S () (NN a))",), r"wsj.mrg, line 1: '\)' is not expected"),
  ],
)
def test_brackets_that_do_not_match_are_reported_with_their_line(lines, message):
  with pytest.raises(InputError, match=message):
    read(*lines)


def test_a_missing_bracket_is_told_with_the_line_of_its_tree_and_does_not_fill_the_memory(monkeypatch):
  broken = ["(S (NN a))"] * 4 + ["(S (NN a)"] + ["(S (NN a))"] * 3
  with pytest.raises(InputError, match=r"wsj.mrg, line 5: the tree that begins there has no end"):
    read(*broken)
  monkeypatch.setattr(trees, "_LARGEST", 30)
  lines = iter([*broken[:5], *["(A"] * 100])
  with pytest.raises(InputError, match=r"wsj.mrg, line 5: the tree that begins there has no end"):
    list(read_trees(lines, "wsj.mrg"))
  assert 60 < sum(1 for _ in lines) < 80  # which were not read


@pytest.fixture
def treebank(tmp_path):
  (tmp_path / "one.mrg").write_text(JOHN + "\n")
  with gzip.open(tmp_path / "two.mrg.gz", "wt") as file:
    file.write("( (NP (NN b)\n  (NN c)) )\n")
  return f"{tmp_path}/one.mrg; {tmp_path}/two.mrg.gz"


def test_treebanks_are_a_corpus(treebank, tmp_path):
  corpus = open_corpus(DataConfig(corpus=Corpus.TREES), treebank)
  assert list(corpus) == list(corpus) == [(" ".join(WORDS), TARGET), ("b c", "(NP NN NN )NP")]
  before = corpus.fingerprint()
  (tmp_path / "one.mrg").write_text("(NP (NN b))")
  now = open_corpus(DataConfig(corpus=Corpus.TREES), treebank).fingerprint()
  assert now != before
  with gzip.open(tmp_path / "two.mrg.gz", "wt") as file:
    file.write("(NP (NN d))")
  assert open_corpus(DataConfig(corpus=Corpus.TREES), treebank).fingerprint() not in (before, now)
  with pytest.raises(InputError, match=r"none\.mrg does not exist"):
    open_corpus(DataConfig(corpus=Corpus.TREES), f"{tmp_path}/none.mrg")


def test_a_pipe_is_refused_as_a_treebank_is_read_more_than_once(tmp_path):
  os.mkfifo(tmp_path / "pipe")
  with pytest.raises(InputError, match="pipe is a pipe, whose text can be read only once: write it to a file"):
    TreePairs(f"{tmp_path / 'pipe'};")


@pytest.mark.parametrize("sizes", [(400,), (300, 291)])
def test_each_bracket_and_tag_is_one_token(sizes, monkeypatch):
  monkeypatch.setitem(grammar.SENTENCES, "train", 300)
  grammar._pairs.cache_clear()
  data = DataConfig(corpus=Corpus.GRAMMAR, target_language="tree")
  tokenizer = pipeline.learn_tokenizer(data, *sizes)
  pairs = list(open_corpus(data, "train"))
  grammar._pairs.cache_clear()
  assert tokenizer.source.pieces(tokenizer.source.encode("the")) == [" the"]  # a word has its space
  for source, target in pairs:
    tokens = tokenizer.target.encode(target)
    assert tokenizer.target.pieces(tokens) == [f" {symbol}" for symbol in target.split()]
    assert tokenizer.target.decode(tokens) == target
    assert tokenizer.source.decode(tokenizer.source.encode(source)) == source
  assert len(symbols(target for _, target in pairs)) == 30


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("(S (NP (NN dog)) ( (VP (VBD slept))))", "(S (NP NN )NP (VP VBD )VP )S"),
    ("( ( (S (NP (NN d))) ) )", "(S (NP NN )NP )S"),
    ("( (NN a) (NN b) )", "(TOP NN NN )TOP"),
  ],
)
def test_a_bracket_without_a_label_is_no_constituent(text, expected):
  [tree] = read_trees([text], "text")
  assert linearise(tree) == expected
  again, outcome = delinearise(expected, tree.words)
  assert (again.spans, outcome) == (tree.spans, Outcome.WHOLE)
