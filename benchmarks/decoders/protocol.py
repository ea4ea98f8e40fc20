"""How `decoding_speed.py` speaks with the translators it measures; runs in every virtual environment.

Each translator is a process of its own. The exchange folder that it is started
with holds `job.json` and `params.npz`, this project's weights by their names
("encoder/layers_0/attention/query/kernel"). It answers each line of standard
input, a request, with a line of standard output.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PAD, UNK, BOS, EOS = range(4)

# translate(numbers of sentences, beam size, sentences a batch, options) -> for each its tokens without EOS, or its text
# and the count of its tokens with EOS.
Translate = Callable[..., list[Any]]


def serve(load: Callable[[dict[str, Any], Path], Translate]) -> None:
  """Loads a translator and answers requests until standard input ends.

  A request `{"sentences": [...], "beam": 4, "batch": 1}` names sentences by
  number; a batch of 1 hands them over one call at a time, as a service would.
  """
  folder = Path(sys.argv[1])
  answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
  os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries print to standard output
  job = json.loads((folder / "job.json").read_text())
  translate = load(job, folder)
  print(json.dumps({"ready": True}), file=answers, flush=True)
  for line in sys.stdin:
    request = json.loads(line)
    sentences, beam, batch = (request.pop(key) for key in ("sentences", "beam", "batch"))
    calls = [[i] for i in sentences] if batch == 1 else [sentences]
    start = time.perf_counter()
    found = [translation for call in calls for translation in translate(call, beam, batch, **request)]
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "found": found}), file=answers, flush=True)


def by_length(job: dict[str, Any], sentences: Sequence[int], batch: int) -> list[list[int]]:
  """Batches of sentences of about one length, as every one of these libraries' users would make them."""
  order = sorted(sentences, key=lambda i: len(job["sources"][i]))
  return [order[i : i + batch] for i in range(0, len(order), batch)]


def in_order(sentences: Sequence[int], found: dict[int, list[int]]) -> list[list[int]]:
  """What was found, in the order that was asked for, each up to its EOS."""
  return [tokens[: tokens.index(EOS)] if EOS in tokens else tokens for tokens in (found[i] for i in sentences)]


def padded(job: dict[str, Any], sentences: Sequence[int]) -> np.ndarray:
  """The sentences' tokens as int64 `[sentences, longest]`."""
  sources = [job["sources"][i] for i in sentences]
  array = np.full((len(sources), max(map(len, sources))), PAD, np.int64)
  for row, tokens in zip(array, sources, strict=True):
    row[: len(tokens)] = tokens
  return array


def read_params(folder: Path) -> dict[str, np.ndarray]:
  """The weights; projections of heads as plain matrices `[in, out]`."""
  with np.load(folder / "params.npz") as arrays:
    params = {name: arrays[name] for name in arrays.files}
  for name, array in params.items():
    if array.ndim == 3:
      rows = array.shape[0] * array.shape[1] if "/output/" in name else array.shape[0]
      params[name] = array.reshape(rows, -1)
  return params


def layers(params: dict[str, np.ndarray]) -> int:
  """Layers of the encoder, as many as of the decoder."""
  return len({name.split("/")[1] for name in params if name.startswith("encoder/layers_")})


def sinusoids(positions: int, d_model: int) -> np.ndarray:
  """The paper's positional encoding, sine and cosine interleaved: float32 `[positions, model]`."""
  angles = np.arange(positions)[:, None] * 10_000.0 ** -(np.arange(0, d_model, 2) / d_model)[None, :]
  return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(positions, d_model).astype(np.float32)
