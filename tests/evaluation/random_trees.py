"""Random trees, and parses of them that are right in part."""

import random

from transformer_jax.data import grammar
from transformer_jax.data.trees import TOP, Span, Tree, delinearise, linearise

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


def examples():
  """Parses and references: 300 of random trees, and 300 of the grammar."""
  draw = random.Random(5)
  references = [a_tree(draw) for _ in range(300)] + [grammar.tree_of(i) for i in range(300)]
  return [another(tree, draw) for tree in references], references
