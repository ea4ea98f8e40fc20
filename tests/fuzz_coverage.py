"""Looks for bytes that break the readers, guided by the code that they reach.

  pip install atheris
  python -m tests.fuzz_coverage -max_total_time=600 -timeout=20 -rss_limit_mb=4096

Each input is read as text, as JSON and as a config: it must come out as it went
in, or end in an InputError. What does neither ends the program with a traceback,
and the input is left in a file.
"""

import io
import sys
import tempfile

import atheris
from etils import epath

with atheris.instrument_imports(include=["transformer_jax"]):
  from transformer_jax.config import serialization
  from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
  from transformer_jax.data.text import read_lines
  from transformer_jax.decoding import splitting
  from transformer_jax.runtime import untrusted
  from transformer_jax.runtime.errors import InputError, one_line

TOKENIZER = SentencePieceTokenizer.learn(["a horse and a dog", "ein Pferd und ein Hund"] * 3, 290)
FILE = epath.Path(tempfile.mkdtemp()) / "config.json"


def one_input(data: bytes) -> None:
  try:
    for line in read_lines(io.BytesIO(data).readline, "it"):
      check_text(line)
  except InputError as error:
    check_message(error)
  FILE.write_bytes(data)
  try:
    config = serialization.from_dict(untrusted.read_json(FILE))
    assert serialization.from_dict(serialization.to_dict(config)) == config
  except InputError as error:
    check_message(error)


def check_text(line: str) -> None:
  tokens = TOKENIZER.encode(line)
  assert TOKENIZER.decode(tokens) == line
  parts = splitting.split(line, 9, lambda part: len(TOKENIZER.encode(part)))
  assert "".join("".join(parts).split()) == "".join(line.split())


def check_message(error: InputError) -> None:
  assert len(str(error)) < 1000 and "\n" not in one_line(error)


if __name__ == "__main__":
  atheris.Setup(sys.argv, one_input)
  atheris.Fuzz()
