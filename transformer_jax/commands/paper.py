"""Prints a table of the paper as Markdown, with what can be recomputed from it: for Table 2 BLEU and training cost of
each system, the cost from devices and days, and the cost of the Transformer relative to that of each other system.
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--table",
    type=int,
    choices=(2,),
    required=True,
    help="the number of the table; docs/table1.md and docs/table3.md have Tables 1 and 3",
  )


def run(args: argparse.Namespace) -> None:
  from transformer_jax.paper.table2 import report

  print(report.text(), end="")
