"""Sentences and tokens a second in translation, against JoeyNMT, Hugging Face transformers and CTranslate2.

    python benchmarks/decoding_speed.py --workdir RUN [--workdir LARGER_RUN] --data FILE.en [--peers DIR] [--json FILE]

RUN is a run folder of train.py, and FILE, plain or .xz, has one source sentence a line. Every side has **the same
weights**: the program writes those of the run into each of the others (see `decoders/`), so that all compute the same
function, stop by themselves and translate nearly always alike. How many of its translations equal ours is a column of
the table, and below --agree of them in greedy search the program fails, as then the comparison is of nothing. With a
beam more of them may differ: each library has its own rule for when a sentence is done (ours goes on until no better
hypothesis is possible), and JoeyNMT its own penalty of length.

What was chosen, and why: float32 and all cores on each side; torch with as many threads as cores; transformers with its
default attention (`sdpa`) and cache; CTranslate2 with all cores on one batch or a batch a core, whichever is faster;
JoeyNMT by its own `search`. Sentences are sorted by length on each side. Ours goes from text to text; the others are
given pieces and give pieces, which leaves the tokenizer out of their time and not out of ours.

"batch 1" hands over one sentence a call, as an interactive service does. "best batch" gives all sentences in one call;
each side has the batch size, of --batches, that was fastest on a sample of the sentences. Start-up (until the weights
are loaded) and first use (how much longer the first pass over the sample took than the second: compilation, where
there is one) are reported apart and not part of the rates. Tokens are those of the outputs, with one EOS each. Each
side is one process for each run folder, idle while another is measured, and the sides take turns in each round; "ours
is" tells how many times faster ours is, as the median over the rounds.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import peers
import report
from etils import epath

from transformer_jax.config import Config, LengthPenalty
from transformer_jax.data.text import lines_of
from transformer_jax.data.tokenizer import EOS, Tokenizer

OURS = "transformer_jax"
BEAMS = (4, 1)
# By name: the program in `decoders/`, what is installed for it, and whose versions are reported.
PEERS = {
  "JoeyNMT": ("joey.py", peers.JOEYNMT, ("joeynmt", "torch")),
  "transformers": ("marian.py", peers.TRANSFORMERS, ("transformers", "torch")),
  "CTranslate2": ("ct2.py", peers.CTRANSLATE2, ("ctranslate2",)),
}


class Setting(NamedTuple):
  """What a side is asked for: `options` are those of its `translate`."""

  beam: int
  batch: int
  options: dict[str, Any]

  def __str__(self) -> str:
    return ", ".join([str(self.batch or "own"), *(name.replace("_", " ") for name in self.options)])


class Answer(NamedTuple):
  """A pass over sentences: `texts` and counts of tokens are for those sentences, in order."""

  seconds: float
  texts: list[str]
  tokens: int


class Side:
  """One translator in its process.

  Args:
    name: in the table.
    python: the interpreter of its virtual environment.
    program: in `decoders/`.
    folder: for exchange.
    tokenizer: makes texts of pieces.
  """

  def __init__(self, name: str, python: str, program: str, folder: Path, tokenizer: Tokenizer):
    self.name = name
    self._decode = tokenizer.decode
    self._log = folder / f"{name}.log"
    start = time.perf_counter()
    with self._log.open("w") as log:
      self._process = subprocess.Popen(
        [python, str(Path(__file__).parent / "decoders" / program), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env=environment(name, folder),
      )
    self._answer()
    self.startup = time.perf_counter() - start

  def translate(self, sentences: Sequence[int], setting: Setting) -> Answer:
    """Translates sentences, by number."""
    assert self._process.stdin
    request = {"sentences": list(sentences), "beam": setting.beam, "batch": setting.batch, **setting.options}
    print(json.dumps(request), file=self._process.stdin, flush=True)
    answer = self._answer()
    found = answer["found"]
    if self.name == OURS:
      return Answer(answer["seconds"], [text for text, _ in found], sum(tokens for _, tokens in found))
    return Answer(answer["seconds"], list(map(self._decode, found)), sum(len(tokens) + 1 for tokens in found))

  def close(self) -> None:
    self._process.communicate()

  def _answer(self) -> dict[str, Any]:
    assert self._process.stdout
    line = self._process.stdout.readline()
    if not line:
      sys.exit(f"{self.name} ended; the end of what it printed:\n{self._log.read_text()[-2000:]}")
    return json.loads(line)


def environment(name: str, folder: Path) -> dict[str, str]:
  """A peer does not see this project's packages, and ours does not see what an earlier process compiled."""
  if name == OURS:
    return {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled")}
  return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def main() -> None:
  args = parse()
  programs = {OURS: ("ours.py", sys.executable)}
  versions = {}
  for name in args.sides:
    program, requirements, packages = PEERS[name]
    python = peers.python(name, requirements, args.peers)
    programs[name] = (program, str(python))
    versions[name] = peers.versions(python, *packages)
  rows = [row for workdir in args.workdir for row in measure_run(workdir, programs, args)]
  report.finish("decoding_speed", rows, args.json, peers=versions)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of translation.", allow_abbrev=False)
  add = parser.add_argument
  add("--workdir", action="append", required=True, metavar="DIR", help="a run folder of train.py; may be repeated")
  add("--data", required=True, metavar="FILE", help="sentences to translate, one a line, plain or .xz")
  add("--sides", nargs="+", default=list(PEERS), choices=PEERS, metavar="NAME", help="peers to measure (default: all)")
  add("--sentences", type=int, default=0, metavar="N", help="of the file, evenly spread (default: all)")
  add("--singly", type=int, default=100, metavar="N", help="sentences, evenly spread, for batch 1 (default 100)")
  add("--sample", type=int, default=300, metavar="N", help="sentences that the best batch is chosen on (default 300)")
  add("--batches", type=int, nargs="+", default=[16, 64, 256], metavar="N", help="sizes tried (default 16 64 256)")
  add("--rounds", type=int, default=5, metavar="N", help="(default 5)")
  add("--agree", type=float, default=0.98, metavar="SHARE", help="of equal greedy translations needed (default 0.98)")
  add("--device", default="cpu", help="of the peers: cpu (default) or cuda")
  report.add_arguments(parser)
  return parser.parse_args()


def measure_run(workdir: str, programs: dict[str, tuple[str, str]], args: argparse.Namespace) -> list[dict[str, Any]]:
  """The table's rows for one run folder."""
  with tempfile.TemporaryDirectory() as scratch:
    folder = Path(scratch)
    tokenizer, job = export(workdir, args, folder)
    sides = [Side(name, python, program, folder, tokenizer) for name, (program, python) in programs.items()]
    everything = range(len(job["sources"]))
    label = f"{job['layers']} layers of {job['d_model']}"
    rows = []
    for beam in BEAMS:
      for mode, sentences, sample, batches in (
        ("batch 1", spread(everything, args.singly), min(args.singly, 20), [1]),
        ("best batch", everything, args.sample, args.batches),
      ):
        settings = {side: choose(side, beam, spread(sentences, sample), batches) for side in sides}
        rows += [{"model": label, "mode": mode, **row} for row in measure(sides, sentences, settings, args.rounds)]
    for side in sides:
      side.close()
  check_agreement(rows, args.agree)
  return rows


def export(workdir: str, args: argparse.Namespace, folder: Path) -> tuple[Tokenizer, dict[str, Any]]:
  """Writes weights and sentences where every side reads them."""
  import jax

  from transformer_jax.checkpoint import load_for_decoding

  config, tokenizer, params = load_for_decoding(workdir)
  require_plain(config, workdir)
  lines = list(lines_of(epath.Path(args.data)))
  lines = [lines[i] for i in spread(range(len(lines)), args.sentences or len(lines))]
  sources = [[*tokens, EOS] for tokens in tokenizer.encode_batch(lines)]
  longest = max(map(len, sources))
  if longest > config.decode.max_source_length or not all(line.strip() for line in lines):
    sys.exit(f"{args.data} has empty lines, or lines of more than {config.decode.max_source_length} tokens: drop them")
  arrays = {
    jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(array)
    for path, array in jax.tree_util.tree_leaves_with_path(params)
  }
  np.savez(folder / "params.npz", **arrays)
  job = {
    "workdir": os.path.abspath(workdir),
    "lines": lines,
    "sources": sources,
    "vocab_size": config.model.vocab_size,
    "layers": config.model.num_layers,
    "d_model": config.model.d_model,
    "heads": config.model.num_heads,
    "length_penalty": config.decode.length_penalty,
    "most_tokens": longest + config.decode.extra_length,
    "positions": longest + config.decode.extra_length + 2,
    "threads": os.cpu_count(),
    "device": args.device,
  }
  (folder / "job.json").write_text(json.dumps(job))
  return tokenizer, job


def require_plain(config: Config, workdir: str) -> None:
  """Only the paper's own model can be written into all of the others."""
  model = config.model
  plain = model.share_embeddings and model.share_logits and model.d_k in (None, model.d_model // model.num_heads)
  plain &= model.d_v in (None, model.d_model // model.num_heads)
  if not plain or model.pre_norm or model.learned_positions or model.attention_bias:
    sys.exit(f"{workdir} is not a plain Transformer with one table, post-norm and sinusoids: choose another run")
  if config.decode.penalty is not LengthPenalty.FAIRSEQ:
    print("note: this run's length penalty is GNMT's, which CTranslate2 and transformers do not have")


def spread(sentences: Sequence[int], count: int) -> list[int]:
  """`count` of them, evenly spread, or all."""
  count = min(count, len(sentences))
  return [sentences[i * len(sentences) // count] for i in range(count)]


def choose(side: Side, beam: int, sample: Sequence[int], batches: Sequence[int]) -> tuple[Setting, float]:
  """The fastest of the batch sizes, and the seconds that its first use took longer than its second."""
  settings = [Setting(beam, size, {}) for size in batches]
  if side.name == OURS and batches != [1]:
    settings.append(Setting(beam, 0, {}))  # its own choice
  if side.name == "CTranslate2":
    settings += [Setting(beam, size, {"batch_a_core": True}) for size in batches]
  seconds = {}
  for number, setting in enumerate(settings):
    first, second = (side.translate(sample, setting).seconds for _ in range(2))
    seconds[number] = second, max(0.0, first - second)
  best = min(seconds, key=lambda number: seconds[number])
  return settings[best], seconds[best][1]


def measure(
  sides: Sequence[Side], sentences: Sequence[int], settings: dict[Side, tuple[Setting, float]], rounds: int
) -> list[dict[str, Any]]:
  """Rows of the table, one a side, from passes over the sentences in turns."""
  found = {side: side.translate(sentences, settings[side][0]) for side in sides}
  seconds = report.interleave(
    {side.name: functools.partial(timed, side, sentences, settings[side][0]) for side in sides}, rounds
  )
  texts = found[sides[0]].texts
  return [
    {
      "beam": setting.beam,
      "side": side.name,
      "batch": str(setting),
      "sentences/s": len(sentences) / report.median(seconds[side.name]),
      "tokens/s": found[side].tokens / report.median(seconds[side.name]),
      "spread": report.spread(seconds[side.name]),
      "ours is": report.ratio(seconds[side.name], seconds[OURS]),
      "equal to ours": sum(map(str.__eq__, found[side].texts, texts)) / len(sentences),
      "first use, s": first_use,
      "start-up, s": side.startup,
    }
    for side in sides
    for setting, first_use in [settings[side]]
  ]


def timed(side: Side, sentences: Sequence[int], setting: Setting) -> float:
  return side.translate(sentences, setting).seconds


def check_agreement(rows: Sequence[dict[str, Any]], share: float) -> None:
  """Ends the program where a side does not compute the same function."""
  for row in rows:
    if row["beam"] == 1 and row["equal to ours"] < share:
      sys.exit(
        f"{row['side']} gives another greedy translation than ours for {1 - row['equal to ours']:.1%} of the "
        "sentences: its weights are not the same"
      )


if __name__ == "__main__":
  main()
