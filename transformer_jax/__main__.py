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

_TRANSLATE = """\
Translates standard input, one sentence a line, to standard output: line i of the output is the translation of line i of
the input, and an empty line that of an empty line. With --n-best N each line has N lines of output, best first, of
which the last are empty where there are not so many different translations.
"""
_EVALUATE = "Translates a file and scores the translations against a reference, with BLEU and chrF by sacreBLEU."


def main(argv: Sequence[str] | None = None) -> int:
  """Runs one command; what the user can mend ends in one line on stderr and status 2, failed work in status 1."""
  if argv is None:
    use_huge_pages()
  try:
    args = _parser().parse_args(argv)
    if args.command is None:
      raise InputError(f"a command is missing; there are {', '.join(_COMMANDS)}")
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
  pairs = _read_pairs(args.source, args.reference)
  translator = _load(args.workdir)
  start = time.monotonic()
  with Progress("line", total=len(pairs)) as progress:
    found = translator.translate_lines(
      (source for source, _ in pairs), **_search_options(args), progress=progress.update, warn=say
    )
    translations = [best[0].text for best in found]
  seconds = time.monotonic() - start
  if args.hypotheses:
    _write_lines(args.hypotheses, translations)
  result = scores.score(
    translations,
    [reference for _, reference in pairs],
    tokenize=args.tokenize,
    lowercase=args.lowercase,
    warn_if_tokenized=args.tokenize != "none",
  )
  if args.json:
    print(json.dumps(result.to_dict() | {"seconds": round(seconds, 3)}))
  else:
    print(f"{result}, translated in {seconds:.1f} seconds")


def _read_pairs(source: str, reference: str) -> list[tuple[str, str]]:
  from etils import epath

  from transformer_jax.data.text import lines_of, zip_lines

  sources, references = (lines_of(epath.Path(path).expanduser()) for path in (source, reference))
  return list(zip_lines(sources, references, source, reference))


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
  parser.add_argument("--reference", required=True, metavar="FILE", help="their translations, one a line")
  parser.add_argument(
    "--tokenize", default="13a", metavar="T", help="sacreBLEU's: 13a (default), none for tokenised text, char, zh, ..."
  )
  parser.add_argument("--lowercase", action="store_true", help="letters of both cases are equal")
  parser.add_argument("--hypotheses", metavar="FILE", help="write the translations there")
  parser.add_argument("--json", action="store_true", help="print one JSON object")


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
  "translate": (translate, _TRANSLATE, _translate_arguments),
  "evaluate": (evaluate, _EVALUATE, _evaluate_arguments),
}


if __name__ == "__main__":
  sys.exit(main())
