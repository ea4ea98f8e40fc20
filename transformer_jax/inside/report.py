"""The report of one run or of several: one page, `report.html`."""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from etils import epath

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.tagged import directions_of
from transformer_jax.evaluation.scores import TITLES
from transformer_jax.inside import curves, log, page
from transformer_jax.inside.facts import AVERAGED, Key, config_of, facts_of
from transformer_jax.inside.log import Log, Sample
from transformer_jax.inside.scored import Scored
from transformer_jax.runs import Run, params_file
from transformer_jax.runtime.errors import PROGRAM, one_line
from transformer_jax.runtime.files import write_atomically
from transformer_jax.runtime.values import Json
from transformer_jax.runtime.versions import own_version
from transformer_jax.trainer.summary import next_command, short_path
from transformer_jax.training.task import task_of

_MOST_HISTORIES, _MOST_CHANGES = 8, 8  # sample sentences, and rows of each


class Change(NamedTuple):
  """A sample translation that stayed the same from one validation to another.

  Attributes:
    first, last: the steps of these validations.
  """

  first: int
  last: int
  translation: str


class History(NamedTuple):
  """The translations of a sample sentence over the training.

  Attributes:
    left_out: the number of changes that are not among `changes`.
  """

  source: str
  reference: str
  changes: list[Change]
  left_out: int


class View(NamedTuple):
  """A run as the page shows it.

  Attributes:
    name: a short name that no other run of the page has.
    facts: what was trained on what.
    config: every key of the config.
    headline: the most important numbers: a title, the number, and a remark.
    validated: the scores of the last validation: a title, the score and its signature.
    histories: the sample translations.
    commands: what each command does, and the command.
    notes: what could not be read.
  """

  name: str
  facts: dict[str, str]
  config: dict[str, Key]
  headline: list[tuple[str, str, str]]
  validated: list[tuple[str, str, str]]
  histories: list[History]
  commands: list[tuple[str, str]]
  notes: list[str]


def write(runs: Sequence[Run], output: epath.Path) -> None:
  """Writes the report of the runs, without translations; RunError if the file cannot be written."""
  write_atomically(output, render(runs))


def render(runs: Sequence[Run], scored: Sequence[Scored] = (), notes: Sequence[str] = ()) -> bytes:
  """The page of the report.

  Args:
    runs: the runs, which may come from strangers.
    scored: the scores of each run's translations; empty if nothing was translated.
    notes: sentences that the page shows at its top.
  """
  names = names_of([os.fspath(run.path) for run in runs])
  logs = [log.read(run.path) for run in runs]
  views = [_view(*each) for each in zip(names, runs, logs, strict=True)]
  charts = curves.charts(logs)
  data = {
    "runs": names,
    "curves": {chart.quantity.name: chart.data() for chart in charts},
    "scored": [each.data() for each in scored],
  }
  return page.render(
    "report",
    views=views,
    charts=charts,
    plane=curves,
    scored=scored,
    titles=TITLES,
    notes=[*notes, *(f"{view.name}: {note}" if len(views) > 1 else note for view in views for note in view.notes)],
    data=data,
    shown=curves.shown,
    version=own_version(),
  )


def names_of(paths: Sequence[str]) -> list[str]:
  """The last part of each path, with as many parts before it as tell the paths apart; equal paths get a number."""
  parts = [path.rstrip("/").split("/") for path in paths]
  lengths = range(1, max(map(len, parts)) + 1)
  candidates = [["/".join(part[-length:]) for part in parts] for length in lengths]
  names = next((names for names in candidates if len(set(names)) == len(set(paths))), candidates[-1])
  return [name if names.count(name) == 1 else f"{name} ({names[: n + 1].count(name)})" for n, name in enumerate(names)]


