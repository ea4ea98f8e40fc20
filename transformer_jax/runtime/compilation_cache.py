"""Compiled programs are kept from one start to the next."""

import hashlib
import platform
import zlib
from pathlib import Path

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import user_cache

_CHECKED = "checked"  # a file whose time is that of the last check
_ZLIB = b"\x78"  # the first byte of what zlib wrote


def use_compilation_cache() -> None:
  """Keeps what XLA compiles in the user's cache folder, so that a second start is quick.

  Each kind of processor has a folder of its own, as a home directory may be
  shared by machines that cannot run each other's programs. Where there is no
  folder that can be written, nothing is kept. `JAX_COMPILATION_CACHE_DIR` goes first.
  """
  import jax

  if jax.config.values["jax_compilation_cache_dir"] is not None:
    return
  try:
    folder = user_cache() / "compiled" / _processor()
    folder.mkdir(parents=True, exist_ok=True)
    delete_damaged(folder)
  except (OSError, InputError):
    return
  jax.config.update("jax_compilation_cache_dir", str(folder))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def delete_damaged(folder: Path) -> None:
  """Deletes entries that were cut short when a process was killed.

  JAX would warn of such an entry at each start and never write it anew. Only
  entries that are newer than the last check are looked at.
  """
  stamp = folder / _CHECKED
  last = stamp.stat().st_mtime_ns if stamp.exists() else 0
  stamp.touch()
  for entry in folder.glob("*-cache"):
    if entry.stat().st_mtime_ns >= last and not _is_whole(entry.read_bytes()):
      entry.unlink(missing_ok=True)


def _is_whole(entry: bytes) -> bool:
  """Whether zlib can decompress it; what another library compressed is left to JAX."""
  if not entry.startswith(_ZLIB):
    return bool(entry)
  decompressor = zlib.decompressobj()
  try:
    decompressor.decompress(entry)
  except zlib.error:
    return False
  return decompressor.eof


def _processor() -> str:
  """A name for processors that run the same programs."""
  try:
    flags = [line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith(("flags", "Features"))]
  except OSError:
    flags = [platform.processor()]
  return platform.machine() + "-" + hashlib.blake2b("".join(flags[:1]).encode(), digest_size=4).hexdigest()
