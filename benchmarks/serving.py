"""The server of `transformer-jax serve` under load.

    python benchmarks/serving.py speed --workdir RUN --data FILE.en [--peers DIR] [--json FILE]
    python benchmarks/serving.py clients --workdir RUN --data FILE.en [--clients 64] [--seconds 60]
    python benchmarks/serving.py memory --workdir RUN --data FILE.en [--requests 10000]

It needs the extra `serve`, and `speed` without --alone the extra `ctranslate2`. RUN is a run folder of train.py, and
FILE, plain or .xz, has one source sentence per line. Clients are threads of this process. Each has a connection to
127.0.0.1 that it keeps, and sends a sentence when the one before is answered. The server is a separate process on the
same cores.

`speed` gives requests per second and the median and 99th percentile of the latency, for each number of clients, against
the same HTTP front end with CTranslate2 as its engine. CTranslate2 has the weights of the run in float32, and gets all
requests that wait in one call, as our engine does. The rows `--batch-size N` are of our server with this flag. The
servers take turns in each round, and the others are idle.

`clients` checks that every answer equals that of `transformer-jax translate`, and that none is lost. `memory` gives the
server's resident memory before and after, once --warm-up requests have been answered.
"""

import argparse
import functools
import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import decoding_speed
import numpy as np
import peers
import programs
import report
from side import Side

from transformer_jax.commands.serve import BATCH_SIZE_ON_CPU
from transformer_jax.data.text import lines_of
from transformer_jax.runs import run_folder

ROOT = Path(__file__).resolve().parent.parent
CT2 = "CTranslate2"
BATCH_SIZE = ["--batch-size", str(BATCH_SIZE_ON_CPU)]  # as the server chooses it


