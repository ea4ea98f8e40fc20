"""Sentences and tokens per second in translation, against JoeyNMT, Hugging Face transformers and CTranslate2.

    python benchmarks/decoding_speed.py --workdir RUN [--workdir LARGER_RUN] --data FILE.en [--peers DIR] [--json FILE]
    python benchmarks/decoding_speed.py --workdir RUN --data FILE.en --sides --checkout OTHER --rounds 20

RUN is a run folder of train.py, and FILE, plain or .xz, has one source sentence per line. All sides have **the same
weights**: transformers and CTranslate2 load what `transformer-jax export` writes, for which this project's environment
needs its extra `ctranslate2`, and `decoders/joey.py` writes the run's weights into JoeyNMT. So all compute the same
function, end by EOS and nearly always give the same translation. A column of the table has the share of translations
equal to ours. If it is below --agree in greedy search, the program fails, as the sides would not be comparable. With a
beam more translations may differ, as the rules of the libraries differ slightly.

"CTranslate2 int8" has matmuls of 8-bit integers and "CTranslate2 bfloat16" those of bfloat16, and so other translations
now and then. Ours computes in the type of the run, config.model.dtype. All else is float32.

The choices: all cores and huge pages on each side; JoeyNMT with as many threads as cores and its own `search`;
transformers with its default attention (`sdpa`) and cache; transformers and CTranslate2 with all cores on one batch or
one batch per core, whichever is faster, where transformers has a process on each core. A search with a beam ends when
as many hypotheses as the beam has have ended: CTranslate2's `patience=1`, transformers' `early_stopping=True`, and ours
with `patience=1`. "exact search" is ours with `patience=0`, which continues until no better hypothesis is possible.
JoeyNMT continues until its whole beam has ended, and has only GNMT's length penalty. A translation may have
config.decode.extra_length more tokens than its source; with the peers, than the longest source of the batch; with
CTranslate2, than the longest source of all. Sentences are sorted by length on each side. Ours translates text to text.
The peers translate tokens to tokens, so their time excludes the tokenizer and ours includes it.

"batch 1" passes one sentence per call, as an interactive service does. "best batch" passes all sentences in one call,
with the batch size of --batches that was fastest on a sample of the sentences. Our batch size is the number of
sentences decoded side by side, and ours may also choose it itself ("own"). Two times are reported separately and are
not part of the rates: start-up, until the weights are loaded, and first use, the first pass over the sample minus the
second (compilation, if there is any). Before the rounds each side translates all sentences once, and this time is
reported nowhere. Tokens are those of the outputs, with one EOS each. Each side is one process for each run folder and
idle while another is measured; the sides take turns in each round. "speedup of ours" is how many times as fast ours is,
as the median over the rounds, and "95%" its bounds by a bootstrap over the rounds.

The second command compares two commits: OTHER is a checkout of this project at another commit, and `--sides` without
names leaves the peers out.
"""

import argparse
import functools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import peers
import programs
import report
import text
from side import Side, checkouts

from transformer_jax import registry
from transformer_jax.config import Config, LengthPenalty
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.special_tokens import EOS

OURS = "transformer_jax"
HERE = Path(__file__).resolve().parent.parent
BEAMS = (4, 1)


class Peer(NamedTuple):
  """A library to compare with.

  Attributes:
    program: the program that decodes with it.
    requirements: the packages to install.
    packages: the packages whose versions are reported.
    exported: the format of `transformer-jax export` that the program loads, and the format's option; or nothing.
    exact: whether it computes in float32.
  """

  program: str
  requirements: tuple[tuple[str, ...], ...]
  packages: tuple[str, ...]
  exported: dict[str, str]
  exact: bool = True


