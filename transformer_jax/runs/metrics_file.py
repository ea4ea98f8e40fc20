"""The lines of metrics.jsonl, the log of a run."""

import json

from etils import epath

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject

FILE = "metrics.jsonl"


def read_lines(path: epath.Path) -> list[tuple[bytes, JsonObject]]:
  """Each line as bytes, and its values; a last line that was cut short by a kill is left out.

  Raises:
    InputError: a line is malformed.
  """
  lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
  return [(line, _parsed(line, f"{path}, line {number}")) for number, line in enumerate(lines, 1)]


def _parsed(line: bytes, where: str) -> JsonObject:
  try:
    entry = json.loads(line)
  except (ValueError, RecursionError):
    entry = None
  if not (isinstance(entry, dict) and isinstance(entry.get("step"), int) and isinstance(entry.get("split"), str)):
    raise InputError(f"{where} is no line of the log: delete it, or move the file away, and start again")
  return entry
