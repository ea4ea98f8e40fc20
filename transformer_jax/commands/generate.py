"""Continues a text with a trained language model (configs/gpt.py): the prompt is that of --prompt, or standard input
without its last line end. Prints the text after the prompt. Lines of dashes separate several samples; with --json each
sample is one JSON object per line. The same seed gives the same text.
"""

import argparse
import json
import sys

from transformer_jax.commands.search import add_sampling_arguments
from transformer_jax.commands.workdir import add_workdir_arguments, run_to_restore


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  add = parser.add_argument
  add("--prompt", metavar="TEXT", help="the beginning, which may be empty (default: standard input)")
  add("--max-tokens", type=int, metavar="N", help="the most tokens to write (default 128, if there is room for them)")
  add("--samples", type=int, default=1, metavar="N", help="how many texts (default 1)")
  add_sampling_arguments(parser)
  add("--json", action="store_true", help="print a JSON object for each sample")


def run(args: argparse.Namespace) -> None:
  from transformer_jax.decoding.generator import Generator
  from transformer_jax.runtime.progress import say

  prompt = _standard_input() if args.prompt is None else args.prompt
  samples = Generator.load(run_to_restore(args.workdir, args, "generate"), step=args.step).generate(
    prompt,
    max_tokens=args.max_tokens,
    samples=args.samples,
    temperature=args.temperature,
    top_k=args.top_k,
    top_p=args.top_p,
    seed=args.seed,
    warn=say,
  )
  texts = [json.dumps(sample._asdict()) if args.json else sample.text for sample in samples]
  sys.stdout.buffer.write((("\n" if args.json else "\n" + "-" * 60 + "\n").join(texts) + "\n").encode())


def _standard_input() -> str:
  """The text of standard input, whose lines are those of a training text: without its last line end."""
  from transformer_jax.commands.streams import Lines, descriptor
  from transformer_jax.data.text import read_lines

  lines = Lines(descriptor(sys.stdin, "standard input"))
  return "\n".join(read_lines(lines.readline, "standard input"))
