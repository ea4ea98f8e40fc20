"""Writes a report of a run: one HTML page that needs no network. It has the config, the text, curves, sample
translations over time, and, if the run translates, scores with intervals, BLEU by source length, and the best and worst
sentences. Several --workdir are put side by side. `train` writes the page at its end, without what takes translating.
"""

import argparse
import os
from typing import TYPE_CHECKING

from transformer_jax.commands import line_warnings, output_file
from transformer_jax.commands.workdir import add_accept_edits, add_step
from transformer_jax.runtime.errors import InputError, RunError, one_line
from transformer_jax.runtime.files import path_of

if TYPE_CHECKING:
  from transformer_jax.inside.scored import Text, Translations
  from transformer_jax.runs.run import Run
  from transformer_jax.runs.steps import Step


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add("--workdir", required=True, action="append", metavar="DIR", help="a run folder; give several to compare them")
  add("--output", metavar="FILE", help="the page (default: report.html in the run folder; needed for several runs)")
  add(
    "--data",
    metavar="PREFIX",
    help="translate and score PREFIX.en and PREFIX.de, by the run's languages (default: the sentences of the "
    "validation text that the run translates in each validation, or all of them if it translates none)",
  )
  add_step(parser, "the checkpoint that translates (default last)")
  add_accept_edits(parser)


def run(args: argparse.Namespace) -> None:
  from transformer_jax import runs
  from transformer_jax.runs.run_folder import REPORT
  from transformer_jax.runtime.progress import doing

  if len(args.workdir) > 1 and not args.output:
    raise InputError("--output is missing: with several --workdir it names the file of the page")
  opened = [runs.open(workdir, accept_edits=args.accept_edits) for workdir in args.workdir]
  with doing("loading the libraries that translate"):
    from transformer_jax.evaluation import bootstrap
    from transformer_jax.inside import report
    from transformer_jax.inside.scored import scored

  if args.output and not args.output.endswith(".html"):  # so that no file of a run or a text is replaced
    raise InputError(f"--output is {args.output!r}, but the page's name must end with .html")
  output = path_of(args.output) if args.output else opened[0].path / REPORT
  output_file.check_writable("--output", str(output), (), args.workdir)
  bootstrap.require_seed()
  _require_step(opened, args.step)
  translations, notes = _translations(opened, args.data, args.step)
  page = report.render(opened, scored(translations) if translations else (), notes)
  output_file.write(os.fspath(output), page)
  print(one_line(output))


def _require_step(opened: "list[Run]", step: "Step") -> None:
  """Raises InputError if a run has no checkpoint of this number."""
  for run in opened:
    if isinstance(step, int) and step not in (steps := run.checkpoints.steps):
      raise InputError(
        f"{run.path} has no checkpoint of step {step}: it has those of steps {', '.join(map(str, steps)) or 'none'}"
      )


def _translations(opened: "list[Run]", prefix: str | None, step: "Step") -> "tuple[list[Translations], list[str]]":
  """The translations of every run, or none and the reason where a run could have some."""
  from transformer_jax import registry
  from transformer_jax.runtime.progress import say

  others = [
    run.path for run in opened if run.config.data.has_trees or registry.command_of(run.config.model) != "translate"
  ]
  if others and prefix:
    raise InputError(f"--data is a text to translate, but the run in {others[0]} does not translate: leave it out")
  if len(others) == len(opened):
    return [], []
  try:
    if others:
      raise InputError(f"the run in {others[0]} does not translate: leave it out to have scores")
    texts = [_text(run, prefix) for run in opened]
    return [_translated(run, text, step) for run, text in zip(opened, texts, strict=True)], []
  except (InputError, RunError) as error:
    if prefix:
      raise
    note = f"nothing was translated for this report: {error}"
    say(note)
    return [], [f"{note[0].upper()}{note[1:]}."]


def _text(run: "Run", prefix: str | None) -> "Text":
  from transformer_jax.data.pipeline import read_pairs, read_text_pairs
  from transformer_jax.inside.scored import Text

  data = run.config.data
  name = prefix or data.validation
  if not name:
    raise InputError("the run has no validation text: give --data PREFIX")
  pairs = read_text_pairs(data, name) if prefix else read_pairs(data, name, run.config.evaluate.sentences or None)
  if not pairs:
    raise InputError(f"{name} has no sentences: give another --data PREFIX")
  return Text(name if prefix else f"the validation text ({name})", pairs)


def _translated(run: "Run", text: "Text", step: "Step") -> "Translations":
  from transformer_jax.decoding.translator import Translator
  from transformer_jax.evaluation.scores import check_tokenization
  from transformer_jax.inside.scored import Translations
  from transformer_jax.runtime.compilation_cache import use_compilation_cache
  from transformer_jax.runtime.progress import Progress

  evaluate = run.config.evaluate
  check_tokenization(evaluate.tokenize)
  use_compilation_cache()
  translator = Translator.load(run, step=step)
  with line_warnings.said() as warn, Progress("line", total=len(text.pairs)) as progress:
    found = translator.translate_lines(text.sources, progress=progress.update, warn=warn)
    lines = [best[0].text for best in found]
  return Translations(text, lines, translator.step, evaluate.tokenize, evaluate.lowercase, translator.attention)
