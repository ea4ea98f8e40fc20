"""Damages the small files of a run folder at random, and loads it each time.

  python -m tests.fuzz_run_folder --workdir RUN --count 5000

A load must succeed or end in an InputError or RunError of one line: whatever
else it does, a crash of the process and a load that takes long among them, is
printed, the damaged file is kept, and the exit status is 1.
"""

import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from transformer_jax.runs import digests

NUMBERS = [b"0", b"-1", b"1e999", b"0.5", b"NaN", b"1000000000", b"999999999999999999", b"9" * 5000, b"null", b'"1"']
FRAGMENTS = [b"[", b"{", b'"', b"\0", b"\xff\xfe", b"\\ud800", b"[" * 100_000, b"\x1b[2J", b"../", b"\n", b"true,"]
TEXTS = ["", "a b", "  \u2581 \0", "\U0001f600 e\u0301 \u202e", "a" * 3000]

_MOST_MEMORY = 12 << 30  # addresses of the process that loads
_MOST_SECONDS = 60


def small_files(workdir: Path) -> list[Path]:
  """All but the arrays themselves, relative to the folder."""
  return sorted(path.relative_to(workdir) for path in workdir.rglob("*") if path.is_file() and path.parent.name != "d")


def mutated(content: bytes, generator: random.Random) -> bytes:
  """The content with one to three changes, of bits, of ranges, or of what is written in it."""
  for _ in range(generator.choice([1, 1, 1, 2, 3])):
    content = generator.choice([_flip, _cut, _repeat, _insert, _number, _shorten])(content, generator)
  return content


def _flip(content: bytes, generator: random.Random) -> bytes:
  changed = bytearray(content)
  for _ in range(generator.choice([1, 1, 8])):
    if changed:
      changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
  return bytes(changed)


def _range(content: bytes, generator: random.Random) -> tuple[int, int]:
  begin = generator.randint(0, len(content))
  return begin, min(len(content), begin + generator.choice([1, 2, 9, 99, 9999]))


def _cut(content: bytes, generator: random.Random) -> bytes:
  begin, end = _range(content, generator)
  return content[:begin] + content[end:]


def _repeat(content: bytes, generator: random.Random) -> bytes:
  begin, end = _range(content, generator)
  return content[:end] + content[begin:end] * generator.choice([1, 2, 1000]) + content[end:]


def _insert(content: bytes, generator: random.Random) -> bytes:
  place = generator.randint(0, len(content))
  return content[:place] + generator.choice([*FRAGMENTS, generator.randbytes(5)]) + content[place:]


def _number(content: bytes, generator: random.Random) -> bytes:
  """Another number in place of one that is written out."""
  found = list(re.finditer(rb"-?\d+(\.\d+)?", content))
  if not found:
    return _flip(content, generator)
  match = generator.choice(found)
  return content[: match.start()] + generator.choice(NUMBERS) + content[match.end() :]


def _shorten(content: bytes, generator: random.Random) -> bytes:
  return content[: generator.choice([0, 1, len(content) // 2, max(0, len(content) - 1)])]


def loaded(workdir: str) -> str:
  """Loads a run folder and uses its tokenizer; what came of it, in a word or in a sentence."""
  from transformer_jax import runs
  from transformer_jax.runtime.errors import InputError, RunError

  try:
    run = runs.open(workdir)
    tokenizer, history = run.model().tokenizer, run.provenance
    assert isinstance(history, list)
    for text in TEXTS:
      tokenizer.decode(tokenizer.encode(text))
    return "loaded"
  except (InputError, RunError) as error:
    return type(error).__name__ if "\n" not in str(error) and len(str(error)) < 2000 else f"more than a line: {error!r}"
  except BaseException as error:
    return f"{type(error).__name__}: {error}"


def _work() -> None:
  """Loads the folders that are named on standard input."""
  resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
  sys.stderr = open(os.devnull, "w")  # noqa: SIM115  for the rest of the process
  for line in sys.stdin:
    begun = time.monotonic()
    outcome = loaded(line.rstrip("\n"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"outcome": outcome, "seconds": time.monotonic() - begun, "megabytes": peak}), flush=True)


class Worker:
  """A process that loads folders, started again when it has died."""

  def __init__(self):
    self._process: subprocess.Popen | None = None

  def load(self, workdir: Path) -> dict:
    if self._process is None:
      command = [sys.executable, "-m", "tests.fuzz_run_folder", "--worker"]
      environment = os.environ | {"JAX_PLATFORMS": "cpu"}
      self._process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
      )
    process = self._process
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(2 * _MOST_SECONDS, process.kill)
    timer.start()
    process.stdin.write(f"{workdir}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    timer.cancel()
    if answer:
      return json.loads(answer)
    self.close()
    return {"outcome": f"the process died with status {process.wait()}", "seconds": 0.0, "megabytes": 0}

  def close(self) -> None:
    if self._process is not None:
      self._process.communicate()
      self._process = None


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--workdir", type=Path, help="a run folder, which is copied")
  parser.add_argument("--count", type=int, default=1000)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--only", default="", help="damage files whose path has this in it")
  parser.add_argument("--keep", type=Path, default=Path("fuzz"), help="where files that should not do so are kept")
  parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.worker:
    _work()
    return 0
  generator = random.Random(args.seed)
  outcomes: collections.Counter = collections.Counter()
  bad, longest, most, worker = 0, 0.0, 0, Worker()
  small = small_files(args.workdir)
  files = [file for file in small if args.only in str(file)]
  with tempfile.TemporaryDirectory() as temporary:
    copy = Path(temporary) / "run"
    shutil.copytree(args.workdir, copy)
    for number in range(args.count):
      file = generator.choice(files)
      content = (args.workdir / file).read_bytes()
      damaged = mutated(content, generator)
      (copy / file).write_bytes(damaged)
      if generator.random() < 0.5:  # or nearly all damage ends there
        (copy / digests.FILE).unlink(missing_ok=True)
      found = worker.load(copy)
      for whole in {file, Path(digests.FILE)} & set(small):
        shutil.copy(args.workdir / whole, copy / whole)
      right = found["outcome"] in ("loaded", "InputError", "RunError") and found["seconds"] < _MOST_SECONDS
      outcomes[file.name if file.parent.name else str(file), found["outcome"] if right else "WRONG"] += 1
      longest, most = max(longest, found["seconds"]), max(most, found["megabytes"])
      if not right:
        bad += 1
        args.keep.mkdir(parents=True, exist_ok=True)
        (args.keep / f"{args.seed}-{number}-{file.name}").write_bytes(damaged)
        print(f"{number}: {file}: {found}", flush=True)
  worker.close()
  for (file, outcome), count in sorted(outcomes.items()):
    print(f"{count:7} {file}: {outcome}")
  print(f"{args.count} damaged folders, {bad} wrong; the longest load took {longest:.2f} s, the peak was {most} MB")
  return 1 if bad else 0


if __name__ == "__main__":
  sys.exit(main())
