"""The preparation of a text as a pipeline of Apache Beam (extra `beam`), which spreads its parts over processes.

Between the processes go the byte ranges of parts, digests if duplicates are left out, and counts; never the text.
Apache Beam is imported only when a pipeline runs.
"""

import functools
import importlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from transformer_jax.data import beam_local, preparation
from transformer_jax.data.preparation import PartResult, Settings
from transformer_jax.data.text import TextFiles
from transformer_jax.data.text_parts import parts_of
from transformer_jax.runtime import plugins
from transformer_jax.runtime.errors import InputError, RunError, first_line

# What Beam reports of an error in another process: a traceback, whose last line has the error and then the step.
_OWN_ERROR = re.compile(r"errors\.(InputError|RunError): (.+) \[while running")


def require_beam() -> tuple[Any, Any]:
  """Apache Beam, and its module of options.

  Raises:
    InputError: it is not installed.
  """
  logging.disable(logging.WARNING)  # Beam warns of clients of Google's services that are not installed
  message = "prepare needs Apache Beam: pip install -e '.[beam]' in a checkout, in an environment of its own"
  try:
    return plugins.library("apache_beam", message), importlib.import_module("apache_beam.options.pipeline_options")
  finally:
    logging.disable(logging.NOTSET)


def run(
  settings: Settings,
  files: Sequence[TextFiles],
  lines: int,
  workers: int,
  runner: str,
  options: Sequence[str],
) -> None:
  """Prepares a text; the folder has its manifest afterwards.

  Args:
    settings: the settings.
    files: the text.
    lines: the lines of a part.
    workers: the number of processes on this machine.
    runner: the name of Beam's runner for a cluster; empty means this machine.
    options: Beam's options, such as `--region=us-central1`.

  Raises:
    InputError: the text or an option cannot be used.
    RunError: a file cannot be written, or the pipeline failed.
  """
  beam, pipeline_options = require_beam()
  with _explained(runner), nullcontext() if runner else beam_local.watched():
    chosen = pipeline_options.PipelineOptions([*options])
    if not runner:
      chosen.view_as(pipeline_options.DirectOptions).direct_num_workers = workers
    pipeline = beam.Pipeline(runner or beam_local.runner(), chosen)
    _build(beam, pipeline, settings, files, lines)
    pipeline.run().wait_until_finish()


def _build(beam: Any, pipeline: Any, settings: Settings, files: Sequence[TextFiles], lines: int) -> None:
  """Adds all steps to a pipeline."""
  parts = (
    pipeline
    | "corpora" >> beam.Create([*enumerate(files)])
    | "parts" >> beam.FlatMapTuple(functools.partial(parts_of, most=lines))
    | "spread" >> beam.Reshuffle()
  )
  if settings.duplicates:
    repeated = (
      parts
      | "digests" >> beam.FlatMap(functools.partial(preparation.digests_of, settings))
      | "equal digests" >> beam.GroupByKey()
      | "repeated pairs" >> beam.FlatMapTuple(preparation.repeated_of)
    )
    keyed = parts | "keys" >> beam.Map(lambda part: ((part.corpus, part.number), part))
    joined = {"parts": keyed, "repeated": repeated} | "numbers of parts" >> beam.CoGroupByKey()
    made = joined | "shards" >> beam.MapTuple(functools.partial(_make_different, settings))
  else:
    made = parts | "shards" >> beam.Map(functools.partial(preparation.make_shard, settings))
  collected = made | "counts" >> beam.combiners.ToList()
  _ = collected | "manifest" >> beam.Map(functools.partial(preparation.finish, settings))


def _make_different(settings: Settings, place: tuple[int, int], found: Mapping[str, Any]) -> PartResult:
  """The rows of a part without the pairs that occurred before."""
  [part] = found["parts"]
  return preparation.make_shard(settings, part, [number for numbers in found["repeated"] for number in numbers])


@contextmanager
def _explained(runner: str = "") -> Iterator[None]:
  """Turns an error of a pipeline in the body into the one that a step of it raised."""
  try:
    yield
  except (InputError, RunError, KeyboardInterrupt):
    raise
  except SystemExit as error:  # Beam's parser of options has printed what it does not know
    raise InputError("Beam does not know these options: see --help") from error
  except Exception as error:
    found = _OWN_ERROR.search(str(error))
    if found is None:
      raise RunError(
        f"the pipeline failed: {first_line(error, 500)}; if memory was full, give the command again with "
        f"{'a smaller --part' if runner else 'fewer --workers'}"
      ) from error
    raise (InputError if found[1] == "InputError" else RunError)(found[2]) from error
