"""Shows where each head of a model looks: writes the weights of attention for one sentence as data (attention.json),
pictures (PNG and SVG) and a page for a browser (attention.html). A model that translates also needs a target, which is
its own translation unless --target is given. GPT and BERT have the sentence alone. Prints the paths of the files.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_jax.commands.line_warnings import warn_of_language
from transformer_jax.commands.output_file import local_folder
from transformer_jax.commands.pictures import require_matplotlib, warn_of_missing_characters
from transformer_jax.commands.workdir import add_workdir_arguments, open_run
from transformer_jax.runtime.errors import InputError, one_line, require_option, writing
from transformer_jax.runtime.files import write_atomically
from transformer_jax.runtime.texts import require_utf8

if TYPE_CHECKING:
  from transformer_jax.decoding.attention import Attention
  from transformer_jax.inside.attention import Choice


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  add = parser.add_argument
  add("--sentence", required=True, metavar="TEXT", help="what the model reads")
  add("--target", metavar="TEXT", help="what a model that translates writes (default: its own translation)")
  add("--output", required=True, metavar="DIR", help="the folder to write the files to")
  add("--format", choices=("json", "npz"), default="json", help="the form of the data (default json)")
  add(
    "--kind",
    choices=("encoder", "decoder", "cross"),
    help="the attention in lines.png and lines.svg; cross is in cross.png and cross.svg, too (default: cross if there "
    "is any)",
  )
  add("--layer", type=int, metavar="L", help="its layer, from 1 (default: the last)")
  add(
    "--head",
    type=int,
    metavar="H",
    help="its head, from 1 (default: the mean; with --word each in a colour)",
  )
  add("--word", type=int, metavar="N", help="the number of the token that looks, from 1 (default: every token)")


def run(args: argparse.Namespace) -> None:
  from transformer_jax.inside import attention as inside
  from transformer_jax.runtime import devices
  from transformer_jax.runtime.compilation_cache import use_compilation_cache

  devices.require_devices()
  output = local_folder("--output", args.output)
  for flag in ("sentence", "target"):
    require_utf8(f"--{flag}", getattr(args, flag))
  use_compilation_cache()
  opened = open_run(args)
  warn_of_language(opened, args.sentence)
  found = inside.attention_of(opened, args.step, args.sentence, args.target)
  choice = _choice(args, found)
  with writing(output):
    output.mkdir(parents=True, exist_ok=True)
  data = inside.to_json(found) if args.format == "json" else inside.to_npz(found)
  _write(output / f"attention.{args.format}", data)
  _write(output / "attention.html", inside.to_page(found, one_line(opened.path.name), _texts(args, found)))
  for name, content in _pictures(found, choice, output):
    _write(output / name, content)


def _texts(args: argparse.Namespace, found: "Attention") -> list[str]:
  """The sentence, and the target if there is any."""
  from transformer_jax.inside.attention import text_of

  if not (found.source and found.target):
    return [args.sentence]
  return [args.sentence, text_of(found.target[:-1]).strip() if args.target is None else args.target]


def _choice(args: argparse.Namespace, found: "Attention") -> "Choice":
  """What is drawn as lines.

  Raises:
    InputError: there is no such kind, layer, head or token.
  """
  from transformer_jax.inside.attention import Choice

  kind = args.kind or [*found.weights][-1]
  if kind not in found.weights:
    raise InputError(f"--kind is {kind}, but the model has only {', '.join(found.weights)}")
  layers, heads, words, _ = found.weights[kind].shape
  for name, most in (("layer", layers), ("head", heads), ("word", words)):
    value = getattr(args, name)
    require_option(f"--{name}", value, value is None or 1 <= value <= most, f"from 1 to {most}")
  head, word = (None if value is None else value - 1 for value in (args.head, args.word))
  return Choice(kind, (args.layer or layers) - 1, head, word)


def _pictures(found: "Attention", choice: "Choice", output: Path) -> Iterator[tuple[str, bytes]]:
  """Names and contents of the pictures.

  Raises:
    InputError: matplotlib is not installed.
  """
  require_matplotlib(f"; {output} has the data and the page")
  from transformer_jax.inside import attention_pictures, figures

  missing = False
  for name, figure in attention_pictures.pictures(found, choice).items():
    contents, lacking = figures.files(figure)
    missing |= lacking
    yield from ((f"{name}.{ending}", content) for ending, content in contents.items())
  if missing:
    warn_of_missing_characters("; the page has them")


def _write(path: Path, content: bytes) -> None:
  write_atomically(path, content)
  print(one_line(path))
