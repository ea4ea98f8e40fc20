"""Digests that identify a corpus."""

import hashlib
import io
import json
from typing import cast

from etils import epath


def of_bytes(content: bytes) -> str:
  """A digest of bytes."""
  return hashlib.blake2b(content, digest_size=16).hexdigest()


def of_values(*values: object) -> str:
  """A digest of JSON values; the same in every process."""
  return of_bytes(json.dumps(values).encode())


def of_file(path: epath.Path) -> str:
  """A digest of a file's bytes."""
  with path.open("rb") as file:
    return hashlib.file_digest(cast(io.BufferedReader, file), "blake2b").hexdigest()
