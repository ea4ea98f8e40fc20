"""What a run folder says about the run: what was trained on what, in words that a page shows."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from transformer_jax import registry
from transformer_jax.config import Config, Corpus, serialization
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.tagged import directions_of
from transformer_jax.inside.log import Log, number
from transformer_jax.runs import Run
from transformer_jax.runtime.errors import InputError, RunError, one_line
from transformer_jax.runtime.values import Json, JsonObject
from transformer_jax.runtime.wording import counted, duration
from transformer_jax.training.task import task_of

Known = TypeVar("Known")

AVERAGED = "averaged from"  # only averaged parameters have this fact
_LONGEST = 600  # characters of a fact
_UNKNOWN = "not recorded"


class Key(NamedTuple):
  """A key of the config.

  Attributes:
    value: its value, written as on the command line.
    default: whether a config that does not set the key has this value.
  """

  value: str
  default: bool


def facts_of(run: Run, log: Log) -> tuple[dict[str, str], list[str]]:
  """What is known of a run, by name, and sentences about what cannot be read."""
  notes: list[str] = []

  def known(read: Callable[[], Known], otherwise: Known) -> Known:
    try:
      return read()
    except (InputError, RunError) as error:
      notes.append(f"{one_line(error, _LONGEST)}.")
      return otherwise

  history = known(lambda: run.provenance, [])
  facts = {
    "model": registry.name_of(run.config.model),
    **_of_training(run.config, log),
    "checkpoints": known(lambda: _checkpoints(run), "unreadable"),
    **_of_data(run.config),
    **(_of_averaging(run) if history else {}),
    **_of_text(run.config, history),
    "vocabulary": _vocabulary(run.config, history),
    "trained on": _in_words(_newest(history, "machine")),
    "versions": _in_words(_newest(history, "versions")),
    "started": _starts(history),
  }
  return {name: one_line(fact, _LONGEST) for name, fact in facts.items()}, notes


def config_of(config: Config) -> dict[str, Key]:
  """Every key of the config, such as `train.steps`."""
  defaults = _defaults(config)
  return {
    name: Key(one_line("none" if value is None else value, _LONGEST), name in defaults and defaults[name] == value)
    for name, value in {"model.family": registry.name_of(config.model), **serialization.flat(config)}.items()
  }


def _defaults(config: Config) -> JsonObject:
  """The default of each key that has one, as a JSON value."""
  found: JsonObject = {"debug": False, "model.family": registry.FIRST}
  for group in ("data", "model", "train", "decode", "evaluate"):
    for field in dataclasses.fields(getattr(config, group)):
      if field.default is not dataclasses.MISSING:
        found[f"{group}.{field.name}"] = getattr(field.default, "value", field.default)
  return found


def _of_training(config: Config, log: Log) -> dict[str, str]:
  lines = log.lines["train"]
  if not any(log.lines.values()):  # of an average or another program's model, which says nothing of its updates
    return {}
  updates, skipped, seconds, tokens = (
    sum(number(line.get(name)) or 0 for line in lines) for name in ("updates", "skipped", "seconds", "target_tokens")
  )
  reached = max((of_split[-1]["step"] for of_split in log.lines.values() if of_split), default=0)
  facts = {"updates": f"{reached:,} of {config.train.steps:,}"}
  if skipped:
    facts["updates"] += f", {skipped:,.0f} of {updates:,.0f} skipped"
  if tokens:
    facts["time"] = f"{duration(seconds)} of updates"
    facts["seen"] = f"{tokens:,.0f} {task_of(config.model).unit}"
  return facts


def _checkpoints(run: Run) -> str:
  found = run.checkpoints
  steps = ", ".join(f"{step:,}" for step in found.steps[-20:]) or "none"
  return f"{steps}; the best by {run.config.train.best_by} is {found.best:,}" if found.best is not None else steps


def _of_data(config: Config) -> dict[str, str]:
  data = config.data
  corpus = "numbers in words" if data.corpus is Corpus.NUMBERS else data.corpus.value
  if data.corpus in (Corpus.TFDS, Corpus.REGISTERED):  # no other corpus reads what the key names
    corpus += f" {data.dataset}"
  facts = {"corpus": corpus}
  if config.model.translates:
    facts["languages"] = ", ".join(f"{source} to {target}" for source, target in directions_of(data))
  facts |= {
    "training text": data.train or "none",
    "validation text": data.validation or "none",
    "test text": data.test or "none",
  }
  return facts


def _of_averaging(run: Run) -> dict[str, str]:
  averaged = run.averaged
  return {AVERAGED: f"steps {', '.join(map(str, averaged['steps']))} of {averaged['run']}"} if averaged else {}


def _of_text(config: Config, history: list[JsonObject]) -> dict[str, str]:
  packing = packing_of(history)
  found = (_UNKNOWN,) * 4 if packing is None else _of_packing(packing, config)
  return dict(zip(("text in rows", "lengths", "padding", "left out"), found, strict=True))


def _of_packing(packing: PackingReport, config: Config) -> tuple[str, str, str, str]:
  found = ", ".join(counted(count, names) for names, count in packing.found.items())
  if not packing.rows:  # packed during the run
    return found, f"at most {config.data.longest} tokens on a side", _UNKNOWN, _UNKNOWN
  examples, *sides = packing.found.items() or [("", 0)]
  means = [f"{count / max(1, examples[1]):,.1f} {names}" for names, count in sides if names.endswith("tokens")]
  lengths = [f"on average {' and '.join(means)}"] if means else []
  # Rows without sides have a part of a document, or texts that are cut to fit.
  most = f"at most {config.data.longest} tokens on a side"
  lengths.append(most if packing.sides == 2 else f"rows of {config.data.row_length} tokens")
  rows = f"{counted(packing.rows, 'rows')} of {config.data.row_length}"
  return (
    f"{found}; {rows}" if found else rows,
    ", ".join(lengths),
    f"{packing.padding(config.data.row_length):.1%} of the positions",
    ", ".join(packing.missing()) or "nothing",
  )


def packing_of(history: list[JsonObject]) -> PackingReport | None:
  """The counts of the last start that recorded them; None if there are none that make sense."""
  values = _newest(history, "packing")
  if not isinstance(values, dict):
    return None
  rows, tokens, sides = (_count(values.get(name)) for name in ("rows", "tokens", "sides"))
  found, left_out = (_counts(values.get(name)) for name in ("found", "left_out"))
  if rows is None or tokens is None or sides is None or found is None or left_out is None:
    return None
  return PackingReport(rows, tokens, sides, found, left_out)


def _counts(values: object) -> dict[str, int] | None:
  if not isinstance(values, dict):
    return None
  counts = {str(name): count for name, value in values.items() if (count := _count(value)) is not None}
  return counts if len(counts) == len(values) else None


def _count(value: object) -> int | None:
  return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def _newest(history: list[JsonObject], name: str) -> Json:
  """What the newest entry of the provenance that records it says; averaging and exporting record other things."""
  return next((entry[name] for entry in reversed(history) if name in entry), None)


def _vocabulary(config: Config, history: list[JsonObject]) -> str:
  prepared = config.data.corpus is Corpus.PREPARED  # whose vocabulary may have been given to `prepare`
  learned = "that of the prepared folder" if prepared else "learned from the training text"
  if config.data.tokenizer:
    learned = f"taken from {config.data.tokenizer}"
  if config.train.init_from:
    learned = f"that of the run {config.train.init_from}"
  if _newest(history, "imported"):
    learned = "that of the imported model"
  sizes = [counted(size, "pieces") for size in config.model.vocab_sizes]
  return f"{' for the source and '.join(sizes)}{' for the target' if len(sizes) > 1 else ''}, {learned}"


def _starts(history: list[JsonObject]) -> str:
  times = [str(entry["time"]) for entry in history if "data" in entry and isinstance(entry.get("time"), str)]
  if not times:
    return _UNKNOWN
  again = f", and {counted(len(times) - 1, 'times')} again, last {times[-1]}" if len(times) > 1 else ""
  return f"{times[0]}{again}"


def _in_words(values: object) -> str:
  """The entries of a JSON object, each as `name value`."""
  if not isinstance(values, Mapping):
    return _UNKNOWN if values is None else str(values)
  return ", ".join(f"{name} {value}" for name, value in values.items())
