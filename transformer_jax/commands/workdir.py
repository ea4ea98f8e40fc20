"""What commands share that read a run folder."""

import argparse


def add_workdir_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--workdir", required=True, metavar="DIR", help="the run folder that train.py made")
  parser.add_argument(
    "--accept-edits",
    action="store_true",
    help="take config.json, tokenizer.model and provenance.json as they are, though they are not as they were written",
  )
