"""The pages name things that exist: files, modules, links, tests, commands and config keys."""

import argparse
import dataclasses
import re
from pathlib import Path

import pytest

from transformer_jax import registry
from transformer_jax.__main__ import _parser
from transformer_jax.commands import COMMANDS
from transformer_jax.config import Config

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
HISTORY = (CHANGELOG, ROOT / "docs" / "results" / "mutants" / "table.md")  # they name what was there before, too
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CURRENT = [page for page in PAGES if page not in HISTORY]


def keys_of(config: type) -> set[str]:
  return {field.name for field in dataclasses.fields(config)}


def names_in(page: Path) -> str:
  return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", CURRENT, ids=names_in)
def test_paths_exist(page):
  """A path is given from the top, from the package, from the page, or for a test from the tests."""
  folders = [ROOT, ROOT / "transformer_jax", page.parent, ROOT / "tests"]
  named = set(re.findall(r"[\w./-]*/[\w-]+\.(?:py|md|json|svg)\b", re.sub(r"https?://\S+", "", page.read_text())))
  assert not {path for path in named if not any((folder / path).exists() for folder in folders)}


@pytest.mark.parametrize("page", PAGES, ids=names_in)
def test_links_lead_somewhere(page):
  links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
  assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


@pytest.mark.parametrize("page", CURRENT, ids=names_in)
def test_modules_exist(page):
  modules = re.findall(r"(?:from|import|-m) (transformer_jax[\w.]*)", page.read_text())
  paths = [ROOT.joinpath(*module.split(".")) for module in modules]
  assert not [path for path in paths if not (path.is_dir() or path.with_suffix(".py").exists())]


@pytest.mark.parametrize("page", CURRENT, ids=names_in)
def test_commands_exist(page):
  text = page.read_text()
  named = re.findall(r"(?:^ *|`|\| )(?:transformer-jax|python -m transformer_jax) ([a-z]+)", text, re.MULTILINE)
  assert set(named) <= {*COMMANDS}


def options_of(parser: argparse.ArgumentParser) -> set[str]:
  """The options of a command and of the commands below it."""
  found = set(parser._option_string_actions)
  for action in parser._actions:
    if isinstance(action, argparse._SubParsersAction):
      found |= set().union(*map(options_of, action.choices.values()))
  return found


@pytest.fixture(scope="module")
def options():
  [commands] = [each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction)]
  return {name: options_of(parser) for name, parser in commands.choices.items()}


@pytest.mark.parametrize("page", CURRENT, ids=names_in)
def test_flags_exist(page, options):
  """Those of a command up to a pipe, the end of its line or of its code."""
  text = page.read_text().replace("\\\n", " ")
  calls = re.findall(r"(?:transformer-jax|python -m transformer_jax) ([a-z]+)\b([^`|\n]*)", text)
  unquoted = [(command, re.sub(r"'[^']*('|$)", "", rest)) for command, rest in calls]
  named = {(name, flag) for name, rest in unquoted for flag in re.findall(r"(?<!\S)--[a-z][\w-]*(?![\w.-])", rest)}
  assert not [call for call in named if call[1] not in options.get(call[0], ())]


@pytest.mark.parametrize("page", CURRENT, ids=names_in)
def test_config_keys_exist(page):
  parts = {field.name: keys_of(field.default_factory) for field in dataclasses.fields(Config) if field.name != "debug"}
  parts["model"] = set().union(*(keys_of(registry.config_class(name)) for name in registry.names())) | {"family"}
  text = page.read_text()
  parts["model"] |= set(re.findall(r"^  ([a-z]\w*): \w+ = ", text, re.MULTILINE))  # of a family that the page defines
  named = re.findall(r"\bconfig\.(data|model|train|decode|evaluate)\.([a-z]\w*)", text)
  assert not [f"{part}.{key}" for part, key in named if key not in parts[part]]


def test_the_modules_that_the_changelog_names_exist():
  """They are in the right column of the table; a name behind a module is one of its functions."""
  [table] = re.findall(r"^### Modules.*?\n\n\|(.*?)\n\n", CHANGELOG.read_text(), re.MULTILINE | re.DOTALL)
  named = [name for line in table.split("\n")[2:] for name in re.findall(r"`([\w.]+)`", line.split("|")[2])]
  assert len(named) > 30 and not [name for name in named if not is_there(ROOT / "transformer_jax", *name.split("."))]


def is_there(folder: Path, name: str, *others: str) -> bool:
  if (folder / name).is_dir():
    return not others or is_there(folder / name, *others)
  module = folder / f"{name}.py"
  return module.exists() and all(re.search(rf"^def {other}\(", module.read_text(), re.MULTILINE) for other in others)


def test_the_readme_is_short():
  assert len((ROOT / "README.md").read_text().splitlines()) <= 100
