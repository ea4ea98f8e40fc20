"""Chooses the best of the translations that `translate --n-best N --moses` found for each line, by a weighted sum of
their features: those in the list, its score, and the log-probabilities that other models give them. With --reference
the weights are tuned for BLEU on these lists and written to --weights. Without it the weights are read, and the best
translation of each line is written to standard output.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformer_jax.commands import output_file
from transformer_jax.commands.workdir import add_accept_edits, add_step, require_one_direction, run_to_restore
from transformer_jax.runtime.errors import InputError, require_option
from transformer_jax.runtime.wording import counted

if TYPE_CHECKING:
  import numpy as np

  from transformer_jax.decoding.n_best import Candidate
  from transformer_jax.runs.run import Run

_TOKENIZE = "13a"
_CODE = re.compile(r"^>>[^\s<>]+<<\s*")  # of a language, in front of a source
_MODELS = {
  "forward": "log P(translation | source) of this run; may be repeated",
  "reverse": "log P(source | translation) of this run, which translates in the reverse direction; may be repeated",
  "right-to-left": "log P of the translation with its words in reverse order, given the source; the run was trained on "
  "such targets; may be repeated",
  "language-model": "log P(translation) of this run of a language model; may be repeated",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add("--n-best", required=True, metavar="FILE", help="the translations, in the format of Moses")
  add("--source", metavar="FILE", help="the lines that were translated; models need them")
  for name, what in _MODELS.items():
    add(f"--{name}", action="append", default=[], metavar="DIR", help=f"a feature: {what}")
  add("--weights", required=True, metavar="FILE", help="the weights, in JSON: written with --reference, otherwise read")
  add("--reference", metavar="FILE", help="tune the weights for BLEU against this file")
  add(
    "--tokenize",
    default=_TOKENIZE,
    metavar="T",
    help="sacreBLEU's: 13a, none for tokenised text, ... (default: 13a, whatever the run's config.evaluate says)",
  )
  add("--lowercase", action="store_true", help="ignore case")
  add("--batch-size", type=int, metavar="N", help="sentences computed together on a device")
  add_step(parser, "the checkpoint of each model (default last)")
  add_accept_edits(parser)


def run(args: argparse.Namespace) -> None:
  from transformer_jax.data.text import lines_of
  from transformer_jax.decoding import n_best, reranking
  from transformer_jax.evaluation.scores import check_tokenization

  check_tokenization(args.tokenize)
  tunes, without = bool(args.reference), "left out without --reference"
  require_option("--tokenize", args.tokenize, tunes or args.tokenize == _TOKENIZE, without)
  require_option("--lowercase", args.lowercase, tunes or not args.lowercase, without)
  models = _models(args)
  for name in ("batch_size", "step", "accept_edits"):
    value, default = getattr(args, name), args.parser.get_default(name)
    require_option(name, value, bool(models) or value == default, "left out without a model, such as --forward DIR")
  if args.reference:
    workdirs = [workdir for _, workdir in models]
    output_file.check_writable("--weights", args.weights, (args.n_best, args.source, args.reference), workdirs)
  lists = n_best.read(lines_of(args.n_best), args.n_best)
  require_option("--n-best", args.n_best, bool(lists), "a file with translations: it is empty")
  source = _as_many(args.source, lists, args.n_best) if args.source else None
  reference = _as_many(args.reference, lists, args.n_best) if args.reference else None
  weights = {} if reference else _read_weights(args.weights)
  names = _names(lists[0][0], models, args.n_best)
  if not reference and list(weights) != names:
    raise InputError(
      f"{args.weights} has weights of {', '.join(weights)}, but the features are {', '.join(names)}: give the list and "
      "the models with which the weights were tuned"
    )
  features = _features(lists, source or [], _opened(models, args), args)
  if reference:
    _tune(args, names, features, lists, reference)
    return
  chosen = reranking.best(features, _array(list(weights.values())))
  out = "".join(f"{candidates[i].text}\n" for candidates, i in zip(lists, chosen, strict=True))
  sys.stdout.buffer.write(out.encode())


def _tune(
  args: argparse.Namespace,
  names: list[str],
  features: "list[np.ndarray]",
  lists: "list[list[Candidate]]",
  reference: list[str],
) -> None:
  """Tunes the weights, writes them and prints what they give."""
  from transformer_jax.decoding import reranking
  from transformer_jax.evaluation.bleu_statistics import bleu, statistics

  counts = [
    statistics([each.text for each in candidates], text, tokenize=args.tokenize, lowercase=args.lowercase)
    for candidates, text in zip(lists, reference, strict=True)
  ]
  weights, score = reranking.tuned(features, counts)
  before = bleu(_array([own[0] for own in counts]).sum(axis=0))
  found = {name: float(weight) for name, weight in zip(names, weights, strict=True)}
  output_file.write(args.weights, (json.dumps(found, indent=2) + "\n").encode())
  case = "lowercased" if args.lowercase else "cased"
  print(
    f"BLEU ({args.tokenize}, {case}): {before:.2f} of the first of each list, {score:.2f} of the best by the weights "
    f"in {args.weights}"
  )


def _features(
  lists: "list[list[Candidate]]", source: list[str], opened: "list[tuple[str, Run]]", args: argparse.Namespace
) -> "list[np.ndarray]":
  """The values `[candidates, features]` of the features of each sentence."""
  rows = [[[each.score, *each.features.values()] for each in candidates] for candidates in lists]
  for kind, run in opened:
    for candidates, values in zip(rows, _log_probabilities(kind, run, lists, source, args), strict=True):
      for row, value in zip(candidates, values, strict=True):
        row.append(value)
  return [_array(candidates) for candidates in rows]


def _models(args: argparse.Namespace) -> list[tuple[str, str]]:
  """The kind and the folder of each model."""
  found = [(kind, workdir) for kind in _MODELS for workdir in getattr(args, kind.replace("-", "_"))]
  for kind, _ in found:
    if args.source is None and kind != "language-model":
      raise InputError(f"--{kind} needs the lines that were translated: give --source")
  return found


def _opened(models: list[tuple[str, str]], args: argparse.Namespace) -> "list[tuple[str, Run]]":
  """The kind and the run of each model, all of which are checked before one computes anything."""
  from transformer_jax.runtime.progress import say

  found = []
  for kind, workdir in models:
    run = run_to_restore(workdir, args, "generate" if kind == "language-model" else "translate")
    if kind == "reverse":
      require_one_direction(run, "its sources need a tag or code, which --reverse does not write")
      data = run.config.data
      say(f"--reverse {workdir} reads {data.source_language} and writes {data.target_language}")
    found.append((kind, run))
  return found


def _names(candidate: "Candidate", models: list[tuple[str, str]], n_best: str) -> list[str]:
  """The names of the score, the list's features and the models' ones, which must be different."""
  kinds = [kind for kind, _ in models]
  numbered = [f"{kind}{number if number > 1 else ''}" for kind in _MODELS for number in range(1, 1 + kinds.count(kind))]
  names = ["score", *candidate.features, *numbered]
  for name in candidate.features:
    if names.count(name) > 1:
      raise InputError(
        f"{n_best} has a feature {name!r}, which is the name of one of this command's own: rename it there"
      )
  return names


def _log_probabilities(
  kind: str, run: "Run", lists: "list[list[Candidate]]", source: list[str], args: argparse.Namespace
) -> list[list[float]]:
  """The log-probability that a model gives each candidate; 0 for an empty line, and where one is too long."""
  from transformer_jax.commands.search import load
  from transformer_jax.data.tagged import divided
  from transformer_jax.decoding.generator import Generator
  from transformer_jax.runtime.progress import doing, say

  asked: list[list[Any]]
  if kind == "language-model":
    model: Any = Generator.load(run, step=args.step)
    lines, asked = list(range(len(lists))), [[each.text for each in candidates] for candidates in lists]
  else:
    model, lines = load([run], args), [i for i, line in enumerate(source) if divided(line)[1].strip()]
    sources = zip(_sources(kind, run, source), lists, strict=True)
    asked = [[_pair(kind, line, each.text) for each in candidates] for line, candidates in sources]
  fits = {i: model.fits(asked[i]) for i in lines}
  if long := [i for i, fit in fits.items() if not fit]:
    say(
      f"a sentence is too long for {run.path} in {counted(len(long), 'lists')}, the first of which is that of line "
      f"{long[0] + 1}: the model's feature is 0 for all translations there"
    )
  with doing(f"scoring {sum(map(len, asked)):,} translations with {run.path}"):
    flat = [each for i, fit in fits.items() if fit for each in asked[i]]
    found = iter(model.score(flat, batch_size=args.batch_size))
  return [[next(found).log_probability if fits.get(i) else 0.0 for _ in own] for i, own in enumerate(lists)]


def _sources(kind: str, run: "Run", source: list[str]) -> list[str]:
  """The sources as a run reads them; says where the tag or code of a language is missing or is left out."""
  from transformer_jax.data.tagged import tags_of
  from transformer_jax.decoding.line_warning import LineWarning, check_language
  from transformer_jax.runtime.progress import say

  bare = [_untagged(line) for line in source]
  tags, tokenizer = tags_of(run.config.data), run.tokenizer.source
  if kind == "reverse":
    return bare
  if not (tags or tokenizer.codes):
    if cut := sum(left != line for left, line in zip(bare, source, strict=True)):
      say(
        f"the tag or code of a language is left out in {counted(cut, 'lines')} of --source for {run.path}, whose "
        "config.data.tags is false"
      )
    return bare
  missing: list[LineWarning] = []
  for number, line in enumerate(source, 1):
    if line.strip():
      check_language(line, tokenizer, tags, number, missing.append)
  if missing:
    say(
      f"the tag or code of a language, which {run.path} reads, is missing in {counted(len(missing), 'lines')} of "
      f"--source, the first of which is line {missing[0].line}"
    )
  return source


def _untagged(source: str) -> str:
  """A source without the tag or code that tells the language of its translation."""
  from transformer_jax.data.tagged import divided

  return _CODE.sub("", divided(source)[1])


def _pair(kind: str, source: str, translation: str) -> tuple[str, str]:
  """What a model of this kind is asked for."""
  if kind == "reverse":
    return translation, source
  if kind == "right-to-left":
    return source, " ".join(re.findall(r"[^ \t]+", translation)[::-1])  # as awk splits the text that trains
  return source, translation


def _as_many(name: str, lists: Sequence[object], n_best: str) -> list[str]:
  """The lines of a file, which must have one for each sentence of the list."""
  from transformer_jax.data.text import lines_of

  lines = list(lines_of(name))
  if len(lines) != len(lists):
    found = counted(len(lines), "lines"), counted(len(lists), "sentences")
    raise InputError(f"{name} has {found[0]}, but {n_best} has {found[1]}: give those of one text")
  return lines


def _read_weights(name: str) -> dict[str, float]:
  from transformer_jax.data.text import readable
  from transformer_jax.runtime import untrusted
  from transformer_jax.runtime.files import path_of

  path = path_of(name)
  with readable(path):
    try:
      found = untrusted.read_json(path)
    except FileNotFoundError as error:
      raise InputError(f"cannot read --weights {name}: {error.strerror}; tune them with --reference") from error
  if not isinstance(found, dict) or not all(type(value) in (float, int) for value in found.values()):
    raise InputError(f"--weights {name} is not an object of numbers: tune them with --reference")
  return found


def _array(values: object) -> "np.ndarray":
  import numpy as np

  return np.array(values, float)
