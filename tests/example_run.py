"""A corpus for runs of a few updates, and what of their logs does not depend on the clock."""

from pathlib import Path

from benchmarks import tiny

TIMING, metrics_of = tiny.TIMING, tiny.metrics


def write_corpus(folder: Path) -> str:
  """The name of a corpus in which the target is the source backwards."""
  tiny.write_corpus(folder / "text", pairs=211)
  return str(folder / "text")


def write_pairs(prefix: Path, pairs) -> str:
  """Writes the pairs to PREFIX.en and PREFIX.de, and returns the prefix, which names the corpus."""
  for side, language in enumerate(("en", "de")):
    Path(f"{prefix}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
  return str(prefix)
