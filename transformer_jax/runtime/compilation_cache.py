"""The cache of compiled programs on disk."""

import hashlib
import os
import platform
import stat
import zlib
from contextlib import suppress
from pathlib import Path

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import user_cache

_CHECKED = "checked"  # a file; its modification time is the time of the last check
_ZLIB = b"\x78"  # the first byte of what zlib wrote


def use_compilation_cache() -> None:
  """Keeps the programs that XLA compiles in the user's cache folder, so that a second start is quick.

  Each kind of processor has its own folder, as machines that cannot run each
  other's programs may share a home directory. If no folder can be written, or
  others could write programs there that would run here, nothing is kept.
  `JAX_COMPILATION_CACHE_DIR` has precedence; then no traced programs are kept
  (`trace_cache.py`).
  """
  import jax

  from transformer_jax.runtime import trace_cache

  if jax.config.values["jax_compilation_cache_dir"] is not None:
    return
  try:
    folder = user_cache() / "compiled" / _processor()
    folder.mkdir(parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
      return
    delete_damaged(folder)
  except (OSError, InputError):
    return
  jax.config.update("jax_compilation_cache_dir", str(folder))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
  trace_cache.use(folder / "traced")


def delete_damaged(folder: Path) -> None:
  """Deletes entries that are incomplete because a process was killed.

  JAX would warn of such an entry at each start and never write it again. Only
  entries that are newer than the last check are checked.
  """
  stamp = folder / _CHECKED
  last = stamp.stat().st_mtime_ns if stamp.exists() else 0
  stamp.touch()
  for entry in folder.glob("*-cache"):
    with suppress(FileNotFoundError):  # another process has deleted it
      if entry.stat().st_mtime_ns >= last and not _is_complete(entry.read_bytes()):
        entry.unlink(missing_ok=True)


def _is_complete(entry: bytes) -> bool:
  """Whether zlib can decompress the entry; true for an entry that another library compressed."""
  if not entry.startswith(_ZLIB):
    return bool(entry)
  decompressor = zlib.decompressobj()
  try:
    decompressor.decompress(entry)
  except zlib.error:
    return False
  return decompressor.eof


def _processor() -> str:
  """A name that is the same for processors that run the same programs."""
  try:
    flags = [line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith(("flags", "Features"))]
  except OSError:
    flags = [platform.processor()]
  return platform.machine() + "-" + hashlib.blake2b("".join(flags[:1]).encode(), digest_size=4).hexdigest()
