"""Parse trees as text: a sentence is the source, and its linearised tree is the target (§6.3).

A tree is written depth first, each closing bracket with its label, and each word as its tag. Vinyals et al. 2015 write
it so, but replace all tags by XX:

    (S (NP (DT the) (NN dog)) (VP (VBD slept)) (. .))        Penn's brackets
    (S (NP DT NN )NP (VP VBD )VP . )S                        the target

A model may write brackets that do not match, or too few or too many tags. `delinearise` makes a tree of any output.
"""

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_jax.data import fingerprint
from transformer_jax.data.text import digest, existing, lines_of, require_no_pipe
from transformer_jax.runtime.errors import InputError, one_line

# The label of a root that is no constituent. Treebanks have other labels or none for it.
TOP = "TOP"
_ROOTS = ("", TOP, "ROOT", "S1")
_TRACE = "-NONE-"  # the tag of an element that is no word
_NO_TAG = "XX"  # the tag of a word for which the model wrote none
_PENN = re.compile(r"[()]|[^\s()]+")
_LARGEST = 1 << 20  # constituents and words of a tree; more come from a bracket that is missing
_FORMAT = 2  # changes if the same file gives other pairs


class Span(NamedTuple):
  """A constituent: its label, and its words from `start` to before `end`."""

  label: str
  start: int
  end: int


@dataclass(frozen=True)
class Tree:
  """A parse tree.

  Attributes:
    words: the words of the sentence.
    tags: the tag of each word.
    spans: the constituents in the order of their opening brackets. The first has all words, and each has some.
  """

  words: tuple[str, ...]
  tags: tuple[str, ...]
  spans: tuple[Span, ...]

  def __str__(self) -> str:
    """The tree in Penn's brackets, on one line."""
    leaves = [f"({tag} {word})" for tag, word in zip(self.tags, self.words, strict=True)]
    return _bracketed(self.spans, leaves, lambda label: ")").replace(" )", ")")


def linearise(tree: Tree) -> str:
  """The tree as a target."""
  return _bracketed(tree.spans, tree.tags, lambda label: f"){label}")


def _bracketed(spans: Sequence[Span], leaves: Sequence[str], close: Callable[[str], str]) -> str:
  parts: list[str] = []
  opened: list[Span] = []
  following = list(reversed(spans))
  for place, leaf in enumerate(leaves):
    while following and following[-1].start == place:
      opened.append(following.pop())
      parts.append(f"({opened[-1].label}")
    parts.append(leaf)
    while opened and opened[-1].end == place + 1:
      parts.append(close(opened.pop().label))
  return " ".join(parts)


class _Brackets:
  """A tree in the making: brackets and leaves are added in their order."""

  def __init__(self):
    self.leaves: list[tuple[str, str]] = []  # tag, word
    self.opened: list[str] = []  # the labels of the open brackets
    self._places: list[int] = []  # those of the open brackets in `_spans`
    self._spans: list[Span] = []

  def open(self, label: str) -> None:
    self.opened.append(label)
    self._places.append(len(self._spans))
    self._spans.append(Span(label, len(self.leaves), len(self.leaves)))

  def add(self, tag: str, word: str) -> None:
    if tag != _TRACE:
      self.leaves.append((tag, word))

  def close(self) -> None:
    self.opened.pop()
    place = self._places.pop()
    self._spans[place] = self._spans[place]._replace(end=len(self.leaves))

  @property
  def size(self) -> int:
    """The number of constituents and words so far."""
    return len(self._spans) + len(self.leaves)

  def spans(self) -> list[Span]:
    """The constituents with words."""
    return [span for span in self._spans if span.end > span.start]

  def empty(self) -> bool:
    """Whether a constituent has no words."""
    return len(self.spans()) < len(self._spans)


class Outcome(enum.Enum):
  """What an output of the model was: a tree of the sentence, a text that had to be repaired, or no tree at all."""

  WHOLE = "whole"
  REPAIRED = "repaired"
  REFUSED = "refused"


def delinearise(text: str, words: Sequence[str]) -> tuple[Tree, Outcome]:
  """The tree of an output of the model, on the words of the sentence.

  An output is repaired like this:

  - A closing bracket closes its own constituent and those inside it. One without an opening bracket is left out.
  - The end closes all constituents. One without words is left out.
  - Tags after the last word are left out. Words after the last tag are children of the root, with the tag `XX`.
  - If no constituent has everything, a root `TOP` does, which no score counts.

  An output without any constituent is refused: its tree is `TOP` over the words.

  Args:
    text: the output.
    words: the words of the sentence, at least one.
  """
  brackets, outcome = _read(text, words)
  spans, tagged = brackets.spans(), len(brackets.leaves)
  if spans and spans[0][1:] == (0, tagged):
    spans[0] = spans[0]._replace(end=len(words))
  else:
    spans.insert(0, Span(TOP, 0, len(words)))
  tags = [tag for tag, _ in brackets.leaves] + [_NO_TAG] * (len(words) - tagged)
  return Tree(tuple(words), tuple(tags), tuple(spans)), outcome


