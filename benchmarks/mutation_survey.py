"""A mutation survey: do the tests notice when the code is changed at random?

    pip install -e '.[test,mutation]'
    python benchmarks/mutation_survey.py --folder DIR [--rooms model training ...] [--each 43] [--seed 1] [--output DIR]

cosmic-ray makes the mutants. EACH places are drawn at random from every room of the package, with a fixed seed, and one
mutant at each place. Each mutant is put into a copy of the repository, where the test files that execute its line run
until a test fails. The same command resumes after a stop. OUTPUT gets `mutants.jsonl`, one line per mutant, and
`table.md`, the counts by file; docs/mutants.md tells which survivors compute the same as the code.

Type annotations, which have no effect, and lines that no test can execute (`if TYPE_CHECKING`) are not drawn, nor are
mutants that are not Python. A line that runs when its module is imported has all tests that use the module.
"""

import argparse
import ast
import collections
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import cosmic_ray.plugins
import coverage
import programs
import report
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "transformer_jax"
ROOMS = ("model", "training", "decoding", "data", "evaluation", "recurrent", "language")
# The tests of CI: first those that are run by default, then, for mutants that survive them, the long ones.
TESTS = ("not slow and not long", "long and not slow")
NEAREST = 2  # test files that run first: they catch most mutants, and collecting all tests takes longer
SECONDS = 200  # for one test; an endless loop counts as caught


class Mutant(NamedTuple):
  """One change of one file: the `occurrence`-th place where a cosmic-ray operator can act."""

  path: str
  operator: str
  occurrence: int
  line: int


def main() -> None:
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # `tried` puts the original back
  args = parse()
  folder, output = Path(args.folder).resolve(), Path(args.output)
  output.mkdir(parents=True, exist_ok=True)
  tree = copied(folder)
  files_of = covering(folder, tree)
  results = read(folder / "mutants.jsonl")
  mutants = [mutant for room in args.rooms for mutant in drawn(tree, room, args.each, args.seed)]
  for tests, (number, mutant) in itertools.product(TESTS, enumerate(mutants, 1)):
    if not decided(results.get(mutant), tests):
      results[mutant] = tried(tree, mutant, files_of.get((mutant.path, mutant.line), []), tests)
      with (folder / "mutants.jsonl").open("a") as file:
        file.write(json.dumps([mutant, results[mutant]]) + "\n")
      report.progress(f"{number} of {len(mutants)}: {mutant.path}:{mutant.line} {results[mutant]['outcome']}")
  write(output, {mutant: results[mutant] for mutant in mutants})


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Mutants, and whether tests catch them.", allow_abbrev=False)
  add = parser.add_argument
  add("--folder", required=True, metavar="DIR", help="for the copy of the repository and what was found so far")
  add("--rooms", nargs="+", default=list(ROOMS), metavar="ROOM", help=f"(default {' '.join(ROOMS)})")
  add("--each", type=int, default=43, metavar="N", help="mutants of each room (default 43)")
  add("--seed", type=int, default=1, metavar="N", help="of the drawing (default 1)")
  add("--output", required=True, metavar="DIR", help="for the table and the list")
  return parser.parse_args()


def copied(folder: Path) -> Path:
  """A copy of the repository; an existing copy is kept, so that all mutants are of one state of the code."""
  tree = folder / "tree"
  original = folder / "original"
  if not original.exists():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.rstrip("\0").split("\0"):
      (folder / "new" / name).parent.mkdir(parents=True, exist_ok=True)
      shutil.copy(ROOT / name, folder / "new" / name)
    (folder / "new").rename(original)
  shutil.copytree(original, tree, dirs_exist_ok=True)  # also where a killed survey left a mutant
  return tree


def environment(folder: Path, tree: Path) -> dict[str, str]:
  """The environment of the tests; its cache shares compiled programs among the mutants, as most are the same."""
  return os.environ | {"PYTHONPATH": str(tree), "TRANSFORMER_JAX_TEST_CACHE": str(folder / "compiled")}


def covering(folder: Path, tree: Path) -> dict[tuple[str, int], list[str]]:
  """The test files that execute each line.

  A file counts as a whole: a line inside a compiled function, or in a shared fixture, runs for the first test only.
  """
  database = folder / "coverage"
  if not database.exists():
    program = [
      sys.executable,
      "-m",
      "pytest",
      "-q",
      "-m",
      "not slow",
      f"--cov={PACKAGE}",
      "--cov-branch",
      "--cov-report=",
    ]
    program += ["--cov-context=test"]
    where = {"COVERAGE_FILE": str(folder / "coverage.new")}
    subprocess.run(program, cwd=tree, env=environment(folder, tree) | where, check=True)
    (folder / "coverage.new").rename(database)
  data = coverage.CoverageData(str(database))
  data.read()
  found: dict[tuple[str, int], set[str]] = {}
  for path in data.measured_files():
    name = Path(path).relative_to(tree).as_posix()
    lines = {line: _files(contexts) for line, contexts in data.contexts_by_lineno(path).items()}
    every = set().union(*lines.values())
    found |= {(name, line): files or every for line, files in lines.items()}
  return {place: sorted(files, key=lambda file: distance(place[0], file)) for place, files in found.items()}


def _files(contexts: list[str]) -> set[str]:
  return {context.partition("::")[0] for context in contexts if "::" in context}


