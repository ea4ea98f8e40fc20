"""Translates a file and scores the translations against a reference, with BLEU and chrF2 by sacreBLEU, as the run's
config.evaluate says. Several --workdir are an ensemble, as in `translate`; the first one's config counts.

For a run on parse trees --reference has a tree in Penn's format on each line, and --hypotheses gets such trees. The
score is the labelled F1, as EVALB computes it.
"""

import argparse
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from transformer_jax.commands import line_warnings, output_file, scoring
from transformer_jax.commands.search import add_search_arguments, chosen_beam, load, search_options
from transformer_jax.commands.workdir import runs_to_restore
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import expanded
from transformer_jax.runtime.values import JsonObject

if TYPE_CHECKING:
  from transformer_jax.data.trees import Tree
  from transformer_jax.decoding.translator import Translator
  from transformer_jax.evaluation.report import Text
  from transformer_jax.evaluation.scores import Scores
  from transformer_jax.runs.run import Run
  from transformer_jax.tasks.parsing import ParseScores


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_search_arguments(parser, ensemble=True)
  parser.add_argument("--source", required=True, metavar="FILE", help="sentences to translate, one per line")
  scoring.add_score_arguments(parser, "the run's config.evaluate.tokenize", "the run's config.evaluate.lowercase")
  parser.add_argument(
    "--hypotheses", metavar="FILE", help="write the translations there, in place of a file that is there"
  )
  parser.add_argument(
    "--report", action="store_true", help="print TER too, and the facts that tell which scores compare with these"
  )


def run(args: argparse.Namespace) -> None:
  from transformer_jax.data.tagged import directions_of
  from transformer_jax.runtime.progress import Progress, say

  scoring.check_scores(args)
  if args.hypotheses:
    read = (args.source, args.reference, args.compare)
    output_file.check_writable("--hypotheses", args.hypotheses, read, args.workdir)
    if expanded(args.hypotheses).is_file():
      say(f"{args.hypotheses} is there already: the translations will replace it")
  source, reference = scoring.read_texts(args.source, args.reference)
  other = scoring.read_as_many(args.compare, args.reference, reference)
  runs = runs_to_restore(args.workdir, args, "translate")
  has_trees = runs[0].config.data.has_trees
  trees = _read_trees(args, source.lines, reference.lines) if has_trees else []
  if not has_trees:
    _score_as(runs[0], args)
  translator = load(runs, args)
  facts = _run_facts(args, runs, translator) if args.report or other else {}
  start = time.monotonic()
  with line_warnings.said() as warn, Progress("line", total=len(source.lines)) as progress:
    found = translator.translate_lines(source.lines, **search_options(args), progress=progress.update, warn=warn)
    translations = [best[0].text for best in found]
  seconds = time.monotonic() - start
  f1, translations = _parsed(trees, translations) if has_trees else (None, translations)
  try:
    if args.hypotheses:  # before the scores, whose bootstrap may exhaust the memory
      output_file.write(args.hypotheses, "".join(f"{line}\n" for line in translations).encode())
  finally:
    if f1 is not None:
      _print(args, f1, "parsed", seconds)
    elif args.report or other:
      directions = directions_of(translator.config.data)
      known = {"source": source, "other": other, "languages": directions[0] if len(directions) == 1 else None}
      known |= {"run": facts, "seconds": seconds}
      scoring.print_report(args, scoring.named(args.hypotheses, translations), reference, known)
    else:
      _print_scores(args, reference, translations, seconds)


def _score_as(run: "Run", args: argparse.Namespace) -> None:
  """Sets --tokenize and --lowercase to the values of the run's config if they are not given."""
  from transformer_jax.evaluation.scores import check_tokenization
  from transformer_jax.runtime.progress import say

  evaluate = run.config.evaluate
  chosen = {name: getattr(evaluate, name) for name in ("tokenize", "lowercase") if getattr(args, name) is None}
  check_tokenization(chosen.get("tokenize", args.tokenize))
  if chosen:
    say(f"scoring as the run says: {', '.join(f'config.evaluate.{name} = {value}' for name, value in chosen.items())}")
  vars(args).update(chosen)


def _print_scores(args: argparse.Namespace, reference: "Text", translations: list[str], seconds: float) -> None:
  from transformer_jax.evaluation import scores

  result = scores.score(
    translations,
    reference.lines,
    tokenize=args.tokenize,
    lowercase=args.lowercase,
    warn_if_tokenized=args.tokenize != "none",
  )
  _print(args, result, "translated", seconds)


def _print(args: argparse.Namespace, result: "Scores | ParseScores", done: str, seconds: float) -> None:
  if args.json:
    print(json.dumps(result.to_dict() | {"seconds": round(seconds, 3)}))
  else:
    print(f"{result}, {done} in {seconds:.1f} seconds")


def _read_trees(args: argparse.Namespace, sources: Sequence[str], references: Sequence[str]) -> "list[Tree]":
  """The trees of the references, one on each line."""
  from transformer_jax.data.trees import read_trees

  if args.report or args.compare:
    raise InputError("--report and --compare are for translations, but this run's outputs are trees: leave them out")
  if args.tokenize is not None or args.lowercase is not None:
    raise InputError("--tokenize and --lowercase are for BLEU, but this run's outputs are trees: leave them out")
  found: list[Tree] = []
  for number, (source, line) in enumerate(zip(sources, references, strict=True), 1):
    trees = list(read_trees([line], args.reference, number))
    if len(trees) != 1 or list(trees[0].words) != source.split():
      raise InputError(
        f"{args.reference}, line {number} is not one tree with the words of line {number} of {args.source}: check both "
        "files"
      )
    found += trees
  return found


def _parsed(references: "list[Tree]", outputs: list[str]) -> "tuple[ParseScores, list[str]]":
  """The scores of trees, and the outputs' trees in Penn's format."""
  from transformer_jax.tasks.parsing import score_parses

  result, trees = score_parses(references, outputs)
  return result, [*map(str, trees)]


def _run_facts(args: argparse.Namespace, runs: "Sequence[Run]", translator: "Translator") -> JsonObject:
  """The parameters and the search options that made the translations; of an ensemble a list of each model's."""
  decode = translator.config.decode
  averaged = [run.averaged["steps"] if run.averaged else None for run in runs]
  of_models = {"seed": [run.config.train.seed for run in runs], "step": list(translator.steps)}
  of_models["averaged_steps"] = averaged if any(averaged) else [None]
  return {
    **{name: values if len(values) > 1 else values[0] for name, values in of_models.items()},
    "penalty": decode.penalty.value,
    **chosen_beam(args, decode),
  }
