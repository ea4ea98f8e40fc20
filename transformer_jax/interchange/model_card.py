"""The page README.md of an exported model: how to use it, what it comes from, its scores."""

import itertools
import json
from collections.abc import Mapping, Sequence

from transformer_jax import registry
from transformer_jax.config import Config, DecodeConfig, LengthPenalty, serialization
from transformer_jax.data.tagged import directions_of, tag
from transformer_jax.runs.run import Model, Run
from transformer_jax.runtime.errors import InputError, one_line
from transformer_jax.runtime.values import Json

_EXAMPLE = "A sentence."  # in the programs of the pages
# Of a start of training, what a stranger may know: not where its files were.
_PUBLIC = ("time", "data", "packing", "machine", "versions")


def card(run: Run, model: Model, usage: str, header: Mapping[str, Json], notes: Sequence[str] = ()) -> bytes:
  """The page in Markdown.

  Args:
    run: the run.
    model: the run's model.
    usage: how to use the folder, in Markdown.
    header: the values of the page's YAML header, JSON values; the languages of a translation come before them.
    notes: sentences about what the other library does otherwise.
  """
  groups = ["model"]
  if model.config.model.translates:
    groups, directions = ["model", "decode"], directions_of(model.config.data)
    header = {"language": [*dict.fromkeys(itertools.chain.from_iterable(directions))], **header}
    usage, notes = _with_tags(model.config, usage, notes)
  parts = [
    "---",
    *(f"{key}: {json.dumps(value)}" for key, value in header.items()),
    "---",
    "",
    f"# {_title(model)}",
    "",
    _origin(run, model),
    "",
    "This program runs in the folder of this page:",
    "",
    usage,
    *(f"\n{note}" for note in notes),
    "\n## Scores\n",
    _scores(run, model.step),
    "\n## Config\n",
    _json({group: serialization.to_dict(getattr(model.config, group)) for group in groups}),
    "\n## Provenance\n",
    _json([{key: entry[key] for key in _PUBLIC if key in entry} for entry in run.provenance]),
    "",
  ]
  return "\n".join(parts).encode()


def _with_tags(config: Config, usage: str, notes: Sequence[str]) -> tuple[str, Sequence[str]]:
  """The usage and notes of a model whose sentences begin with the tag of a language, as config.data.tags says."""
  if not config.data.tags:
    return usage, notes
  tags = [*dict.fromkeys(tag(_word(target)) for _, target in directions_of(config.data))]
  note = f"A sentence begins with the tag of its target language: {', '.join(f'`{each}`' for each in tags)}."
  return usage.replace(_EXAMPLE, f"{tags[0]} {_EXAMPLE}"), [note, *notes]


def search_notes(decode: DecodeConfig) -> list[str]:
  """Sentences about what the searches of other libraries do otherwise than the run's own."""
  notes = []
  if decode.beam_size > 1 and decode.length_penalty and decode.penalty is LengthPenalty.GNMT:
    notes.append(
      f"With a beam the run's own search divides log P(Y) by ((5 + |Y|) / 6) ** {decode.length_penalty:g}. Other "
      f"libraries divide by |Y| ** alpha, so that their translations with a beam may differ; greedy ones do not."
    )
  if decode.beam_size > 1 and decode.patience not in (0, 1):
    notes.append(f"The run's own search has a patience of {decode.patience:g}; other libraries may stop elsewhere.")
  return notes


def _title(model: Model) -> str:
  name, data = registry.name_of(model.config.model), model.config.data
  if not model.config.model.translates:
    return name
  directions = [f"{_word(source)} to {_word(target)}" for source, target in directions_of(data)]
  return f"{name.capitalize()}, {', '.join(directions)}"


def _origin(run: Run, model: Model) -> str:
  """Who has trained the model, in one or two sentences."""
  history, imported = run.provenance, run.imported
  folder = f"a folder of the format {_word(str(imported.get('from')))}" if imported else ""
  if imported and not any("data" in entry for entry in history):
    return f"Imported by transformer_jax from {folder}."
  steps = [f"{step:,}" for step in (run.averaged or {}).get("steps", [])]
  which = (
    f"the mean of the checkpoints of steps {', '.join(steps)}" if steps else f"the checkpoint of step {model.step:,}"
  )
  trained = f"Trained by transformer_jax; {which}."
  if not any("init_from" in entry for entry in history):
    return trained
  began = f"parameters that were imported from {folder}" if imported else "the parameters of another run"
  return f"{trained} Training began with {began}."


def _scores(run: Run, step: int) -> str:
  """The numbers of the checkpoint's validation, or of the last one before it, in Markdown."""
  try:
    lines = run.metrics
  except InputError:
    lines = []
  validations = [line for line in lines if line["split"] == "validation" and line["step"] <= step]
  if not validations:
    return "The run folder has no validation of this checkpoint."
  last = validations[-1]
  numbers = _json({key: value for key, value in last.items() if isinstance(value, int | float)})
  return numbers if last["step"] == step else f"They are of the last validation before this checkpoint.\n\n{numbers}"


def _json(values: Json) -> str:
  """A block of JSON. Each of its lines begins with a space or a bracket, so that no value can end the block."""
  return f"```json\n{json.dumps(values, indent=2)}\n```"


def _word(text: str) -> str:
  return "".join(letter for letter in one_line(text, 40) if letter.isalnum() or letter in "-_")