def distance(path: str, file: str) -> tuple[bool, bool, str]:
  """Tests of the same name come first, then those of the same room."""
  room, name = Path(path).parts[1], Path(path).stem
  return Path(file).name != f"test_{name}.py", f"tests/{room}/" not in file, file


def drawn(tree: Path, room: str, each: int, seed: int) -> list[Mutant]:
  """Random places of a room with one mutant each; a larger `each` only adds mutants at the end."""
  places = [place for path in sorted((tree / PACKAGE / room).rglob("*.py")) for place in places_of(tree, path)]
  generator = random.Random(f"{room} {seed}")
  generator.shuffle(places)
  return list(
    itertools.islice((mutant for place in places if is_python(tree, mutant := generator.choice(place))), each)
  )


def is_python(tree: Path, mutant: Mutant) -> bool:
  """Whether the mutated file compiles.

  An operator takes the `*` of keyword-only arguments for a product, and one cannot change `except module.Error`.
  """
  try:
    compile(mutated(tree / mutant.path, mutant), mutant.path, "exec")
  except (SyntaxError, AttributeError):
    return False
  return True


def mutated(path: Path, mutant: Mutant) -> str:
  operator = cosmic_ray.plugins.get_operator(mutant.operator)()
  return mutate_code(path.read_text(), operator, mutant.occurrence) or ""


def places_of(tree: Path, path: Path) -> list[list[Mutant]]:
  """The mutants of each place that can be changed; one place often has ten mutants, most of which raise an error."""
  syntax, silent = get_ast_from_path(path), silent_ranges(path)
  name = path.relative_to(tree).as_posix()
  found: dict[tuple[int, int], list[Mutant]] = collections.defaultdict(list)
  for operator_name in sorted(cosmic_ray.plugins.operator_names()):
    operator_class, occurrence = cosmic_ray.plugins.get_operator(operator_name), 0
    if operator_class.arguments():
      continue
    for node in ast_nodes(syntax):
      for start, _ in operator_class().mutation_positions(node):
        if not any(first <= start < last for first, last in silent):
          found[start].append(Mutant(name, operator_name, occurrence, start[0]))
        occurrence += 1
  return [found[start] for start in sorted(found)]


def silent_ranges(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
  """The beginnings and ends of annotations and of `if TYPE_CHECKING`, as pairs of line and column."""
  found: list[ast.AST] = []
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.FunctionDef) and node.returns:
      found.append(node.returns)
    elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
      found.append(node.annotation)
    elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
      found.append(node)
  places: list[Any] = found
  return [((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in places]


def decided(result: dict[str, Any] | None, tests: str) -> bool:
  """Whether these tests need not run: an earlier one has failed, or they have passed."""
  return result is not None and (result["outcome"] == "caught" or TESTS.index(tests) <= TESTS.index(result["tests"]))


def tried(tree: Path, mutant: Mutant, files: list[str], tests: str) -> dict[str, Any]:
  """The result of these tests of one mutant."""
  target, began = tree / mutant.path, time.monotonic()
  original = target.read_text()
  text = mutated(target, mutant)
  changed = [line.strip() for line in text.splitlines() if line not in original.splitlines()]
  try:
    target.write_text(text)
    outcome, by = run(tree, files[:NEAREST], tests)
    if outcome == "survived" and len(files) > NEAREST:
      outcome, by = run(tree, files[NEAREST:], tests)
  finally:
    target.write_text(original)
  found = {"outcome": outcome, "by": by, "tests": tests, "files": len(files), "changed": changed}
  return found | {"seconds": time.monotonic() - began}


def run(tree: Path, files: list[str], tests: str) -> tuple[str, str]:
  """Whether a test of these files fails, and which one."""
  if not files:
    return "survived", "no test executes the line"
  program = [sys.executable, "-m", "pytest", "-q", "-m", tests, "-x", "-n", "0", "-p", "no:cacheprovider"]
  # The method `thread` ends the process, also one that is in a compiled loop.
  program += ["--timeout", str(SECONDS), "--timeout-method", "thread", *files]
  done = subprocess.run(program, cwd=tree, env=environment(tree.parent, tree), capture_output=True, text=True)
  if done.returncode in (0, 5):  # 5: there are none
    return "survived", ""
  failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
  return "caught", failed[0][:200] if failed else f"pytest ends with {done.returncode}"


def read(path: Path) -> dict[Mutant, dict[str, Any]]:
  lines = path.read_text().splitlines() if path.exists() else []
  return {Mutant(*mutant): result for mutant, result in map(json.loads, lines)}


def write(output: Path, results: dict[Mutant, dict[str, Any]]) -> None:
  lines = [json.dumps(mutant._asdict() | result) for mutant, result in results.items()]
  (output / "mutants.jsonl").write_text("\n".join(lines) + "\n")
  counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
  for mutant, result in results.items():
    for name in (mutant.path, f"all of {Path(mutant.path).parts[1]}", "all"):
      counts[name][result["outcome"]] += 1
  rows = [
    {
      "file": name,
      "mutants": str(sum(found.values())),
      "caught": str(found["caught"]),
      "survived": str(found["survived"]),
    }
    for name, found in sorted(counts.items())
  ]
  report.write_table(rows, output / "table.md")


if __name__ == "__main__":
  programs.run(main)
