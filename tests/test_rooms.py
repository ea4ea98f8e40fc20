"""Who knows of whom: a room imports from lower floors alone, the Transformer's rooms know none of the models around it,
and two files alone ask JAX about devices and processes."""

import ast
import functools
import graphlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "transformer_jax"
# From the ground up; rooms of one floor do not know of each other.
FLOORS = [
  ["runtime"],
  ["evaluation"],
  ["ops"],
  ["model"],
  ["recurrent"],
  ["language"],
  ["registry"],
  ["config"],
  ["data"],
  ["training"],
  ["runs"],
  ["analysis"],
  ["decoding"],
  ["tasks"],
  ["trainer"],
  ["interchange"],
  ["paper"],
  ["inside"],
  ["serve"],
  ["commands"],
  ["__init__", "__main__"],
]
AROUND = {"recurrent", "language"}
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
ASK_JAX = {"runtime/devices.py", "runtime/hosts.py"}
QUESTIONS = {
  "default_backend",
  "device_count",
  "devices",
  "host_count",
  "host_id",
  "host_ids",
  "local_device_count",
  "local_devices",
  "process_count",
  "process_index",
  "process_indices",
}


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
  return list(ast.walk(ast.parse(path.read_text())))


def imported(path: Path) -> set[str]:
  """The package's modules that a file imports, wherever in it, for types alone too: `model.attention` for example."""
  names = set()
  for node in nodes_of(path):
    if isinstance(node, ast.ImportFrom):
      assert not node.level, f"{path} imports relative to itself"
      first, _, rest = (node.module or "").partition(".")
      if first == PACKAGE.name:
        names |= {f"{rest}.{alias.name}".lstrip(".") for alias in node.names}
    elif isinstance(node, ast.Import):
      names |= {alias.name.split(".", 1)[1] for alias in node.names if alias.name.startswith(f"{PACKAGE.name}.")}
  return names


def module_of(name: str) -> str | None:
  """The module or package that an imported name is, or is in."""
  parts = name.split(".")
  for found in (parts, parts[:-1]):
    place = PACKAGE.joinpath(*found)
    if found and place.with_suffix(".py").exists():
      return ".".join(found)
    if found and (place / "__init__.py").exists():
      return ".".join([*found, "__init__"])
  return None


def name_of(file: Path) -> str:
  return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


def room_of(module: str) -> str:
  return module.split(".")[0]


@functools.cache
def graph() -> dict[str, set[str]]:
  """The modules that each module imports."""
  modules = {}
  for file in sorted(PACKAGE.rglob("[!.]*.py")):
    name = name_of(file)
    modules[name] = {module for found in imported(file) if (module := module_of(found)) and module != name}
  return modules


def arrows() -> set[tuple[str, str]]:
  """Pairs of modules of different rooms, of which the first imports the second."""
  return {(a, b) for a, its in graph().items() for b in its if room_of(a) != room_of(b)}


def test_every_room_has_a_floor():
  assert {room_of(name) for name in graph()} == set(FLOOR)


def test_nothing_is_imported_from_a_higher_floor():
  found = arrows()
  assert ("decoding.translator", "decoding.programs") not in found and ("decoding.translator", "registry") in found
  upward = sorted(f"{a} -> {b}" for a, b in found if FLOOR[room_of(a)] <= FLOOR[room_of(b)])
  assert not upward


@pytest.mark.parametrize("room", ["model", "training", "data", "decoding", "evaluation"])
def test_no_file_of_the_transformer_knows_of_the_models_around_it(room):
  files = sorted((PACKAGE / room).glob("[!.]*.py"))
  assert len(files) > 2
  for file in files:
    assert not {name for name in imported(file) if room_of(name) in AROUND}, file


def test_no_module_imports_itself_by_way_of_others():
  modules = graph()
  assert modules["decoding.translator"] >= {"decoding.programs", "registry"}
  list(graphlib.TopologicalSorter(modules).static_order())  # raises CycleError


def questions(path: Path) -> set[str]:
  """What a file asks JAX about devices and processes."""
  asked = {
    node.attr
    for node in nodes_of(path)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jax"
  }
  for node in nodes_of(path):
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jax":
      asked |= {alias.name for alias in node.names}
  return asked & QUESTIONS


def test_only_two_files_ask_jax_about_devices_and_processes():
  asking = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("[!.]*.py") if questions(file)}
  assert asking == ASK_JAX


@pytest.mark.parametrize(
  ("source", "asked"),
  [
    ("import jax\njax.local_devices()[0]", {"local_devices"}),
    ("def f():\n  from jax import process_index", {"process_index"}),
    ("import jax\njax.tree.map(f, x)\ndevices.device_count()", set()),
  ],
)
def test_a_question_is_seen(source, asked, tmp_path):
  (tmp_path / "file.py").write_text(source)
  assert questions(tmp_path / "file.py") == asked
