"""The embedded treebank: sentences of a small grammar, in place of the licensed Penn Treebank of §6.3.

The grammar is ambiguous as English is, and words decide:

- *hit the man with the hammer*: one hits with hammers, so the phrase belongs to the verb. One does not see with them,
  so in *saw the man with the hammer* it belongs to the man.
- *the dog in the park and the cat*: a cat goes with a dog. *the dog in the park and the garden*: a garden with a park.
- *old men and women*: both are old. *old men and dogs*: the men are.
- *the man saw the dog and the cat* is one noun phrase, until *slept* follows.

A sentence is a function of its number alone. Its words decide its split, so that no sentence is in two.
"""

import functools
import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

from transformer_jax.data import fingerprint
from transformer_jax.data.trees import Tree, pairs_of, read_trees
from transformer_jax.runtime.errors import InputError

Choice = TypeVar("Choice")

# The sentences of each split. The paper has about 40,000 to train on.
SENTENCES = {"train": 40_000, "validation": 1_000, "test": 1_000}
# How many of 100 different sentences are of the split.
_HELD_OUT = {"validation": 5, "test": 5}
_FORMAT = 1  # changes if the sentences do

_NOUNS = {
  "person": ("man", "woman", "boy", "girl", "teacher", "doctor", "farmer", "neighbour"),
  "animal": ("dog", "cat", "horse", "bird", "rabbit", "goat"),
  "thing": ("book", "box", "letter", "lamp", "chair", "picture", "cake", "basket"),
  "place": ("park", "garden", "kitchen", "street", "station", "market", "field", "library"),
  "town": ("village", "city", "island", "valley"),
  "tool": ("hammer", "stick", "knife", "saw", "telescope", "camera", "brush", "rope"),
  "clothes": ("hat", "coat", "scarf", "shirt"),
  "mark": ("spots", "stripes", "whiskers"),
}
_PLURALS = {
  "person": ("men", "women", "boys", "girls", "teachers", "farmers"),
  "animal": ("dogs", "cats", "horses", "birds", "goats"),
  "thing": ("books", "letters", "lamps", "chairs", "cakes"),
}
_ADJECTIVES = ("old", "young", "small", "big", "red", "quiet", "strange", "happy")
_NAMES = ("Anna", "Ben", "Clara", "David")
# Verbs, and what one does it with.
_INSTRUMENTS = {
  "hit": ("hammer", "stick", "brush"),
  "touched": ("stick", "brush", "rope"),
  "cut": ("knife", "saw"),
  "saw": ("telescope", "camera"),
  "watched": ("telescope", "camera"),
  "painted": ("brush", "knife"),
  "tied": ("rope",),
  "moved": ("stick", "rope", "hammer"),
}
# A place after these belongs to the verb, but after `_STATES` to the noun.
_EVENTS = ("met", "chased", "found", "fed", "followed", "called")
_STATES = ("liked", "knew", "owned", "wanted", "loved", "feared")
_TAKES = ("took", "removed", "stole")
_GIVES = ("gave", "showed", "sent", "sold")
_RESTS = ("slept", "waited", "sang", "played", "worked", "laughed")
_SAYS = ("said", "thought", "believed", "hoped")
_PARTICLES = (("picked", "up"), ("put", "down"), ("threw", "away"), ("turned", "over"))
_ADVERBS = ("quickly", "quietly", "often", "gladly", "slowly")


class GrammarPairs:
  """The sentences of a split, with their linearised trees.

  Args:
    which: the name of the split.

  Raises:
    InputError: there is no such split.
  """

  def __init__(self, which: str):
    if which not in SENTENCES:
      raise InputError(
        f"the grammar has no split {which!r}: set config.data.train, config.data.validation and config.data.test to "
        f"one of {', '.join(SENTENCES)}; for a treebank of your own set config.data.corpus=trees"
      )
    self.name = f"the split {which!r} of the grammar"
    self._which = which

  def __iter__(self) -> Iterator[tuple[str, str]]:
    return iter(_pairs(self._which))

  def fingerprint(self) -> str:
    """A digest of what determines the sentences."""
    return fingerprint.of_values(_FORMAT, self._which, SENTENCES[self._which])


# The cache saves time as the corpus is read several times: to learn the tokenizers and to pack rows.
@functools.cache
def _pairs(split: str) -> list[tuple[str, str]]:
  return list(pairs_of(trees_of(split)))


