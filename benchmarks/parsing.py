"""Parsing (§6.3): the test sentences of the grammar as files, and the F1 of parsers that know no words.

    python benchmarks/parsing.py --output FOLDER
    transformer-jax evaluate --workdir RUN --source FOLDER/test.words --reference FOLDER/test.trees

- right-branching: each word and all after it are a constituent, with the label that gives the highest F1.
- most frequent: of the trees that training sentences with the same tags have, the most frequent one, and
  right-branching if there are none. So it takes the attachment that is most frequent, with the right tags given.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import programs

from transformer_jax.data.grammar import trees_of
from transformer_jax.data.trees import Span, Tree
from transformer_jax.evaluation.parseval import parseval


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--output", type=Path, help="a folder for test.words and test.trees")
  args = parser.parse_args()
  test = list(trees_of("test"))
  if args.output:
    args.output.mkdir(parents=True, exist_ok=True)
    for name, lines in (("words", [" ".join(tree.words) for tree in test]), ("trees", [*map(str, test)])):
      (args.output / f"test.{name}").write_text("".join(f"{line}\n" for line in lines))
  labels = {span.label for tree in test for span in tree.spans}
  label = max(sorted(labels), key=lambda label: parseval([right_branching(tree, label) for tree in test], test).f1)
  seen: dict[tuple[str, ...], Counter[tuple[Span, ...]]] = defaultdict(Counter)
  for tree in trees_of("train"):
    seen[tree.tags][tree.spans] += 1
  right = [right_branching(tree, label) for tree in test]
  frequent = [
    Tree(tree.words, tree.tags, seen[tree.tags].most_common(1)[0][0]) if tree.tags in seen else other
    for tree, other in zip(test, right, strict=True)
  ]
  known = [place for place, tree in enumerate(test) if tree.tags in seen]
  of_known = parseval([frequent[place] for place in known], [test[place] for place in known])
  found = {
    f"right-branching, all {label}": parseval(right, test).to_dict(),
    "most frequent": parseval(frequent, test).to_dict(),
    "most frequent, sentences whose tags were seen": of_known.to_dict(),
  }
  for name, scores in found.items():
    print(json.dumps({"parser": name, **scores}))


def right_branching(tree: Tree, label: str) -> Tree:
  """A tree in which each word and all after it are a constituent."""
  length = len(tree.words)
  return Tree(tree.words, tree.tags, tuple(Span(label, start, length) for start in range(length)))


if __name__ == "__main__":
  programs.run(main)
