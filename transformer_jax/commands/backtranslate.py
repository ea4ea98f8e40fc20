"""Makes a synthetic parallel corpus from text in one language (back-translation, Sennrich et al. 2016). The run
translates in the reverse direction, for example from German to English to train from English to German. Then --output
PREFIX gets PREFIX.de, the text, PREFIX.en, its translations, and PREFIX.json, which says how they were made;
config.data.train may name PREFIX. Translations are drawn at random (Edunov et al. 2018), unless --beam-size,
--length-penalty or --patience asks for a search. The same command resumes after a stop, and gives the same files as
without one. Pairs are put on the disk about once a minute.
"""

import argparse
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_jax.commands import search
from transformer_jax.commands.output_file import local_path, require_one_meaning, require_prefix
from transformer_jax.commands.workdir import require_one_direction, runs_to_restore
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import same_file
from transformer_jax.runtime.texts import require_utf8

if TYPE_CHECKING:
  from etils import epath

  from transformer_jax.data.growing_corpus import GrowingCorpus
  from transformer_jax.decoding.translator import Translator
  from transformer_jax.runs.run import Run

# Lines that are translated together, and then put on the disk. More are translated faster, but a stop loses them.
_FEWEST, _MOST = 256, 4096
_SECONDS = 60.0  # for them


def add_arguments(parser: argparse.ArgumentParser) -> None:
  search.add_search_arguments(parser, ensemble=True)
  parser.add_argument("--input", required=True, metavar="FILE", help="the text, one sentence per line")
  parser.add_argument("--output", required=True, metavar="PREFIX", help="the corpus, without the endings")
  parser.add_argument(
    "--tag",
    default="",
    metavar="TEXT",
    help="write this and a space before each translation, as <BT> (Caswell et al. 2019), so that the model that trains "
    "on them can tell them from others",
  )
  search.add_sampling_arguments(parser)


def run(args: argparse.Namespace) -> None:
  from transformer_jax.data.growing_corpus import GrowingCorpus
  from transformer_jax.data.text import existing, lines_of
  from transformer_jax.runtime.progress import say
  from transformer_jax.runtime.wording import counted

  require_utf8("--tag", args.tag)
  if args.tag != " ".join(args.tag.split()):
    raise InputError(f"--tag is {args.tag!r}, but must be words with one space between them")
  options = _options(args) | search.search_options(args)
  text = existing(args.input)
  runs = runs_to_restore(args.workdir, args, "translate")
  require_one_direction(runs[0], "its lines need a tag or code that the corpus must not have")
  data = runs[0].config.data
  languages = data.target_language, data.source_language
  prefix = _prefix(args, languages)
  translator = search.load(runs, args)
  translator.translate_lines([], **options)  # refuses what cannot be used before there is a file
  say(f"the run reads {languages[1]} and writes {languages[0]}: {args.input} must be in {languages[1]}")
  with GrowingCorpus(prefix, languages, _made(args, runs, translator)) as corpus:
    lines = lines_of(text)
    corpus.skip(lines, str(text))  # an interruption here cannot tell how many pairs there are
    try:
      empty = _translate(text, lines, corpus, translator, args.tag, options)
    except KeyboardInterrupt:
      corpus.flush()
      say(f"interrupted: {counted(corpus.count, 'pairs')} are on the disk, and the same command goes on from there")
      raise
  say(f"{counted(corpus.count, 'pairs')} in {prefix}.{languages[0]} and {prefix}.{languages[1]}")
  if empty:
    say(f"{counted(empty, 'empty translations')} written now: training skips such pairs and counts them")


def _options(args: argparse.Namespace) -> dict[str, Any]:
  """How translations are drawn; nothing if they are searched for."""
  if _is_sampled(args):
    return {"sampling": search.sampling_options(args), "seed": args.seed}
  search.require_no_sampling(args, "leave out --beam-size, --length-penalty and --patience")
  return {}


def _is_sampled(args: argparse.Namespace) -> bool:
  return all(value is None for value in search.beam_options(args).values())