_CTRANSLATE2 = ("decoders/ct2.py", peers.CTRANSLATE2, ("ctranslate2",))
PEERS = {
  "JoeyNMT": Peer("decoders/joey.py", peers.JOEYNMT, ("joeynmt", "torch"), {}),
  "transformers": Peer("decoders/marian.py", peers.TRANSFORMERS, ("transformers", "torch"), {"to": "marian-hf"}),
  "CTranslate2": Peer(*_CTRANSLATE2, {"to": "ctranslate2"}),
  "CTranslate2 int8": Peer(*_CTRANSLATE2, {"to": "ctranslate2", "quantization": "int8"}, exact=False),
  "CTranslate2 bfloat16": Peer(*_CTRANSLATE2, {"to": "ctranslate2", "quantization": "bfloat16"}, exact=False),
  "CTranslate2 float16": Peer(*_CTRANSLATE2, {"to": "ctranslate2", "quantization": "float16"}, exact=False),
}
ON_GPU = ("CTranslate2 float16", "CTranslate2 bfloat16")  # it refuses the second on most CPUs

# The keys that may differ from the paper's model: they do not change a peer's result, or each peer gets their values.
SIZES = {
  *("vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions", "dtype"),
  *("dropout", "attention_dropout", "fused_attention"),
}


class Setting(NamedTuple):
  """The arguments of a side's call besides the sentences; `options` are those of its `translate`."""

  beam: int
  batch: int
  options: dict[str, Any]

  def __str__(self) -> str:
    return (str(self.batch) if self.batch else "own") + (", a batch per core" if "batch_a_core" in self.options else "")


class Entrant(NamedTuple):
  """A side with a setting.

  Attributes:
    name: the name in the table.
    first_use: the seconds of the setting's first use minus those of the second.
  """

  name: str
  side: Side
  setting: Setting
  first_use: float


def main() -> None:
  args = parse()
  programs = {
    name: ("decoders/ours.py", sys.executable, checkout)
    for name, checkout in {OURS: HERE, **checkouts(args.checkout)}.items()
  }
  versions = {}
  for name in args.sides:
    peer = PEERS[name]
    python = peers.python(name.split()[0], peer.requirements, args.peers)
    programs[name] = (peer.program, str(python), HERE)
    versions[name] = peers.versions(python, *peer.packages)
  rows = [row for workdir in args.workdir for row in measure_run(workdir, programs, args)]
  report.finish("decoding_speed", rows, args.json, peers=versions)
  check_agreement(rows, args.agree)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of translation.", allow_abbrev=False)
  add = parser.add_argument
  add("--workdir", action="append", required=True, metavar="DIR", help="a run folder of train.py; may be repeated")
  add("--data", required=True, metavar="FILE", help="sentences to translate, one per line, plain or .xz")
  of_cpu = [name for name in PEERS if name not in ON_GPU]
  add("--sides", nargs="*", default=of_cpu, choices=PEERS, metavar="NAME", help="peers (default: all but 16-bit)")
  add("--checkout", nargs="+", default=[], metavar="DIR", help="of this project, measured beside this one")
  add("--sentences", type=int, default=sys.maxsize, metavar="N", help="of the file, chosen at random (default: all)")
  add("--singly", type=int, default=100, metavar="N", help="sentences, of all lengths, for batch 1 (default 100)")
  add("--sample", type=int, default=200, metavar="N", help="sentences that the best batch is chosen on (default 200)")
  add("--batches", type=int, nargs="+", default=[16, 64, 256], metavar="N", help="sizes tried (default 16 64 256)")
  add("--rounds", type=int, default=3, metavar="N", help="(default 3)")
  add("--agree", type=float, default=0.98, metavar="SHARE", help="of equal greedy translations needed (default 0.98)")
  add("--device", default="cpu", choices=["cpu", "cuda"], help="of all sides (default cpu)")
  report.add_arguments(parser)
  return parser.parse_args()