def trees_of(split: str) -> Iterator[Tree]:
  """The trees of a split, each sentence once."""
  seen: set[tuple[str, ...]] = set()
  number = 0
  while len(seen) < SENTENCES[split]:
    tree = tree_of(number)
    number += 1
    if tree.words not in seen and _split_of(tree.words) == split:
      seen.add(tree.words)
      yield tree


def tree_of(number: int) -> Tree:
  """The tree of the sentence with this number, which sentences of all splits share."""
  (tree,) = read_trees([_Sentence(number).text()], f"sentence {number} of the grammar")
  return tree


def _split_of(words: Sequence[str]) -> str:
  place = hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest()
  left = int.from_bytes(place) % 100
  for split, share in _HELD_OUT.items():
    if left < share:
      return split
    left -= share
  return "train"


def _phrase(label: str, *children: str) -> str:
  return f"({label} {' '.join(child for child in children if child)})"


def _determined(noun: str, adjective: str = "") -> str:
  tag = "NNS" if noun in _NOUNS["mark"] else "NN"
  return _phrase("NP", "(DT the)", adjective and f"(JJ {adjective})", f"({tag} {noun})")


def _with(preposition: str, phrase: str) -> str:
  return _phrase("PP", f"(IN {preposition})", phrase)


class _Sentence:
  """A sentence in Penn's brackets. `closed` keeps what could also end further to the right out of a phrase."""

  def __init__(self, number: int):
    self._random = random.Random(number)

  def text(self) -> str:
    chance = self._chance()
    if chance < 0.15:
      front = _with("in", self._place())
      return _phrase("S", front, "(, ,)", self._subject(), self._verb_phrase(2), "(. .)")
    if chance < 0.3:
      return _phrase("S", self._clause(1, closed=True), "(CC and)", self._clause(2), "(. .)")
    return _phrase("S", self._subject(), self._verb_phrase(2), "(. .)")

  def _clause(self, depth: int, *, closed: bool = False) -> str:
    return _phrase("S", self._subject(closed=closed), self._verb_phrase(depth, closed=closed))

  def _subject(self, *, closed: bool = False) -> str:
    if self._chance() < 0.15:
      return f"(NP (NNP {self._one(_NAMES)}))"
    return self._noun_phrase(self._one(("person", "person", "animal")), closed=closed)

  def _noun_phrase(self, kind: str, instruments: Sequence[str] = (), *, place: bool = True, closed: bool) -> str:
    """A noun phrase with a coordination, a relative clause or a prepositional phrase, or none of these.

    A person may have a tool, but none of the verb's `instruments`.
    """
    chance = self._chance()
    if chance < 0.12 and kind in _PLURALS:
      return self._plurals(kind)
    first = self._modified(kind, instruments, place=place)
    if chance < 0.25:
      return _phrase("NP", first, "(CC and)", self._modified(kind, instruments, place=place))
    if chance < 0.33 and not closed and kind in ("person", "animal"):
      clause = _phrase("S", self._verb_phrase(0, closed=True))
      return _phrase("NP", self._base(kind), _phrase("SBAR", "(WHNP (WDT that))", clause))
    return first

  def _plurals(self, kind: str) -> str:
    """`old men and women`: the adjective is that of both if they are of one kind."""
    adjective, first = self._one(_ADJECTIVES), self._one(_PLURALS[kind])
    other = self._one(tuple(_PLURALS))
    second = self._one([noun for noun in _PLURALS[other] if noun != first])
    left, right = f"(JJ {adjective}) (NNS {first})", f"(NNS {second})"
    if kind == other:
      return _phrase("NP", left, "(CC and)", right)
    return _phrase("NP", _phrase("NP", left), "(CC and)", _phrase("NP", right))

  def _modified(self, kind: str, instruments: Sequence[str], *, place: bool) -> str:
    """A noun, sometimes with a prepositional phrase that cannot belong to the verb."""
    base, chance = self._base(kind), self._chance()
    if chance > 0.4:
      return base
    if kind == "thing" or chance < 0.08:
      return _phrase("NP", base, _with("of", self._base("person" if kind == "thing" else "town")))
    if kind == "animal" and chance < 0.2:
      return _phrase("NP", base, _with("with", self._things("mark")))
    if kind == "person" and chance < 0.25:
      return _phrase("NP", base, self._of_person(instruments))
    return _phrase("NP", base, _with("in", self._place())) if place else base

  def _of_person(self, instruments: Sequence[str]) -> str:
    chance = self._chance()
    if chance < 0.3:
      return _with("from", self._base("town"))
    if chance < 0.6:
      return _with("with", self._things("clothes"))
    return _with("with", _determined(self._other_tool(instruments)))

  def _things(self, kind: str) -> str:
    if self._chance() < 0.25:
      return _phrase("NP", self._base(kind), "(CC and)", self._base(kind))
    return self._base(kind)

  def _place(self) -> str:
    """A place, sometimes two, or one near another."""
    chance = self._chance()
    if chance < 0.15:
      return _phrase("NP", self._base("place"), "(CC and)", self._base("place"))
    if chance < 0.3:
      return _phrase("NP", self._base("place"), _with("near", self._base("place")))
    return self._base("place")

  def _base(self, kind: str) -> str:
    adjective = self._one(_ADJECTIVES) if self._chance() < 0.2 else ""
    return _determined(self._one(_NOUNS[kind]), adjective)

  def _other_tool(self, instruments: Sequence[str]) -> str:
    """A tool that the action is not done with."""
    return self._one([tool for tool in _NOUNS["tool"] if tool not in instruments])

  def _verb_phrase(self, depth: int, *, closed: bool = False) -> str:
    chance = self._chance()
    if chance < 0.12 and depth:
      return _phrase("VP", self._simple(closed=True), "(CC and)", self._simple(closed=closed))
    if chance < 0.24 and depth and not closed:
      inner = _phrase("SBAR", "(IN that)", self._clause(depth - 1))
      return _phrase("VP", f"(VBD {self._one(_SAYS)})", inner)
    return self._simple(closed=closed)

  def _simple(self, *, closed: bool) -> str:
    """A verb with its objects and what belongs to it."""
    kinds = (self._rests, self._does, self._does, self._happens, self._happens, self._takes, self._gives, self._turns)
    return self._one(kinds)(closed)

  def _rests(self, closed: bool) -> str:
    place = _with("in", self._place()) if self._chance() < 0.5 else ""
    return _phrase("VP", f"(VBD {self._one(_RESTS)})", place, self._adverb())

  def _does(self, closed: bool) -> str:
    """A verb with a tool: an instrument of the verb, or something that a person has and that is no instrument of it."""
    verb = self._one(tuple(_INSTRUMENTS))
    chance, kind = self._chance(), self._one(("person", "person", "animal", "thing"))
    if chance < 0.4:
      tool = _determined(self._one(_INSTRUMENTS[verb]))
      return _phrase("VP", f"(VBD {verb})", self._things(kind), _with("with", tool))
    if chance < 0.6:
      owner = _phrase("NP", self._base("person"), _with("with", _determined(self._other_tool(_INSTRUMENTS[verb]))))
      return _phrase("VP", f"(VBD {verb})", owner)
    found = self._noun_phrase(kind, _INSTRUMENTS[verb], place=False, closed=closed)
    return _phrase("VP", f"(VBD {verb})", found, self._adverb())

  def _happens(self, closed: bool) -> str:
    """A place belongs to what happens, but not to a state."""
    event = self._chance() < 0.5
    verb = self._one(_EVENTS if event else _STATES)
    kind = self._one(("person", "animal", "animal"))
    if self._chance() < 0.5:
      found = self._noun_phrase(kind, place=not event, closed=closed)
      return _phrase("VP", f"(VBD {verb})", found)
    place = _with("in", self._place())
    if event:
      return _phrase("VP", f"(VBD {verb})", self._things(kind), place)
    return _phrase("VP", f"(VBD {verb})", _phrase("NP", self._base(kind), place))

  def _takes(self, closed: bool) -> str:
    """Things are taken from places and people, but are from towns."""
    verb = f"(VBD {self._one(_TAKES)})"
    if self._chance() < 0.5:
      return _phrase("VP", verb, self._base("thing"), _with("from", self._base(self._one(("place", "person")))))
    return _phrase("VP", verb, _phrase("NP", self._base("thing"), _with("from", self._base("town"))))

  def _gives(self, closed: bool) -> str:
    receiver = self._noun_phrase("person", place=False, closed=closed)
    return _phrase("VP", f"(VBD {self._one(_GIVES)})", self._base("thing"), _phrase("PP", "(TO to)", receiver))

  def _turns(self, closed: bool) -> str:
    verb, particle = self._one(_PARTICLES)
    return _phrase("VP", f"(VBD {verb})", f"(PRT (RP {particle}))", self._things("thing"))

  def _adverb(self) -> str:
    return f"(ADVP (RB {self._one(_ADVERBS)}))" if self._chance() < 0.2 else ""

  def _chance(self) -> float:
    return self._random.random()

  def _one(self, choices: Sequence[Choice]) -> Choice:
    return choices[int(self._chance() * len(choices))]
