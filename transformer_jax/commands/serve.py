"""Serves a translation model: a page to try it in a browser, and a JSON API that speaks LibreTranslate's protocol (POST
/translate, GET /languages, GET /health). Only this machine can reach the server unless --host says otherwise. There is
no password and no encryption: put a proxy that has both between the server and the internet. SIGTERM, or the end of its
terminal (SIGHUP), ends it after the requests that it has accepted are answered.
"""

import argparse
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from transformer_jax.commands.search import add_search_arguments, chosen_beam, load
from transformer_jax.commands.workdir import run_to_restore
from transformer_jax.runtime.errors import InputError

if TYPE_CHECKING:
  from transformer_jax.decoding.line_warning import LineWarning
  from transformer_jax.decoding.translator import Translation
  from transformer_jax.serve.app import Served
  from transformer_jax.serve.search import Options


# A server has few sentences at a time. A step computes as many places as the batch has, empty ones too.
BATCH_SIZE_ON_CPU = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_search_arguments(parser)
  parser.add_argument(
    "--host", default="127.0.0.1", metavar="H", help="the name or address to serve at (default 127.0.0.1)"
  )
  parser.add_argument("--port", type=_port, default=8000, metavar="P", help="0 is any free one (default 8000)")
  parser.add_argument(
    "--allow-host",
    action="append",
    default=[],
    metavar="NAME",
    help="a name under which browsers reach the server, besides localhost and addresses; may be repeated",
  )
  for side in ("source", "target"):
    parser.add_argument(f"--{side}-language", metavar="CODE", help=f"the {side}'s code (default: the run's)")


def _port(text: str) -> int:
  if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 1 << 16):
    raise argparse.ArgumentTypeError(f"{text!r} must be a number from 0 to 65535")
  return int(text)


def run(args: argparse.Namespace) -> None:
  try:
    from transformer_jax.serve import server
    from transformer_jax.serve.app import application
  except ModuleNotFoundError as error:
    if (error.name or "").startswith("transformer_jax"):
      raise
    raise InputError(f"serve needs {error.name}: run pip install 'transformer_jax[serve]'") from error
  with server.bind(args.host, args.port) as bound:
    served = _served(args)
    running = server.server(application(served, [args.host, *args.allow_host]))
    try:
      running.run(sockets=[bound])
    finally:
      served.batcher.close(answer=not running.force_exit)  # a second Ctrl-C waits for no answer


def _served(args: argparse.Namespace) -> "Served":
  from transformer_jax.runtime import devices
  from transformer_jax.serve.app import MOST_WEIGHTS, Served
  from transformer_jax.serve.batcher import Batcher
  from transformer_jax.serve.libretranslate import Languages

  run = run_to_restore(args.workdir, args, "translate")
  translator = load([run], args)
  data, decode = run.config.data, run.config.decode
  languages = Languages(args.source_language or data.source_language, args.target_language or data.target_language)
  if languages.source.lower() == languages.target.lower():
    raise InputError(f"--source-language and --target-language are both {languages.source}: they must differ")
  beam = chosen_beam(args, decode)
  beam_size, length_penalty = beam["beam_size"], beam["length_penalty"]
  batch_size = BATCH_SIZE_ON_CPU if args.batch_size is None and devices.on_cpu() else args.batch_size
  rest = {"patience": beam["patience"], "batch_size": batch_size}
  translator.translate([], beam_size=beam_size, length_penalty=length_penalty, **rest)  # checks the flags

  def translate(
    lines: Sequence[str], options: "Options", warn: "Callable[[LineWarning], object]"
  ) -> "list[list[Translation]]":
    return list(translator.translate_lines(lines, **options._asdict(), **rest, warn=warn))

  attention = functools.partial(translator.attention, most=MOST_WEIGHTS)
  return Served(run.path.name, translate, attention, Batcher(), languages, beam_size, length_penalty)
