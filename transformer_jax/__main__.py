"""The command line: `python -m transformer_jax COMMAND`, or `transformer-jax COMMAND`."""

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from transformer_jax.compilation import use_compilation_cache
from transformer_jax.errors import InputError, RunError
from transformer_jax.memory import use_huge_pages

# What needs JAX is imported inside the commands: neither --help nor a mistaken flag should wait for it.
if TYPE_CHECKING:
  from transformer_jax.decoding.translator import Translation, Translator
  from transformer_jax.evaluation.report import Text

_TRANSLATE = """\
Translates standard input, one sentence a line, to standard output: line i of the output is the translation of line i of
the input, and an empty line that of an empty line. With --n-best N each line has N lines of output, best first, of
which the last are empty where there are not so many different translations.
"""
_PLAN = """\
Tells before anything runs what a config needs: parameters by part, memory of a device, floating-point operations, time
at a given rate, padding and epochs. --config.KEY=VALUE changes keys as in train.py. Nothing is computed but shapes, and
the training text packed, unless --no-data; that of TensorFlow Datasets is read only with --data.
"""
_EVALUATE = "Translates a file and scores the translations against a reference, with BLEU and chrF by sacreBLEU."
_SCORE = (
  "Scores a file of translations, of whatever origin, against a reference: prints the report of evaluate --report."
)
_AVERAGE = """\
Averages the parameters of a run's last checkpoints, as in section 6.1 of the paper: the result is a run folder with
which `translate` and `evaluate` work as with any other, and in which train.py cannot go on. To choose from are the last
config.train.keep checkpoints.
"""
_FIDELITY = """\
Checks what the paper says, statement by statement: prints each one that this code implements, where in the code, the
test that holds it and where it departs from the paper, and runs its check. The exit status is 1 if any fails.
"""


def main(argv: Sequence[str] | None = None) -> int:
  """Runs one command; what the user can mend ends in one line on stderr and status 2, failed work in status 1."""
  if argv is None:
    use_huge_pages()
  try:
    args, rest = _parser().parse_known_args(argv)
    if args.command is None:
      raise InputError(f"a command is missing; there are {', '.join(_COMMANDS)}")
    overrides = [argument for argument in rest if "config" in args and argument.startswith("--config.")]
    if overrides != rest:
      raise InputError(f"unrecognized arguments: {' '.join(rest)}; `transformer-jax {args.command} --help` tells more")
    args.overrides = overrides
    args.run(args)
    sys.stdout.flush()
  except (InputError, RunError) as error:
    return _failed(str(error), error.exit_status)
  except BrokenPipeError:
    # Nobody reads on, as in `| head`. Python would complain when it flushes standard output at its exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13  # as a program that SIGPIPE ends
  except OSError as error:
    return _failed(str(error), RunError.exit_status)
  except KeyboardInterrupt:
    return 128 + 2
  return 0


def _failed(message: str, status: int) -> int:
  print(f"transformer-jax: error: {message}", file=sys.stderr)
  return status


def translate(args: argparse.Namespace) -> None:
  """`translate`: standard input to standard output."""
  from transformer_jax.data.text import read_lines
  from transformer_jax.progress import Progress, say

  translator = _load(args.workdir)
  interactive = {"window": 1} if sys.stdin.isatty() else {}
  with Progress("line", visible=not sys.stdout.isatty()) as progress:
    for translations in translator.translate_lines(
      read_lines(sys.stdin.buffer, "standard input"),
      **_search_options(args),
      **interactive,
      n_best=args.n_best,
      progress=progress.update,
      warn=say,
    ):
      # Bytes, as UTF-8 and "\n" are not what every locale and system make of text.
      sys.stdout.buffer.write("".join(_output_lines(translations, args.n_best, args.scores)).encode())
      sys.stdout.buffer.flush()


def _load(workdir: str) -> "Translator":
  from transformer_jax.decoding.translator import Translator

  use_compilation_cache()
  return Translator.load(workdir)


def _output_lines(translations: "Sequence[Translation]", n_best: int, scores: bool) -> Iterator[str]:
  for translation in translations:
    yield f"{translation.score:.6f}\t{translation.text}\n" if scores else f"{translation.text}\n"
  yield from itertools.repeat("\n", n_best - len(translations))


def evaluate(args: argparse.Namespace) -> None:
  """`evaluate`: a file's translations against their references."""
  from transformer_jax.evaluation import scores
  from transformer_jax.progress import Progress, say

  scores.check_tokenization(args.tokenize)
  _check_writable(args.hypotheses)
  source, reference = _read_texts(args.source, args.reference)
  other = _read_other(args)
  translator = _load(args.workdir)
  start = time.monotonic()
  with Progress("line", total=len(source.lines)) as progress:
    found = translator.translate_lines(source.lines, **_search_options(args), progress=progress.update, warn=say)
    translations = [best[0].text for best in found]
  seconds = time.monotonic() - start
  if args.hypotheses:
    _write_lines(args.hypotheses, translations)
  if args.report or other:
    data = translator.config.data
    known = {"source": source, "other": other, "languages": (data.source_language, data.target_language)}
    known |= {"run": _run_facts(args, translator), "seconds": seconds}
    _print_report(args, _named(args.hypotheses, translations), reference, known)
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


