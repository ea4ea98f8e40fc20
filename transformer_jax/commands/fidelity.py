"""Checks what the paper says, statement by statement: prints each one that this code implements, where in the code, the
test that holds it and where it departs from the paper, and runs its check. The exit status is 1 if any fails.
"""

import argparse
import json

from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.runtime.errors import RunError


def add_arguments(parser: argparse.ArgumentParser) -> None:
  form = parser.add_mutually_exclusive_group()
  form.add_argument("--json", action="store_true", help="print one JSON list, an object for each statement")
  form.add_argument("--markdown", action="store_true", help="print docs/fidelity.md and check nothing")


def run(args: argparse.Namespace) -> None:
  import jax

  from transformer_jax.paper import contract, report
  from transformer_jax.runtime import devices

  if args.markdown:
    print(report.markdown(contract.STATEMENTS), end="")
    return
  devices.require_devices()
  use_compilation_cache()
  # The programs are so small that compilation takes most of the time.
  jax.config.update("jax_disable_most_optimizations", True)
  found = []
  for statement in contract.STATEMENTS:
    reason = statement.failure()
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
