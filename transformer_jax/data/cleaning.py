"""Rules by which sentence pairs are left out of a corpus; all but `script_pattern` are as in OpusFilter.

Each rule is a function (source, target) -> whether the pair is left out. Each looks at one pair alone; duplicates, for
which a pair is compared with all others, are in `data/duplicates.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import regex

from transformer_jax.runtime import plugins
from transformer_jax.runtime.errors import InputError, require_option
from transformer_jax.runtime.wording import counted

Rule = Callable[[str, str], bool]
EMPTY = "an empty side"

_LETTER = regex.compile(r"\p{Alphabetic}")


class Unit(Enum):
  """What lengths are counted in: words are what spaces separate."""

  WORDS = "words"
  CHARACTERS = "characters"


@dataclass(frozen=True)
class Rules:
  """The rules that are on; by default only pairs with an empty side are left out.

  Attributes:
    unit: the unit of the three rules about lengths.
    min_length: a side has at least this length.
    max_length: a side has at most this length; None is no limit.
    max_ratio: the longer side is less than this many times as long as the other; None is no limit.
    copies: whether pairs stay whose sides are equal but for case and spaces.
    scripts: the script of each side, by its Unicode name; None is any.
    script_share: the least share of a side's letters that are of its script.
    languages: the code of each side's language, which must be the most likely one; None is any.

  Raises:
    InputError: a value is out of range.
  """

  unit: Unit = Unit.WORDS
  min_length: int = 1
  max_length: int | None = None
  max_ratio: float | None = None
  copies: bool = True
  scripts: tuple[str, str] | None = None
  script_share: float = 1.0
  languages: tuple[str, str] | None = None

  def __post_init__(self):
    least, most, ratio = self.min_length, self.max_length, self.max_ratio
    require_option("min_length", least, least >= 1, "at least 1")
    require_option("max_length", most, most is None or most >= least, f"at least {least}, the minimum")
    require_option("max_ratio", ratio, ratio is None or 1 < ratio < math.inf, "more than 1, and finite")
    require_option("script_share", self.script_share, 0 < self.script_share <= 1, "more than 0 and at most 1")


def rules_by_reason(rules: Rules) -> dict[str, Rule]:
  """The rules that are on, each with the reason in words; they are tried in this order.

  Raises:
    InputError: there is no such script or language, or the library that tells languages is not installed.
  """
  size = (lambda text: len(text.split())) if rules.unit is Unit.WORDS else len
  found: dict[str, Rule] = {EMPTY: lambda source, target: not source.strip() or not target.strip()}
  least, most, ratio, unit = rules.min_length, rules.max_length, rules.max_ratio, rules.unit.value
  if least > 1:
    found[f"fewer than {counted(least, unit)}"] = lambda source, target: min(size(source), size(target)) < least
  if most is not None:
    found[f"more than {counted(most, unit)}"] = lambda source, target: max(size(source), size(target)) > most
  if ratio is not None:
    found[f"one side at least {ratio:g} times as long as the other"] = lambda *pair: _ratio(*map(size, pair)) >= ratio
  if not rules.copies:
    found["both sides equal"] = lambda source, target: _plain(source) == _plain(target)
  if rules.scripts is not None:
    found[f"letters of another script than {' and '.join(rules.scripts)}"] = _script_rule(
      rules.scripts, rules.script_share
    )
  if rules.languages is not None:
    found[f"another language than {' and '.join(rules.languages)}"] = _language_rule(rules.languages)
  return found


def _ratio(a: int, b: int) -> float:
  return max(a, b) / max(1, min(a, b))


def _plain(text: str) -> str:
  """The text without its case and spaces."""
  return "".join(text.casefold().split())


def script_share(text: str, pattern: "regex.Pattern[str]") -> float:
  """The share of a text's letters that are of the script of a `script_pattern`; 1 if it has no letters."""
  letters = _LETTER.findall(text)
  return sum(pattern.match(letter) is not None for letter in letters) / len(letters) if letters else 1.0


def script_pattern(script: str) -> "regex.Pattern[str]":
  """The pattern of a letter of a script, such as `Latin`.

  Raises:
    InputError: Unicode has no script of this name.
  """
  try:
    if not script.isidentifier():
      raise regex.error("no name")
    # Letters of several scripts, such as the modifier letters, count for each.
    return regex.compile(rf"[\p{{Script={script}}}\p{{Script=Common}}\p{{Script=Inherited}}]")
  except regex.error as error:
    raise InputError(f"--scripts: Unicode has no script {script!r}: give one such as Latin, Hangul or Han") from error


def _script_rule(scripts: tuple[str, str], least: float) -> Rule:
  first, second = map(script_pattern, scripts)
  return lambda source, target: script_share(source, first) < least or script_share(target, second) < least


def _language_rule(languages: tuple[str, str]) -> Rule:
  py3langid = plugins.library("py3langid", "--identify needs py3langid: pip install 'transformer_jax[clean]'")
  known = {language for language, _ in py3langid.rank("a")}
  for language in languages:
    if language not in known:
      raise InputError(
        f"--identify cannot tell the language {language!r}, but only {', '.join(sorted(known))}: leave it out"
      )
  first, second = languages
  return lambda source, target: py3langid.classify(source)[0] != first or py3langid.classify(target)[0] != second
