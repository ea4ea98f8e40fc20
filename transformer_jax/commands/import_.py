"""Makes a run folder of a model of another library: `marian-hf`, `bert` and `gpt2` are folders for MarianMTModel, as
OPUS-MT has them, BertModel and GPT2LMHeadModel of Hugging Face transformers. Every command that decodes takes the run
folder, `export` writes the model again, and `train` fine-tunes it with --config.train.init_from. The folder may come
from a stranger: nothing in it is run. If it has what the model here cannot express, the command says so and writes
nothing.
"""

import argparse

from transformer_jax.interchange.formats import IMPORTS
from transformer_jax.runtime.errors import one_line
from transformer_jax.runtime.process import termination_raises


def add_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("path", metavar="PATH", help="the folder of the other library")
  parser.add_argument(
    "--from",
    dest="format",
    required=True,
    choices=[*IMPORTS],
    metavar="FORMAT",
    help=f"its format: one of {', '.join(IMPORTS)}",
  )
  parser.add_argument("--workdir", required=True, metavar="DIR", help="the run folder to write, new or empty")


def run(args: argparse.Namespace) -> None:
  import jax

  jax.config.update("jax_platforms", "cpu")  # an accelerator may be busy
  from transformer_jax.interchange.import_ import import_model

  with termination_raises():  # so that no half-written folder is left
    import_model(args.path, args.workdir, args.format)
  print(one_line(f"{args.workdir} holds the model of {args.path}"))