def measure_run(
  workdir: str, programs: dict[str, tuple[str, str, Path]], args: argparse.Namespace
) -> list[dict[str, Any]]:
  """The table's rows for one run folder."""
  with tempfile.TemporaryDirectory() as scratch:
    folder = Path(scratch)
    tokenizer, job = prepare(workdir, args, folder)
    sides, startup = [], {}
    for name, (program, python, checkout) in programs.items():
      start = time.perf_counter()
      # Each side has its own cache, so that nothing is compiled before its first use.
      compiled = {"JAX_COMPILATION_CACHE_DIR": str(folder / f"compiled by {name}"), "JAX_PLATFORMS": args.device}
      sides.append(Side(name, python, program, folder, [name], checkout=checkout, **compiled))
      startup[name] = time.perf_counter() - start
    # The longest come first, so that an evenly spread part has all shapes of the whole.
    everything = sorted(range(len(job["sources"])), key=lambda i: -len(job["sources"][i]))
    rows = []
    for beam in BEAMS:
      for mode, sentences, sample, batches in (
        ("batch 1", spread(everything, args.singly), min(args.singly, 20), [1]),
        ("best batch", everything, args.sample, args.batches),
      ):
        report.progress(f"beam {beam}, {mode}")
        entrants = enter(sides, beam, spread(sentences, sample), batches)
        rows += [
          {"model": f"{job['layers']} layers of {job['d_model']}", "mode": mode, "beam": beam}
          | row
          | {"start-up, s": startup[entrant.side.name]}
          for entrant, row in zip(entrants, measure(entrants, sentences, tokenizer, args.rounds), strict=True)
        ]
    for side in sides:
      side.close()
  return rows


def prepare(workdir: str, args: argparse.Namespace, folder: Path) -> tuple[Tokenizer, dict[str, Any]]:
  """Writes the weights and sentences for all sides; a format is in the folder of its side's name."""
  from transformer_jax import runs
  from transformer_jax.interchange.export import export
  from transformer_jax.model.params import numpy_by_name

  run = runs.open(workdir)
  require_plain(run.config, workdir)
  for name in args.sides:
    if PEERS[name].exported:
      export(run, folder / name, **PEERS[name].exported)
  config, params, tokenizer, _ = run.model("translate")
  lines = chosen_lines(args)
  sources = [[*tokens, EOS] for tokens in tokenizer.source.encode_batch(lines)]
  longest = max(map(len, sources))
  if longest > config.decode.max_source_length or not all(line.strip() for line in lines):
    sys.exit(f"{args.data} has empty lines, or lines of more than {config.decode.max_source_length} tokens: drop them")
  np.savez(folder / "params.npz", **numpy_by_name(params))
  job = {
    "workdir": os.path.abspath(workdir),
    "lines": lines,
    "sources": sources,
    "layers": config.model.num_layers,
    "d_model": config.model.d_model,
    "heads": config.model.num_heads,
    "length_penalty": config.decode.length_penalty,
    "extra_length": config.decode.extra_length,
    "most_tokens": longest + config.decode.extra_length,
    "threads": len(os.sched_getaffinity(0)),
    "device": args.device,
  }
  (folder / "job.json").write_text(json.dumps(job))
  return tokenizer, job


def chosen_lines(args: argparse.Namespace) -> list[str]:
  """The sentences to translate: as many of the file as --sentences says, in their order."""
  lines = text.lines(args.data)
  if args.sentences >= len(lines):
    return lines
  # At random: every second line of a file may be unlike the others.
  return [lines[i] for i in sorted(random.Random(0).sample(range(len(lines)), args.sentences))]


def require_plain(config: Config, workdir: str) -> None:
  """Ends the program unless the run is of the paper's model, the only one that all peers can compute."""
  if type(config.model) is not ModelConfig:
    kind = registry.name_of(config.model)
    sys.exit(f"{workdir} has a {kind} model, which not every peer can compute: choose another run")
  given = {name: value for name, value in vars(config.model).items() if name not in SIZES}
  width = config.model.d_model // config.model.num_heads
  papers = {name: (value,) for name, value in vars(ModelConfig()).items()} | {
    "d_k": (None, width),
    "d_v": (None, width),
  }
  if others := [f"config.model.{name}={value}" for name, value in given.items() if value not in papers[name]]:
    sys.exit(f"{workdir} has {', '.join(others)}, which not every peer can compute: choose another run")
  if config.decode.penalty is not LengthPenalty.FAIRSEQ:
    print("note: this run's length penalty is GNMT's, which CTranslate2 and transformers do not have")