class Server(NamedTuple):
  """A server in a process of its own."""

  name: str
  process: subprocess.Popen
  port: int

  def memory(self) -> float:
    """The resident memory in MB."""
    found = re.search(r"^VmRSS:\s*(\d+)", Path(f"/proc/{self.process.pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


class Sent(NamedTuple):
  """A request that was sent: the number of its sentence, its seconds, and the text of the answer."""

  sentence: int
  seconds: float
  text: str


def main() -> None:
  args = parse()
  args.workdir = os.fspath(run_folder.folder_of(args.workdir))  # absolute, as the servers run in another folder
  args.lines = list(itertools.islice(lines_of(args.data), args.sentences))
  args.run(args)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="The server under load.", allow_abbrev=False)
  commands = parser.add_subparsers(dest="command", required=True)

  def command(name: str, run: Callable[[argparse.Namespace], None], clients: Any, seconds: float) -> Any:
    added = commands.add_parser(name, allow_abbrev=False)
    added.set_defaults(run=run)
    add = added.add_argument
    add("--workdir", required=True, metavar="DIR", help="a run folder of train.py")
    add("--data", required=True, metavar="FILE", help="sentences to translate, one per line, plain or .xz")
    add("--sentences", type=int, default=500, metavar="N", help="the first of the file (default 500)")
    add("--clients", type=int, nargs="+", default=clients, metavar="N", help=f"(default {clients})")
    add("--seconds", type=float, default=seconds, metavar="S", help=f"of each measurement (default {seconds:g})")
    add("--requests", type=int, default=10_000, metavar="N", help="at most, in each measurement (default 10,000)")
    report.add_arguments(added, with_peers=name == "speed")
    return added

  speed_command = command("speed", speed, [1, 8, 64], 20.0)
  speed_command.add_argument("--rounds", type=int, default=3, metavar="N", help="(default 3)")
  speed_command.add_argument("--alone", action="store_true", help="without CTranslate2")
  speed_command.add_argument(
    "--batch-sizes", type=int, nargs="*", default=[1, 16], metavar="N", help="of further servers of ours (default 1 16)"
  )
  command("clients", clients, [64], 60.0)
  memory_command = command("memory", memory, [8], 3600.0)
  memory_command.add_argument("--warm-up", type=int, default=2000, metavar="N", help="requests before (default 2,000)")
  engine = commands.add_parser(CT2, help="the server with CTranslate2, which `speed` starts")
  engine.set_defaults(run=serve_ctranslate2, sentences=sys.maxsize)
  for name in ("--workdir", "--data", "--python", "--folder"):
    engine.add_argument(name, required=True)
  return parser.parse_args()


def speed(args: argparse.Namespace) -> None:
  """Requests per second and latencies of all servers."""
  with tempfile.TemporaryDirectory() as folder:
    commands = {"transformer_jax": ours(args)}
    commands |= {f"--batch-size {size}": [*ours(args), "--batch-size", str(size)] for size in args.batch_sizes}
    versions = {}
    if not args.alone:
      python = peers.python(CT2, peers.CTRANSLATE2, args.peers)
      versions[CT2] = peers.versions(python, "ctranslate2")
      commands[CT2] = theirs(args, Path(folder), python)
    with servers(commands) as started:
      for server in started:
        load(server, args.lines, max(args.clients), requests=2 * len(args.lines))  # compiles, and fills caches
      rows = [row for count in args.clients for row in rows_of(started, count, args)]
  report.finish("serving_speed", rows, args.json, peers=versions)


def rows_of(started: Sequence[Server], count: int, args: argparse.Namespace) -> list[dict[str, Any]]:
  """The rows of the table for one number of clients."""
  found: dict[str, list[Sent]] = {server.name: [] for server in started}

  def measure(server: Server) -> float:
    begun = time.perf_counter()
    sent = load(server, args.lines, count, requests=args.requests, seconds=args.seconds)
    found[server.name] += sent
    return len(sent) / (time.perf_counter() - begun)

  rates = report.interleave({server.name: functools.partial(measure, server) for server in started}, args.rounds)
  texts = {sent.sentence: sent.text for sent in found[started[0].name]}
  rows = []
  for server in started:
    p50, p99 = np.percentile([sent.seconds for sent in found[server.name]], [50, 99])
    equal = [sent.text == texts[sent.sentence] for sent in found[server.name] if sent.sentence in texts]
    rows.append(
      {
        "clients": count,
        "engine": server.name,
        "requests/s": report.median(rates[server.name]),
        "spread": report.spread(rates[server.name]),
        "p50, ms": 1000 * float(p50),
        "p99, ms": 1000 * float(p99),
        "requests": len(found[server.name]),
        "equal to ours": float(np.mean(equal)),
      }
    )
  return rows


def clients(args: argparse.Namespace) -> None:
  """Compares each answer with the output of `translate`."""
  done = subprocess.run(
    [sys.executable, "-m", "transformer_jax", "translate", "--workdir", args.workdir, *BATCH_SIZE],
    input="".join(f"{line}\n" for line in args.lines),
    stdout=subprocess.PIPE,
    text=True,
    check=True,
    cwd=ROOT,
  )
  expected = done.stdout.split("\n")[:-1]
  rows = []
  with servers({"transformer_jax": ours(args)}) as [server]:
    for count in args.clients:
      sent = load(server, args.lines, count, requests=args.requests, seconds=args.seconds)
      wrong = sum(one.text != expected[one.sentence] for one in sent)
      rows.append({"clients": count, "answers": len(sent), "different from translate": wrong})
  report.finish("serving_clients", rows, args.json)
  sys.exit(any(row["different from translate"] for row in rows))


def memory(args: argparse.Namespace) -> None:
  """The growth of the server's memory."""
  lines, rows = args.lines[:100], []
  with servers({"transformer_jax": ours(args)}) as [server]:
    for count in args.clients:
      load(server, lines, count, requests=args.warm_up)
      before = server.memory()
      sent = load(server, lines, count, requests=args.requests, seconds=args.seconds)
      after = server.memory()
      rows.append(
        {"clients": count, "requests": len(sent), "MB before": before, "MB after": after, "growth, MB": after - before}
      )
  report.finish("serving_memory", rows, args.json)


def ours(args: argparse.Namespace) -> list[str]:
  """The command of our server."""
  return [sys.executable, "-m", "transformer_jax", "serve", "--workdir", args.workdir, "--port", "0"]


def theirs(args: argparse.Namespace, folder: Path, python: Path) -> list[str]:
  """The command of the server with CTranslate2; writes the weights and the sentences for it."""
  (folder / "lines").write_text("".join(f"{line}\n" for line in args.lines))
  files = ["--workdir", args.workdir, "--data", str(folder / "lines"), "--folder", str(folder)]
  return [sys.executable, str(ROOT / "benchmarks" / "serving.py"), CT2, "--python", str(python), *files]


def serve_ctranslate2(args: argparse.Namespace) -> None:
  """Our front end; CTranslate2 has an environment of its own, and knows the sentences by their numbers."""
  from transformer_jax import runs
  from transformer_jax.decoding.translation import Translation
  from transformer_jax.serve import server
  from transformer_jax.serve.app import Served, application
  from transformer_jax.serve.batcher import Batcher
  from transformer_jax.serve.libretranslate import Languages

  folder = Path(args.folder)
  exported = argparse.Namespace(data=args.data, sentences=sys.maxsize, device="cpu", sides=["CTranslate2"])
  tokenizer, job = decoding_speed.prepare(args.workdir, exported, folder)
  side = Side(CT2, args.python, "decoders/ct2.py", folder, ["CTranslate2"])
  numbers = {line: i for i, line in enumerate(job["lines"])}

  def translate(lines: Sequence[str], options: Any, warn: object) -> list[list[Translation]]:
    sentences, beam = [numbers[line] for line in lines], options.beam_size
    batch = max(2, -(-len(lines) // job["threads"]))  # one for each core
    found = side.ask(sentences=sentences, beam=beam, batch=batch, batch_a_core=len(lines) > 1)
    return [[Translation(tokenizer.decode(tokens), 0.0, 0.0, len(tokens) + 1)] for tokens in found["found"]]

  def attention(source: str, target: str) -> Any:
    raise NotImplementedError

  config = runs.open(args.workdir).config
  languages = Languages(config.data.source_language, config.data.target_language)
  decode, batcher = config.decode, Batcher()
  served = Served(CT2, translate, attention, batcher, languages, decode.beam_size, decode.length_penalty)
  with server.bind("127.0.0.1", 0) as bound:
    server.server(application(served)).run(sockets=[bound])
  batcher.close()
  side.close()


@contextmanager
def servers(commands: dict[str, list[str]]) -> Iterator[list[Server]]:
  """Starts each command; at the end every server must end with status 0 after SIGTERM."""
  started: list[Server] = []
  try:
    for name, command in commands.items():
      process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
      started.append(Server(name, process, port_of(process)))
    yield started
  finally:
    for server in started:
      server.process.send_signal(signal.SIGTERM)
    failed = [server for server in started if server.process.wait()]
    if failed:
      sys.exit("; ".join(f"{server.name} ended with {server.process.returncode}" for server in failed))


def port_of(process: subprocess.Popen) -> int:
  """The port that a server says on standard error; the rest of it is shown."""
  assert process.stderr
  for line in process.stderr:
    print(line, end="", file=sys.stderr)
    if found := re.search(r"the page is at http://127\.0\.0\.1:(\d+)/", line):
      threading.Thread(target=lambda rest: sys.stderr.writelines(rest), args=(process.stderr,), daemon=True).start()
      return int(found[1])
  sys.exit("the server ended before it served")


def load(server: Server, lines: Sequence[str], count: int, *, requests: int, seconds: float = 3600.0) -> list[Sent]:
  """Sends at most `requests` from `count` clients, for at most `seconds`; each must be answered."""
  end, numbers, sent, failed = time.monotonic() + seconds, iter(range(requests)), [], []

  def client() -> None:
    try:
      connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
      connection.request("GET", "/languages")
      [target] = json.loads(connection.getresponse().read())[0]["targets"]
      for number in numbers:  # `next` of a range's iterator is one step of the interpreter
        if time.monotonic() >= end:
          break
        sent.append(one_request(connection, lines, number % len(lines), target))
      connection.close()
    except Exception as error:
      failed.append(error)

  threads = [threading.Thread(target=client) for _ in range(count)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  if failed:
    sys.exit(f"{len(failed)} clients were not answered; the first: {failed[0]!r}")
  return sent


def one_request(connection: http.client.HTTPConnection, lines: Sequence[str], sentence: int, target: str) -> Sent:
  body = json.dumps({"q": lines[sentence], "source": "auto", "target": target})
  begun = time.perf_counter()
  connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
  response = connection.getresponse()
  answer = json.loads(response.read())
  seconds = time.perf_counter() - begun
  if response.status != 200:
    raise RuntimeError(f"status {response.status}: {answer}")
  return Sent(sentence, seconds, answer["translatedText"])


if __name__ == "__main__":
  programs.run(main)
