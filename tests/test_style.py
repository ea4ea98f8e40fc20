"""The rules of CONTRIBUTING.md about code that a program can check."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
  path for folder in ("transformer_jax", "configs", "benchmarks") for path in sorted((ROOT / folder).rglob("[!.]*.py"))
]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A docstring begins with what the object is or does. `In`, `With` and the like begin a condition.
NO_BEGINNING = re.compile(r"(as|at|by|for|from|in|of|to|with)\b", re.IGNORECASE)


def lengths(source: str) -> list[tuple[str, int]]:
  """The lines of each function, with its docstring."""
  functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]
  return [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in functions]


def beginnings(source: str) -> list[str]:
  """The first line of each docstring."""
  documented = (ast.Module, ast.ClassDef, *FUNCTIONS)
  texts = [ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
  return [text.split("\n")[0] for text in texts if text]


def name_of(path: Path) -> str:
  return path.relative_to(ROOT).as_posix()


def test_lengths_are_counted_with_the_docstring():
  assert lengths('def f():\n  """One."""\n\n  def g():\n    return 1\n\n  return g\n') == [("f", 7), ("g", 2)]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_functions_fit_on_a_screen(path):
  assert not [(name, lines) for name, lines in lengths(path.read_text()) if lines > 40]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_docstrings_begin_with_what_the_object_is(path):
  assert not [line for line in beginnings(path.read_text()) if NO_BEGINNING.match(line)]