def _view(name: str, run: Run, found: Log) -> View:
  known, notes = facts_of(run, found)
  histories = histories_of(found.samples())
  if len(histories) > _MOST_HISTORIES:
    notes.append(f"Of {len(histories):,} sample sentences the first {_MOST_HISTORIES} are shown.")
  trains = not params_file.has_one(run.path) and AVERAGED not in known
  return View(
    name,
    known,
    config_of(run.config),
    _headline(found, run.config),
    _validated(found.last("validation")),
    histories[:_MOST_HISTORIES],
    _commands(run, trains),
    [*found.notes, *notes],
  )


def _headline(found: Log, config: Config) -> list[tuple[str, str, str]]:
  """The last value of the quantities that tell most, and its step."""
  wanted = (
    ("validation", "bleu", "BLEU"),
    ("validation", "f1", "F1"),
    ("validation", "loss", "validation loss"),
    ("validation", "perplexity", "perplexity"),
    ("train", "loss", "training loss"),
    ("train", "tokens_per_second", f"{task_of(config.model).unit} per second"),
  )
  headline = []
  for split, name, title in wanted:
    series = found.series(split, name)
    if len(series.steps):
      headline.append((title, curves.shown(float(series.values[-1])), f"step {series.steps[-1]:,}"))
  return headline


def _validated(line: Mapping[str, Json]) -> list[tuple[str, str, str]]:
  scores = ((title, log.number(line.get(name)), line.get(f"{name}_signature")) for name, title in TITLES.items())
  return [(title, f"{value:.2f}", one_line(signature)) for title, value, signature in scores if value is not None]


def histories_of(samples: Iterable[tuple[int, list[Sample]]]) -> list[History]:
  """The history of each sample sentence; validations in a row with the same translation are one change."""
  changes: dict[tuple[str, str], list[Change]] = {}
  for step, found in samples:
    for sample in dict.fromkeys(found):
      before = changes.setdefault((sample.source, sample.reference), [])
      if before and before[-1].translation == sample.translation:
        before[-1] = before[-1]._replace(last=step)
      else:
        before.append(Change(step, step, sample.translation))
  return [History(*sentence, _spread(every), max(0, len(every) - _MOST_CHANGES)) for sentence, every in changes.items()]


def _spread(changes: list[Change]) -> list[Change]:
  """The first change, the last, and others between, `_MOST_CHANGES` or fewer; most are early, when most is learned."""
  count = len(changes)
  if count <= _MOST_CHANGES:
    return changes
  chosen: list[int] = []
  for place in range(_MOST_CHANGES):
    wanted = round(count ** (place / (_MOST_CHANGES - 1))) - 1
    chosen.append(max(wanted, chosen[-1] + 1 if chosen else 0))
  return [changes[number] for number in chosen]


def _commands(run: Run, trains: bool) -> list[tuple[str, str]]:
  """The commands to use a run with, as they are typed where the report was made; `trains` if it has an optimizer."""
  where = short_path(run.path)
  translates = registry.command_of(run.config.model) == "translate" and not run.config.data.has_trees
  commands = [("train on", f"{PROGRAM} train --workdir {where}")] if trains else []
  commands.append(("use the model", next_command(run.config, run.path)))
  if run.config.data.has_trees:
    files = "--source SENTENCES --reference TREES"
    commands.append(("evaluate", f"{PROGRAM} evaluate --workdir {where} {files}"))
  elif translates:
    source, target = (shlex.quote(f"PREFIX.{language}") for language in directions_of(run.config.data)[0])
    commands.append(
      ("evaluate", f"{PROGRAM} evaluate --workdir {where} --source {source} --reference {target} --report")
    )
  train = run.config.train
  last = min(5, train.keep, -(-train.steps // (train.save_every or train.steps)))  # §6.1's five, or as many as it keeps
  if trains and last > 1:
    commands.append(("average checkpoints", f"{PROGRAM} average --workdir {where} --last {last} --output DIR"))
  again = "make this report again" + (", with translations" if translates else "")
  return [*commands, (again, f"{PROGRAM} report --workdir {where}")]
