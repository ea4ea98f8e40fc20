"""Writes the model of a run in another format: a folder with parameters, vocabulary and configuration. `safetensors` is
a run folder with its parameters in one file, which every command that decodes can use. `ctranslate2` is for the engine
CTranslate2, `marian-hf` a folder for MarianMTModel and MarianTokenizer of Hugging Face transformers, `bert` and `gpt2`
folders for their BertModel and GPT2LMHeadModel. `stablehlo` has the run's greedy and beam search as programs that JAX
runs without this project. If a format cannot express an option of the model, the command says so and writes nothing.
"""

import argparse

from transformer_jax.commands.workdir import add_workdir_arguments, open_run
from transformer_jax.interchange.formats import FORMATS
from transformer_jax.runtime.errors import one_line
from transformer_jax.runtime.process import termination_raises


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  parser.add_argument("--to", required=True, choices=[*FORMATS], metavar="FORMAT", help=f"one of {', '.join(FORMATS)}")
  parser.add_argument("--output", required=True, metavar="DIR", help="the folder to write, new or empty")
  for name, option in FORMATS.items():
    if option:
      default, *others = option.values
      parser.add_argument(
        f"--{option.name}",
        choices=option.values,
        metavar="TYPE",
        help=f"{option.what}, for {name}: {default} (default), {', '.join(others)}",
      )


def run(args: argparse.Namespace) -> None:
  import jax

  # Exporting needs no accelerator, which may be busy with the training of this very run.
  jax.config.update("jax_platforms", "cpu")
  from transformer_jax.interchange.export import export

  options = {option.name: getattr(args, option.name) for option in FORMATS.values() if option}
  with termination_raises():  # so that no half-written folder is left
    step = export(open_run(args), args.output, args.to, step=args.step, **options)
  print(one_line(f"{args.output} holds the model of step {step} in the format {args.to}"))
