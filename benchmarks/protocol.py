"""A measured side's own end of the protocol, for every virtual environment; `side.py` is the measuring program's end.

A side is a separate process that runs a program in `trainers/` or `decoders/`.
Its exchange folder holds `job.json`, with this project's token numbers and an EOS
after each sentence. Each line of standard input has the arguments of a call; the
side answers each with a line of standard output.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PAD, UNK, BOS, EOS = range(4)

Answer = Callable[..., dict[str, Any]]
# translate(numbers of sentences, beam size, sentences per batch, options) -> for each sentence the tokens of its
# translation without EOS, or the text and the number of tokens with EOS.
Translate = Callable[..., list[Any]]
TranslateBatch = Callable[[list[list[int]], int, int], Sequence[Sequence[int]]]
OnEachCore = Callable[[Sequence[tuple[list[list[int]], int, int]]], Iterable[Sequence[Sequence[int]]]]


def serve(load: Callable[[dict[str, Any], Path], Answer]) -> None:
  """Loads a side and answers until standard input ends.

  Args:
    load: (job, exchange folder) -> the function that answers.
  """
  answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
  os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries print to standard output
  folder = Path(sys.argv[1])
  answer = load(json.loads((folder / "job.json").read_text()), folder)
  print(json.dumps({"ready": True}), file=answers, flush=True)
  for line in sys.stdin:
    print(json.dumps(answer(**json.loads(line))), file=answers, flush=True)


def padded(sentences: Sequence[Sequence[int]], pad: int = PAD) -> np.ndarray:
  """The sentences as an int64 array `[sentences, longest]`, filled up with `pad`."""
  array = np.full((len(sentences), max(map(len, sentences))), pad, np.int64)
  for row, tokens in zip(array, sentences, strict=True):
    row[: len(tokens)] = tokens
  return array


def trainer(update: Callable[[int], tuple[Any, Any]]) -> Answer:
  """An answer that makes one update that is not timed, and then `steps` timed updates.

  Args:
    update: makes the update with a number, from 0, and returns its loss, summed
      over target tokens, and the number of target tokens. Both may still be in
      computation: they are read after the last update of the turn was started.
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
  """The learning rate of this project's schedule at the update with this number, from 0."""
  train, step = job["config"]["train"], number + 1
  return train["peak_learning_rate"] * min((train["warmup_steps"] / step) ** 0.5, step / train["warmup_steps"])


def translator(translate: Translate) -> Answer:
  """An answer that translates sentences by their numbers; batch size 1 makes one call per sentence, as a service."""

  def answer(sentences: list[int], beam: int, batch: int, **options: Any) -> dict[str, Any]:
    calls = [[i] for i in sentences] if batch == 1 else [sentences]
    start = time.perf_counter()
    found = [translation for call in calls for translation in translate(call, beam, batch, **options)]
    return {"seconds": time.perf_counter() - start, "found": found}

  return answer


def by_length(
  job: dict[str, Any], translate_batch: TranslateBatch, on_each_core: OnEachCore | None = None
) -> Translate:
  """Translates in batches of sentences of similar length, the longest first, as users of these libraries would.

  Args:
    job: the job, which has the sentences' tokens.
    translate_batch: (tokens of sentences, beam size, most tokens of a translation) -> tokens of the translations, which
      may continue after the EOS. The most tokens follow from the longest sentence of the batch, as in this project.
    on_each_core: the results of `translate_batch` for many such arguments, a batch on each core at a time.
  """

  def translate(sentences: Sequence[int], beam: int, batch: int, *, batch_a_core: bool = False) -> list[list[int]]:
    order = sorted(sentences, key=lambda i: -len(job["sources"][i]))
    sources = [[job["sources"][i] for i in order[at : at + batch]] for at in range(0, len(order), batch)]
    batches = [(group, beam, len(group[0]) + job["extra_length"]) for group in sources]
    if batch_a_core:
      assert on_each_core
      translated = on_each_core(batches)
    else:
      translated = (translate_batch(*arguments) for arguments in batches)
    found = dict(zip(order, (tokens for group in translated for tokens in group), strict=True))
    return [_to_eos([int(token) for token in found[i]]) for i in sentences]

  return translate


def _to_eos(tokens: list[int]) -> list[int]:
  return tokens[: tokens.index(EOS)] if EOS in tokens else tokens
