"""Translates standard input, one sentence per line, to standard output: line i of the output is the translation of line
i of the input; an empty line stays empty. With --n-best N each line has N lines of output, best first; the last ones
are empty if there are fewer different translations. Lines are translated as they come: a program that writes a line and
waits for its translation gets it before the end of the input. Several --workdir are an ensemble: their models, which
need one vocabulary, translate together, by the mean of their log-probabilities of each token.

With --sample a translation is drawn at random, token by token. It depends on the line, its number and --seed, not on
the other lines. With --n-best N each line has N of them, in the order in which they are drawn.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from transformer_jax.commands import line_warnings, search
from transformer_jax.commands.workdir import runs_to_restore
from transformer_jax.runtime.errors import InputError, require_option

if TYPE_CHECKING:
  from transformer_jax.config import Config
  from transformer_jax.decoding.translator import Translation
_DRAWS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
  search.add_search_arguments(parser, ensemble=True)
  parser.add_argument("--n-best", type=int, default=1, metavar="N", help="translations of each line (default 1)")
  parser.add_argument("--sample", action="store_true", help="draw translations at random instead of searching for them")
  search.add_sampling_arguments(parser)
  parser.add_argument(
    "--prefix",
    metavar="FILE",
    help="begin the translation of line i with exactly the text of line i of FILE; an empty line forces nothing. Its "
    "tokens are the tokenizer's, so its last word may go on: end it with a word or a part of one, without a space. "
    "Scores are those of the whole translation",
  )
  parser.add_argument(
    "--scores",
    action="store_true",
    help="write each translation's score and a tab before it: its log-probability over its length penalty",
  )
  parser.add_argument(
    "--moses",
    action="store_true",
    help="write translations in the format of Moses: NUMBER ||| TRANSLATION ||| logp= L length= T ||| SCORE, with "
    "numbers from 0, and no line for translations that are missing",
  )
  _add_risk_arguments(parser)
  parser.add_argument(
    "--long",
    choices=("split", "refuse"),
    default="split",
    help="a line of more than config.decode.max_source_length tokens is translated in parts (default), or is an error",
  )


def _add_risk_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the flags of minimum Bayes risk."""
  parser.add_argument(
    "--mbr",
    choices=("chrf", "bleu"),
    help="choose the translation with the least Bayes risk: the one that is most like all candidates by this score. "
    "With --n-best N and --scores it is the N best and their expected scores",
  )
  parser.add_argument(
    "--candidates",
    type=int,
    metavar="N",
    help=f"the translations that --mbr chooses from: N draws with --sample (default {_DRAWS}), otherwise the N best of "
    "the beam (default: its size), each weighted by its probability",
  )


def run(args: argparse.Namespace) -> None:
  from transformer_jax.commands.streams import Lines, Output, descriptor
  from transformer_jax.data.text import existing, lines_of, read_lines
  from transformer_jax.evaluation import bleu_statistics
  from transformer_jax.runtime.progress import Progress, say

  _require_fitting(args)
  sampling = search.sampling_options(args) if args.sample else None
  prefixes = lines_of(existing(args.prefix)) if args.prefix else None
  source = Lines(descriptor(sys.stdin, "standard input"))
  target = descriptor(sys.stdout, "standard output")
  runs = runs_to_restore(args.workdir, args, "translate")
  if args.mbr == "bleu":
    bleu_statistics.words([], runs[0].config.evaluate.tokenize, lowercase=False)  # fails before the work
  if sys.stdin.isatty():
    say("type a sentence and Enter; Ctrl-D ends")
  candidates = _candidates(args, search.chosen_beam(args, runs[0].config.decode)["beam_size"])
  translator = search.load(runs, args)
  shown = Progress("line", visible=not sys.stdout.isatty())
  with line_warnings.said() as warn, Output(target) as output, shown as progress:
    found = translator.translate_lines(
      read_lines(source.readline, "standard input"),
      **search.search_options(args),
      long=args.long,
      more=source.more,
      n_best=candidates,
      sampling=sampling,
      seed=args.seed,
      prefixes=prefixes,
      progress=progress.update,
      warn=warn,
    )
    for number, translations in enumerate(found):
      best = _ranked(translations, args, runs[0].config) if args.mbr else translations
      output.write("".join(_output_lines(number, best, args)))


def _require_fitting(args: argparse.Namespace) -> None:
  """Raises InputError for flags that do not fit together, or of which one would have no effect."""
  if args.scores and args.moses:
    raise InputError("--moses writes the scores: leave out --scores")
  if not args.mbr:
    require_option("--candidates", args.candidates, args.candidates is None, "left out without --mbr")
  if args.sample and (args.mbr or not (args.scores or args.moses)):
    expected = "left out: draws do not depend on it, and no score of theirs is written"
    require_option("--length-penalty", args.length_penalty, args.length_penalty is None, expected)
  if not args.sample:
    search.require_no_sampling(args, "add --sample")


def _candidates(args: argparse.Namespace, beam_size: int) -> int:
  """How many translations of each line are made."""
  from transformer_jax.config.experiment import MOST_BEAMS

  if not args.mbr:
    return args.n_best
  default = _DRAWS if args.sample else beam_size
  candidates = default if args.candidates is None else args.candidates
  if args.sample:
    require_option("--candidates", candidates, 0 < candidates <= MOST_BEAMS, f"from 1 to {MOST_BEAMS}")
  else:
    require_option("--beam-size", beam_size, 0 < beam_size <= MOST_BEAMS, f"from 1 to {MOST_BEAMS}")
    require_option(
      "--candidates",
      candidates,
      0 < candidates <= beam_size,
      f"from 1 to the beam size, which is {beam_size} (or raise --beam-size)",
    )
  require_option(
    "--n-best", args.n_best, 0 < args.n_best <= candidates, f"from 1 to --candidates, which is {candidates}"
  )
  return candidates


def _ranked(translations: "Sequence[Translation]", args: argparse.Namespace, config: "Config") -> "list[Translation]":
  """The best translations by minimum Bayes risk."""
  from transformer_jax.decoding.minimum_bayes_risk import ranked

  scored_as = {"tokenize": config.evaluate.tokenize, "lowercase": config.evaluate.lowercase}
  return ranked(translations, args.mbr, drawn=args.sample, **scored_as)[: args.n_best]


def _output_lines(number: int, translations: "Sequence[Translation]", args: argparse.Namespace) -> Iterator[str]:
  if args.moses:
    from transformer_jax.decoding import n_best

    yield from n_best.lines_of(number, translations)
    return
  for translation in translations:
    yield f"{translation.score:.6f}\t{translation.text}\n" if args.scores else f"{translation.text}\n"
  yield from itertools.repeat("\n", args.n_best - len(translations))
