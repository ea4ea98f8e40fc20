"""What most programs here share: flags that are keys of a config, files that are made once, and the end by an error."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.runtime.files import write_atomically


def run(main: Callable[[], None]) -> None:
  """Calls a program; an error of the user, or one that a command has printed, ends it without a traceback."""
  try:
    main()
  except (InputError, RunError) as error:
    sys.exit(f"{Path(sys.argv[0]).name}: error: {error}")
  except subprocess.CalledProcessError as error:
    if error.stderr:  # which was read, and not shown
      print(error.stderr if isinstance(error.stderr, str) else error.stderr.decode(errors="replace"), file=sys.stderr)
    told = error.returncode > 0 and error.stderr is None
    sys.exit(error.returncode if told else str(error))


def overrides(parser: argparse.ArgumentParser, rest: list[str]) -> list[str]:
  """The remaining arguments as keys of a config: `--KEY=VALUE` becomes `KEY=VALUE`."""
  if not all(argument.startswith("--") and "=" in argument for argument in rest):
    parser.error(f"what is not a flag of this program must be a key, as in --train.steps=4000: {' '.join(rest)}")
  return [argument.removeprefix("--") for argument in rest]


def once(file: Path, content: Callable[[], bytes]) -> None:
  """Writes a file that does not exist, as a whole."""
  if not file.exists():
    print(f"  {file.name}", file=sys.stderr, flush=True)
    write_atomically(file, content())


def require_settings(output: Path, settings: Any) -> None:
  """Makes the folder of the results with a file of their settings; ends the program if it has results of others."""
  file = output / "settings.json"
  output.mkdir(parents=True, exist_ok=True)
  if any(output.iterdir()) and not (file.exists() and json.loads(file.read_text()) == settings):
    sys.exit(f"{output} has results of other settings: choose another --output")
  write_atomically(file, f"{json.dumps(settings, indent=1)}\n".encode())