def _read(text: str, words: Sequence[str]) -> tuple[_Brackets, Outcome]:
  """The constituents of an output, all closed, and what became of the output."""
  brackets, whole = _Brackets(), True
  for token in text.split():
    label = token[1:]
    if token in "()" or (token[0] == ")" and label not in brackets.opened):
      whole = False
    elif token[0] == "(":
      brackets.open(label)
    elif token[0] == ")":
      while brackets.opened[-1] != label:
        brackets.close()
        whole = False
      brackets.close()
    elif len(brackets.leaves) < len(words):
      brackets.leaves.append((token, words[len(brackets.leaves)]))
    else:
      whole = False
  whole = whole and not brackets.opened and not brackets.empty() and len(brackets.leaves) == len(words)
  while brackets.opened:
    brackets.close()
  spans = brackets.spans()
  if not spans:
    return brackets, Outcome.REFUSED
  has_root = spans[0][1:] == (0, len(brackets.leaves))
  return brackets, Outcome.WHOLE if whole and has_root else Outcome.REPAIRED


def read_trees(lines: Iterable[str], name: str, first: int = 1) -> Iterator[Tree]:
  """The trees of a text in Penn's brackets; a tree may have several lines, and a line several trees.

  As is usual, labels lose their functions (`NP-SBJ=2` is `NP`), traces are left out and with them what has no words,
  and so is the root that treebanks add. A bracket without a label is no constituent.

  Args:
    lines: the lines of the text; the first has the number `first`.
    name: the name of the text in messages.

  Raises:
    InputError: the brackets do not match; all earlier trees were yielded.
  """
  brackets, begin, label, word = _Brackets(), 0, None, None  # `label` may be of a constituent, or the tag of a word
  for number, line in enumerate(lines, first):
    if brackets.size > _LARGEST:
      break
    begin = begin if brackets.opened or label is not None else number
    for token in _PENN.findall(line):
      if token == "(" and word is None:
        if label is not None:
          brackets.open(_without_functions(label))
        label = ""
      elif token == ")" and word is not None:
        brackets.add(label or "", word)
        label = word = None
      elif token == ")" and label is None and brackets.opened:
        brackets.close()
      elif token not in "()" and label == "":
        label = token
      elif token not in "()" and label and word is None:
        word = token
      else:
        raise InputError(f"{name}, line {number}: {token[:40]!r} is not expected there in a tree; is it Penn's format?")
      if token == ")" and not brackets.opened:
        if brackets.leaves:
          yield _tree(brackets, f"{name}, line {number}")
        brackets = _Brackets()
  if brackets.opened or label is not None:
    raise InputError(f"{name}, line {begin}: the tree that begins there has no end: is a bracket missing?")


def _tree(brackets: _Brackets, place: str) -> Tree:
  spans, length = brackets.spans(), len(brackets.leaves)
  if not spans:
    raise InputError(f"{place}: {one_line(str(brackets.leaves[0]), 80)} is a word without a tree around it")
  first = 0
  while first + 1 < len(spans) and spans[first].label in _ROOTS and spans[first + 1][1:] == (0, length):
    first += 1
  del spans[:first]
  if spans[0].label in _ROOTS:
    spans[0] = Span(TOP, 0, length)
  spans = [span for span in spans if span.label]  # brackets without a label are no constituents
  tags, words = zip(*brackets.leaves, strict=True)
  return Tree(words, tags, tuple(spans))


def _without_functions(label: str) -> str:
  return re.split(r"(?<=.)[-=]", label, maxsplit=1)[0]


class TreePairs:
  """The sentences of treebanks, with their words between spaces, and their linearised trees.

  Args:
    which: files in Penn's brackets, plain or compressed, separated by `;`.

  Raises:
    InputError: a file is missing, may not be read, or is a pipe.
  """

  def __init__(self, which: str):
    self.name = which
    self._paths = [existing(part.strip()) for part in which.split(";") if part.strip()]
    require_no_pipe(self._paths)  # a reader reads them more than once

  def __iter__(self) -> Iterator[tuple[str, str]]:
    for path in self._paths:
      yield from pairs_of(read_trees(lines_of(path), str(path)))

  def fingerprint(self) -> str:
    """A digest of the files' bytes on disk."""
    return fingerprint.of_values(_FORMAT, [digest(path) for path in self._paths])


def pairs_of(trees: Iterable[Tree]) -> Iterator[tuple[str, str]]:
  """Each sentence with its linearised tree."""
  return ((" ".join(tree.words), linearise(tree)) for tree in trees)


def symbols(targets: Iterable[str]) -> list[str]:
  """All brackets and tags of targets, each with the space in front of it."""
  return [f" {symbol}" for symbol in sorted({symbol for target in targets for symbol in target.split()})]