def _translate(
  text: "epath.Path",
  lines: Iterator[str],
  corpus: "GrowingCorpus",
  translator: "Translator",
  tag: str,
  options: dict[str, Any],
) -> int:
  """Writes the pairs of `lines`, the rest of the text; returns how many new translations are empty."""
  from transformer_jax.runtime.progress import Progress, say
  from transformer_jax.runtime.wording import counted

  empty = 0
  if count := corpus.count:
    say(f"{counted(count, 'pairs')} are there already: continuing with line {count + 1:,}")
  with Progress("line", total=_count(text), initial=count) as progress:
    window = _Window(corpus)
    for best, *_ in translator.translate_lines(
      window.read(lines),
      **options,
      window=_MOST,
      more=window.has_room,
      first=count + 1,
      progress=progress.update,
      warn=say,
    ):
      is_empty = not best.text.strip()
      corpus.append(f"{tag} {best.text}" if tag and not is_empty else best.text, window.targets.popleft())
      empty += is_empty
  return empty


class _Window:
  """The lines that are being translated together: as many as take about a minute, by the time of those before.

  Args:
    corpus: gets all their pairs, which are then put on the disk.

  Attributes:
    targets: the lines whose pairs the corpus has not yet.
  """

  def __init__(self, corpus: "GrowingCorpus"):
    self.targets = deque[str]()
    self._corpus, self._size, self._read, self._begun = corpus, _FEWEST, 0, 0.0

  def read(self, lines: Iterator[str]) -> Iterator[str]:
    """The lines. When the first of a window is read, the corpus has all pairs of the one before."""
    for line in lines:
      if not self.targets:
        self._begin()
      self.targets.append(line)
      self._read += 1
      yield line

  def has_room(self, seconds: float) -> bool:
    """Whether another line is to be read now; it is waited for, however many seconds it takes."""
    del seconds
    return len(self.targets) < self._size

  def _begin(self) -> None:
    self._corpus.flush()
    if self._read:
      fit = int(self._read * _SECONDS / max(1e-3, time.monotonic() - self._begun))
      self._size = max(_FEWEST, min(fit, 2 * self._size, _MOST))
    self._read, self._begun = 0, time.monotonic()


def _count(text: "epath.Path") -> int | None:
  """The number of lines; None if the text cannot be read to its end, or only once, as from a pipe."""
  from transformer_jax.data.text import is_pipe, lines_of

  if is_pipe(text):
    return None
  try:
    return sum(1 for _ in lines_of(text))
  except InputError:
    return None


def _prefix(args: argparse.Namespace, languages: tuple[str, str]) -> Path:
  """The path of the corpus, which must not be that of the text."""
  prefix = local_path("--output", args.output)
  for language in languages:  # as the config of a stranger's run may have it
    if "/" in language or language == "json":
      raise InputError(f"the run's language {language!r} cannot end the name of a file beside {prefix}.json")
  require_prefix(args.output, there=prefix.parent.is_dir() and os.access(prefix.parent, os.W_OK))
  for ending in (*languages, "json"):
    if same_file(f"{prefix}.{ending}", args.input):
      raise InputError(f"--output {prefix} would write to the text {args.input}: give another one")
  require_one_meaning(prefix, languages)
  return prefix


def _made(args: argparse.Namespace, runs: "list[Run]", translator: "Translator") -> dict[str, object]:
  """Everything that the translations depend on, as JSON values."""
  import jax

  from transformer_jax.config import serialization
  from transformer_jax.data import fingerprint
  from transformer_jax.model.params import by_name
  from transformer_jax.runs.checksums import checksums

  decode, searched = translator.config.decode, search.beam_options(args)
  if _is_sampled(args):
    chosen = {name: getattr(args, name) for name in ("temperature", "top_k", "top_p", "seed")}
  else:
    chosen = search.chosen_beam(args, decode)
  return {
    "steps": list(translator.steps),  # first: a run that trained on has other parameters, but is no other run
    "configs": [  # what decodes: a run that trained on may have more steps or another beam; `chosen` has what is used
      fingerprint.of_values(
        serialization.to_dict(run.config.model),
        {name: value for name, value in serialization.to_dict(run.config.decode).items() if name not in searched},
      )
      for run in runs
    ],
    "params": fingerprint.of_values(checksums(by_name(jax.device_get(translator.params)))),
    "vocabulary": runs[0].tokenizer.fingerprint(),
    "tag": args.tag,
    **chosen,
    "batch_size": args.batch_size,
  }
