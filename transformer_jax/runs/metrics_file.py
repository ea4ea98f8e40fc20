"""The lines of metrics.jsonl, the log of a run."""

import json
from typing import Any

from etils import epath

from transformer_jax.runtime.errors import InputError

FILE = "metrics.jsonl"


def read_lines(path: epath.Path) -> list[tuple[bytes, dict[str, Any]]]:
  """Each line as it is written, and its values; a last one that a kill cut short is left out.

  Raises:
    InputError: a line is malformed.
  """
  lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
  return [(line, _parsed(line, f"{path}, line {number}")) for number, line in enumerate(lines, 1)]


def _parsed(line: bytes, where: str) -> dict[str, Any]:
  try:
    entry = json.loads(line)
  except (ValueError, RecursionError):
    entry = None
  if not (isinstance(entry, dict) and isinstance(entry.get("step"), int) and isinstance(entry.get("split"), str)):
    raise InputError(f"{where} is no line of the log: delete it, or move the file away, and start again")
  return entry