def spread(sentences: Sequence[int], count: int) -> list[int]:
  """`count` sentences, evenly spread, or all."""
  count = min(count, len(sentences))
  return [sentences[i * len(sentences) // count] for i in range(count)]


def enter(sides: Sequence[Side], beam: int, sample: Sequence[int], batches: Sequence[int]) -> list[Entrant]:
  """Each side with the fastest of its settings, ours first."""
  entrants = [fastest(OURS, sides[0], settings(OURS, beam, batches), sample)]
  for side in sides[1:]:
    same = None if side.name in PEERS else [entrants[0].setting]  # two commits are compared at the same work
    entrants.append(fastest(side.name, side, same or settings(side.name, beam, batches), sample))
  if beam > 1:
    exact = entrants[0].setting._replace(options={"patience": 0})
    entrants.insert(1, fastest(f"{OURS}, exact search", sides[0], [exact], sample))
  return entrants


def settings(name: str, beam: int, batches: Sequence[int]) -> list[Setting]:
  """The settings of a side among which the fastest is chosen."""
  if name == OURS:
    own = [] if batches == [1] else [0]
    return [Setting(beam, size, {"patience": 1}) for size in [*own, *batches]]
  found = [Setting(beam, size, {}) for size in batches]
  if name.startswith("CTranslate2") or name == "transformers":
    found += [Setting(beam, size, {"batch_a_core": True}) for size in batches]
  return found


def fastest(name: str, side: Side, settings: Sequence[Setting], sample: Sequence[int]) -> Entrant:
  """The fastest setting on the sample; each is timed after its first use."""
  tried = []
  for setting in settings:
    first, second = (ask(side, sample, setting)["seconds"] for _ in range(2))
    tried.append((second, Entrant(name, side, setting, max(0.0, first - second))))
  return min(tried, key=lambda one: one[0])[1]


def ask(side: Side, sentences: Sequence[int], setting: Setting) -> dict[str, Any]:
  return side.ask(sentences=sentences, beam=setting.beam, batch=setting.batch, **setting.options)


def measure(
  entrants: Sequence[Entrant], sentences: Sequence[int], tokenizer: Tokenizer, rounds: int
) -> list[dict[str, Any]]:
  """The rows of the table, one per entrant, from passes over the sentences in turns."""
  found: dict[str, list[Any]] = {}

  def translate(entrant: Entrant) -> float:
    answer = ask(entrant.side, sentences, entrant.setting)
    found[entrant.name] = answer["found"]
    return answer["seconds"]

  for entrant in entrants:  # what the sample did not need is compiled
    translate(entrant)
  seconds = report.interleave({entrant.name: functools.partial(translate, entrant) for entrant in entrants}, rounds)
  outputs = {
    entrant.name: [outcome(entrant, translation, tokenizer) for translation in found[entrant.name]]
    for entrant in entrants
  }
  ours = outputs[OURS]
  return [
    {
      "side": name,
      "batch": str(setting),
      "sentences/s": len(sentences) / report.median(seconds[name]),
      "tokens/s": sum(tokens for _, tokens in outputs[name]) / report.median(seconds[name]),
      "spread": report.spread(seconds[name]),
      "speedup of ours": report.ratio(seconds[name], seconds[OURS]),
      "95%": report.bounds(seconds[name], seconds[OURS]),
      "equal to ours": sum(a[0] == b[0] for a, b in zip(outputs[name], ours, strict=True)) / len(sentences),
      "first use, s": first_use,
    }
    for name, _, setting, first_use in entrants
  ]


def outcome(entrant: Entrant, translation: Any, tokenizer: Tokenizer) -> tuple[str, int]:
  """A translation's text, and its tokens with EOS."""
  if entrant.side.name not in PEERS:
    text, tokens = translation
    return text, tokens
  return tokenizer.decode(translation), len(translation) + 1


def check_agreement(rows: Sequence[dict[str, Any]], share: float) -> None:
  """Ends the program if a side does not compute the same function."""
  for row in rows:
    exact = row["side"] not in PEERS or PEERS[row["side"]].exact
    if exact and row["beam"] == 1 and row["equal to ours"] < share:
      sys.exit(
        f"{row['side']} gives another greedy translation than ours for {1 - row['equal to ours']:.1%} of the "
        "sentences: its weights are not the same, or texts without an end have other limits; see --agree"
      )


if __name__ == "__main__":
  programs.run(main)
