"""The lines of metrics.jsonl, the log of a run."""

import json

from etils import epath

from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject

FILE = "metrics.jsonl"
_LAST_STEP = 1 << 53
_LARGEST = 1 << 28  # bytes; a line of training has some hundred


def read_lines(path: epath.Path) -> list[tuple[bytes, JsonObject]]:
  """Each line as bytes, and its values; a last line that was cut short by a kill is left out.

  Raises:
    InputError: a line is malformed, or the file is too large or cannot be read.
  """
  try:
    *lines, last = untrusted.read_bytes(path, _LARGEST).split(b"\n") if path.exists() else [b""]
  except InputError as error:
    raise InputError(f"{error}: move it away, and start again") from error
  except OSError as error:
    raise InputError(f"{path} cannot be read: {error.strerror}") from error
  if parsed(last):  # an editor may have taken its line feed
    lines.append(last)
  found = []
  for number, line in enumerate(lines, 1):
    if (entry := parsed(line)) is None:
      raise InputError(
        f"{path}, line {number} is no line of the log: delete it, or move the file away, and start again"
      )
    found.append((line, entry))
  return found


def parsed(line: bytes) -> JsonObject | None:
  """The values of a line; None if it is no object with a step and the name of a split."""
  try:
    entry = json.loads(line)
  except (ValueError, RecursionError):
    return None
  if not isinstance(entry, dict) or not isinstance(entry.get("split"), str):
    return None
  step = entry.get("step")
  return entry if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < _LAST_STEP else None
