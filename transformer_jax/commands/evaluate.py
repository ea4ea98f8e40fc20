"""`evaluate`: a file's translations against their references."""

import argparse
import json
import os
import time
from typing import TYPE_CHECKING, Any

from transformer_jax.commands.score import add_score_arguments, named, print_report, read_other, read_texts
from transformer_jax.commands.search import add_search_arguments, load, search_options
from transformer_jax.errors import InputError, writing

if TYPE_CHECKING:
  from transformer_jax.decoding.translator import Translator
  from transformer_jax.evaluation.report import Text

DESCRIPTION = "Translates a file and scores the translations against a reference, with BLEU and chrF by sacreBLEU."


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_search_arguments(parser)
  parser.add_argument("--source", required=True, metavar="FILE", help="sentences to translate, one a line")
  add_score_arguments(parser)
  parser.add_argument("--hypotheses", metavar="FILE", help="write the translations there")
  parser.add_argument(
    "--report", action="store_true", help="print TER too, and what tells which scores compare with these"
  )


def run(args: argparse.Namespace) -> None:
  """`evaluate`: a file's translations against their references."""
  from transformer_jax.evaluation import scores
  from transformer_jax.progress import Progress, say

  scores.check_tokenization(args.tokenize)
  _check_writable(args)
  source, reference = read_texts(args.source, args.reference)
  other = read_other(args)
  translator = load(args.workdir)
  start = time.monotonic()
  with Progress("line", total=len(source.lines)) as progress:
    found = translator.translate_lines(source.lines, **search_options(args), progress=progress.update, warn=say)
    translations = [best[0].text for best in found]
  seconds = time.monotonic() - start
  try:
    _print_scores(args, translator, source, reference, other, translations, seconds)
  finally:
    if args.hypotheses:
      _write_lines(args.hypotheses, translations)


def _print_scores(
  args: argparse.Namespace,
  translator: "Translator",
  source: "Text",
  reference: "Text",
  other: "Text | None",
  translations: list[str],
  seconds: float,
) -> None:
  from transformer_jax.evaluation import scores

  if args.report or other:
    data = translator.config.data
    known = {"source": source, "other": other, "languages": (data.source_language, data.target_language)}
    known |= {"run": _run_facts(args, translator), "seconds": seconds}
    print_report(args, named(args.hypotheses, translations), reference, known)
    return
  result = scores.score(
    translations,
    reference.lines,
    tokenize=args.tokenize,
    lowercase=args.lowercase,
    warn_if_tokenized=args.tokenize != "none",
  )
  if args.json:
    print(json.dumps(result.to_dict() | {"seconds": round(seconds, 3)}))
  else:
    print(f"{result}, translated in {seconds:.1f} seconds")


def _run_facts(args: argparse.Namespace, translator: "Translator") -> dict[str, Any]:
  """Which parameters and which search made the translations."""
  from transformer_jax import run_folder

  decode = translator.config.decode
  last = run_folder.read_provenance(run_folder.folder_of(args.workdir))[-1:]
  averaged = [entry["averaged"]["steps"] for entry in last if "averaged" in entry]
  chosen = {name: getattr(args, name) for name in ("beam_size", "length_penalty", "patience")}
  return {
    "seed": translator.config.train.seed,
    "step": translator.step,
    "averaged_steps": averaged[0] if averaged else None,
    "penalty": decode.penalty.value,
    **{name: getattr(decode, name) if value is None else value for name, value in chosen.items()},
  }


def _check_writable(args: argparse.Namespace) -> None:
  """Before the work is done whose result goes there."""
  from etils import epath

  if not args.hypotheses:
    return
  path = epath.Path(args.hypotheses).expanduser()
  read = [epath.Path(name).expanduser().resolve() for name in (args.source, args.reference, args.compare) if name]
  if path.resolve() in read:
    raise InputError(f"--hypotheses {path} is a file that is read: give another one")
  if "://" in args.hypotheses:
    return
  # Nothing is opened: a pipe's reader would take that for the end.
  if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
    raise InputError(f"--hypotheses {path} cannot be written: give a file in a folder that can be")


def _write_lines(path: str, lines: list[str]) -> None:
  from etils import epath

  with writing(path):
    epath.Path(path).expanduser().write_bytes("".join(f"{line}\n" for line in lines).encode())