def score(args: argparse.Namespace) -> None:
  """`score`: translations that exist already."""
  from transformer_jax.evaluation import scores

  scores.check_tokenization(args.tokenize)
  translations, reference = _read_texts(args.hypotheses, args.reference)
  source = _read_texts(args.source, args.reference)[0] if args.source else None
  languages = tuple(args.languages) if args.languages else None
  known = {"source": source, "other": _read_other(args), "languages": languages}
  _print_report(args, translations, reference, known)


def _run_facts(args: argparse.Namespace, translator: "Translator") -> dict[str, Any]:
  """Which parameters and which search made the translations."""
  from transformer_jax import checkpoint

  decode = translator.config.decode
  last = checkpoint.read_provenance(checkpoint.folder_of(args.workdir))[-1:]
  averaged = [entry["averaged"]["steps"] for entry in last if "averaged" in entry]
  chosen = {name: getattr(args, name) for name in ("beam_size", "length_penalty", "patience")}
  return {
    "seed": translator.config.train.seed,
    "step": translator.step,
    "averaged_steps": averaged[0] if averaged else None,
    "penalty": decode.penalty.value,
    **{name: getattr(decode, name) if value is None else value for name, value in chosen.items()},
  }


def _print_report(args: argparse.Namespace, translations: "Text", reference: "Text", known: dict[str, Any]) -> None:
  from transformer_jax.evaluation import report

  found = report.whole(translations, reference, tokenize=args.tokenize, lowercase=args.lowercase, **known)
  print(json.dumps(found) if args.json else report.text(found))


def _named(path: str | None, lines: Sequence[str]) -> "Text":
  from transformer_jax.evaluation.report import Text

  return Text(path and os.path.basename(path), lines)


def _read_texts(path: str, reference: str) -> "tuple[Text, Text]":
  """Two files, of as many lines each."""
  from etils import epath

  from transformer_jax.data.text import lines_of, zip_lines

  first, second = (lines_of(epath.Path(name).expanduser()) for name in (path, reference))
  sides = list(zip(*zip_lines(first, second, path, reference), strict=True))
  return _named(path, sides[0]), _named(reference, sides[1])


def _read_other(args: argparse.Namespace) -> "Text | None":
  return _read_texts(args.compare, args.reference)[0] if args.compare else None


def _check_writable(path: str | None) -> None:
  """Before the work is done whose result goes there."""
  from etils import epath

  if path and (epath.Path(path).is_dir() or not epath.Path(path).parent.is_dir()):
    raise InputError(f"--hypotheses {path} cannot be written: give a file in a folder that exists")


def _write_lines(path: str, lines: list[str]) -> None:
  from etils import epath

  epath.Path(path).write_bytes("".join(f"{line}\n" for line in lines).encode())


def _search_options(args: argparse.Namespace) -> dict[str, Any]:
  return {name: getattr(args, name) for name in ("beam_size", "length_penalty", "patience", "batch_size")}


def plan(args: argparse.Namespace) -> None:
  """`plan`: what a config needs, from shapes."""
  from transformer_jax import flags, plan, plan_text
  from transformer_jax.config import Corpus

  config = flags.parse(["plan", f"--config={args.config}", *args.overrides], None).config
  if args.devices < 1 or (args.rate is not None and not args.rate > 0):
    raise InputError("--devices and --rate must be positive")
  found = plan.whole(config, args.devices, args.rate, plan.in_bytes(args.fit) if args.fit else None)
  if args.data if args.data is not None else config.data.corpus is not Corpus.TFDS:
    try:
      found["data"] = plan.data(config)
    except InputError as error:
      found["data"] = {"not_measured": f"as {error}"}
  else:
    found["data"] = {"not_measured": "which --data does"}
  print(json.dumps(found) if args.json else plan_text.text(found))


def average(args: argparse.Namespace) -> None:
  """`average`: the mean of a run's last checkpoints, as a run folder of its own."""
  import jax

  # Averaging needs no accelerator, which may be busy with the training of this very run.
  jax.config.update("jax_platforms", "cpu")
  from transformer_jax.averaging import average

  steps = average(args.workdir, args.output, args.last, args.minutes)
  print(f"{args.output} holds the mean of the checkpoints of steps {', '.join(map(str, steps))}")


def fidelity(args: argparse.Namespace) -> None:
  """`fidelity`: the paper's statements, each with its check."""
  from transformer_jax import paper
  from transformer_jax.paper import report

  if args.markdown:
    print(report.markdown(paper.STATEMENTS), end="")
    return
  use_compilation_cache()
  found = []
  for statement, reason in paper.run():
    found.append((statement, reason))
    if not args.json:
      print(report.text(statement, reason), flush=True)
  if args.json:
    print(json.dumps([report.to_dict(*result) for result in found]), flush=True)
  failed = sum(reason is not None for _, reason in found)
  if failed:
    raise RunError(f"{failed} of {len(found)} statements do not hold; their lines say why")
  if not args.json:
    print(f"all {len(found)} statements hold")


