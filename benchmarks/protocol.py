"""How a measured side answers; runs in every virtual environment (see `side.py` for the one that asks).

A side is a process of its own, a program in `trainers/` or `decoders/`. The
exchange folder that it is started with holds `job.json`, in which token numbers
are this project's and sentences end with EOS. It answers each line of standard
input, the arguments of a call, with a line of standard output.
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

Answer = Callable[..., dict[str, Any]]
# translate(numbers of sentences, beam size, sentences a batch, options) -> for each its tokens without EOS, or its text
# and the count of its tokens with EOS.
Translate = Callable[..., list[Any]]


def serve(load: Callable[[dict[str, Any], Path], Answer]) -> None:
  """Loads a side and answers until standard input ends.

  Args:
    load: of the job and the exchange folder; gives the function that is called.
  """
  answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
  os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries print to standard output
  folder = Path(sys.argv[1])
  answer = load(json.loads((folder / "job.json").read_text()), folder)
  print(json.dumps({"ready": True}), file=answers, flush=True)
  for line in sys.stdin:
    print(json.dumps(answer(**json.loads(line))), file=answers, flush=True)


def padded(sentences: Sequence[Sequence[int]], pad: int = PAD) -> np.ndarray:
  """int64 `[sentences, longest]`."""
  array = np.full((len(sentences), max(map(len, sentences))), pad, np.int64)
  for row, tokens in zip(array, sentences, strict=True):
    row[: len(tokens)] = tokens
  return array


def trainer(update: Callable[[int], tuple[Any, Any]]) -> Answer:
  """Updates in turns: in each one that is not timed, and then `steps` of them.

  Args:
    update: makes the update of that number, from 0, and returns its loss, summed
      over target tokens, and how many there are. These may be numbers that are
      still computed: they are read when all updates of the turn are under way.
  """
  done = 0

  def train(steps: int) -> dict[str, Any]:
    nonlocal done
    float(update(done)[0])
    start = time.perf_counter()
    made = [update(number) for number in range(done + 1, done + 1 + steps)]
    losses, tokens = ([float(number) for number in numbers] for numbers in zip(*made, strict=True))
    seconds = time.perf_counter() - start
    done += 1 + steps
    return {"seconds": seconds, "target_tokens": sum(tokens), "loss": sum(losses) / sum(tokens)}

  return train


def learning_rate(job: dict[str, Any], number: int) -> float:
  """The rate of this project's schedule at the update of that number, from 0."""
  train, step = job["config"]["train"], number + 1
  return train["peak_learning_rate"] * min((train["warmup_steps"] / step) ** 0.5, step / train["warmup_steps"])


def translator(translate: Translate) -> Answer:
  """Translations of sentences named by number; a batch of 1 hands them over one a call, as a service would."""

  def answer(sentences: list[int], beam: int, batch: int, **options: Any) -> dict[str, Any]:
    calls = [[i] for i in sentences] if batch == 1 else [sentences]
    start = time.perf_counter()
    found = [translation for call in calls for translation in translate(call, beam, batch, **options)]
    return {"seconds": time.perf_counter() - start, "found": found}

  return answer


def by_length(
  job: dict[str, Any], translate_batch: Callable[[list[list[int]], int, int], Sequence[Sequence[int]]]
) -> Translate:
  """Translates in batches of about one length, the longest first, as users of these libraries would make them.

  Args:
    job: has the sentences' tokens.
    translate_batch: of tokens of sentences, a beam size, and how many tokens a translation may have, as of ours from
      the longest of the batch; what it gives may go on behind the EOS.
  """

  def translate(sentences: Sequence[int], beam: int, batch: int) -> list[list[int]]:
    order = sorted(sentences, key=lambda i: -len(job["sources"][i]))
    found = {}
    for group in (order[i : i + batch] for i in range(0, len(order), batch)):
      sources = [job["sources"][i] for i in group]
      found.update(zip(group, translate_batch(sources, beam, len(sources[0]) + job["extra_length"]), strict=True))
    return [_to_eos([int(token) for token in found[i]]) for i in sentences]

  return translate


def _to_eos(tokens: list[int]) -> list[int]:
  return tokens[: tokens.index(EOS)] if EOS in tokens else tokens
