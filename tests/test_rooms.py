"""Who knows of whom: the Transformer of none of the models around it, and no module of itself by way of others."""

import ast
import graphlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "transformer_jax"
AROUND = {"recurrent", "language", "layers"}


def imported(path: Path) -> set[str]:
  """The package's modules that a file imports, wherever in it: `model.attention` for example."""
  names = set()
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE.name:
      rest = node.module.split(".")[1:]
      names |= {".".join([*rest, alias.name]) for alias in node.names}
    elif isinstance(node, ast.Import):
      names |= {alias.name.split(".", 1)[1] for alias in node.names if alias.name.startswith(f"{PACKAGE.name}.")}
  return names


def module_of(name: str) -> str | None:
  """The module that an imported name is, or is in."""
  parts = name.split(".")
  for found in (parts, parts[:-1]):
    if found and PACKAGE.joinpath(*found).with_suffix(".py").exists():
      return ".".join(found)
  return None


@pytest.mark.parametrize("room", ["model", "training", "data", "decoding", "evaluation"])
def test_no_file_of_the_transformer_knows_of_the_models_around_it(room):
  files = sorted((PACKAGE / room).glob("*.py"))
  assert len(files) > 2
  for file in files:
    assert not {name for name in imported(file) if name.split(".")[0] in AROUND}, file


def test_no_module_imports_itself_by_way_of_others():
  graph = {}
  for file in PACKAGE.rglob("*.py"):
    name = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
    graph[name] = {module for found in imported(file) if (module := module_of(found)) and module != name}
  assert graph["decoding.translator"] >= {"decoding.batch", "families"}
  list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