class _Parser(argparse.ArgumentParser):
  """Raises InputError where argparse would print how the program is used and exit."""

  def error(self, message: str) -> NoReturn:
    raise InputError(f"{message}; `{self.prog} --help` tells more")


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(prog="transformer-jax", description="The Transformer, trained by train.py.", allow_abbrev=False)
  commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
  for name, (run, description, add_arguments) in _COMMANDS.items():
    summary = description.split(":")[0].replace("\n", " ")
    command = commands.add_parser(name, help=summary, description=description, allow_abbrev=False)
    command.set_defaults(run=run)
    add_arguments(command)
  return parser


def _translate_arguments(parser: argparse.ArgumentParser) -> None:
  _add_search_arguments(parser)
  parser.add_argument("--n-best", type=int, default=1, metavar="N", help="translations of each line (default 1)")
  parser.add_argument("--scores", action="store_true", help="write each translation's score and a tab before it")


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
  _add_search_arguments(parser)
  parser.add_argument("--source", required=True, metavar="FILE", help="sentences to translate, one a line")
  _add_score_arguments(parser)
  parser.add_argument("--hypotheses", metavar="FILE", help="write the translations there")
  parser.add_argument(
    "--report", action="store_true", help="print TER too, and what tells which scores compare with these"
  )


def _score_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--hypotheses", required=True, metavar="FILE", help="translations, one a line")
  _add_score_arguments(parser)
  parser.add_argument("--source", metavar="FILE", help="what was translated, for the report only")
  parser.add_argument(
    "--languages", nargs=2, metavar=("FROM", "TO"), help="as en de, for which the paper has its own BLEU"
  )


def _add_score_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--reference", required=True, metavar="FILE", help="right translations, one a line")
  parser.add_argument(
    "--tokenize", default="13a", metavar="T", help="sacreBLEU's: 13a (default), none for tokenised text, char, zh, ..."
  )
  parser.add_argument("--lowercase", action="store_true", help="letters of both cases are equal")
  parser.add_argument(
    "--compare", metavar="FILE", help="other translations: the report tells whether their scores differ by chance only"
  )
  parser.add_argument("--json", action="store_true", help="print one JSON object")


def _average_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--workdir", required=True, metavar="DIR", help="the run folder that train.py made")
  parser.add_argument("--last", required=True, type=int, metavar="N", help="how many; the paper takes 5, for big 20")
  parser.add_argument(
    "--minutes", type=float, metavar="M", help="take only checkpoints at least M minutes apart, from the newest back"
  )
  parser.add_argument("--output", required=True, metavar="DIR", help="the run folder to write, new or empty")


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add("--config", required=True, metavar="FILE", help="a file of configs/, as for train.py")
  add("--devices", type=int, default=1, metavar="N", help="devices that share a batch (default 1)")
  add("--rate", type=float, metavar="R", help="operations a second that one device reaches, as 60e12, for the time")
  add("--fit", metavar="MEMORY", help="find the paper's 25,000 + 25,000 tokens a batch in so much memory, as 16GB")
  add("--data", action=argparse.BooleanOptionalAction, help="pack the training text (default, but for TFDS)")
  add("--json", action="store_true", help="print one JSON object")


def _fidelity_arguments(parser: argparse.ArgumentParser) -> None:
  form = parser.add_mutually_exclusive_group()
  form.add_argument("--json", action="store_true", help="print one JSON list, an object for each statement")
  form.add_argument("--markdown", action="store_true", help="print docs/fidelity.md and check nothing")


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--workdir", required=True, metavar="DIR", help="the run folder that train.py made")
  parser.add_argument("--beam-size", type=int, metavar="N", help="hypotheses kept (default: the run's); 1 is greedy")
  parser.add_argument("--length-penalty", type=float, metavar="A", help="its exponent alpha (default: the run's)")
  parser.add_argument(
    "--patience",
    type=float,
    metavar="P",
    help="a search ends when P times the beam size of hypotheses have ended; 0: when nothing better is possible "
    "(default: the run's)",
  )
  parser.add_argument("--batch-size", type=int, metavar="N", help="sentences computed together on a device")


_COMMANDS: dict[str, tuple[Callable, str, Callable]] = {
  "plan": (plan, _PLAN, _plan_arguments),
  "translate": (translate, _TRANSLATE, _translate_arguments),
  "evaluate": (evaluate, _EVALUATE, _evaluate_arguments),
  "score": (score, _SCORE, _score_arguments),
  "average": (average, _AVERAGE, _average_arguments),
  "fidelity": (fidelity, _FIDELITY, _fidelity_arguments),
}


if __name__ == "__main__":
  sys.exit(main())
