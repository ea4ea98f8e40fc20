"""The training loop: it updates, logs, evaluates, saves, resumes and stops."""

import dataclasses
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress

import jax
from etils import epath

from transformer_jax.config import BestBy, Config, serialization
from transformer_jax.data import tokenizers
from transformer_jax.data.batches import Batches, HostBatches
from transformer_jax.data.packed_ahead import BatchesPackedAhead, PackPart
from transformer_jax.data.row_cache import PackedRows, cache_of
from transformer_jax.data.text import existing
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.word_vectors import WordVectors, read_vectors
from transformer_jax.runs import checkpoint, checkpoint_files, init_from, locks, resume, run_folder
from transformer_jax.runs.checkpoint_files import LOSS, SCORE, rank
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.errors import RunError, writing
from transformer_jax.runtime.process import cores, handled
from transformer_jax.runtime.progress import Progress, doing, say
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.wording import counted
from transformer_jax.trainer import checks
from transformer_jax.trainer.early_stopping import EarlyStopping
from transformer_jax.trainer.metrics import MetricsAccumulator, MetricsLog, append
from transformer_jax.trainer.summary import LOG, next_command, planned_and_seen, short_path
from transformer_jax.trainer.training_text import training_text
from transformer_jax.training.pretrained_embeddings import with_vectors
from transformer_jax.training.step import (
  TrainState,
  abstract_state,
  begin_with,
  further_losses,
  init_state,
  update_on_devices,
)
from transformer_jax.training.sums import total_loss
from transformer_jax.training.task import Task, task_of

_SECONDS_TO_ASK = 1.0  # hosts that wait for rows ask each other for a signal as often


def train(config: Config, workdir: str | os.PathLike, *, accept_edits: bool = False) -> None:
  """Trains up to `config.train.steps`, from the first step or from the last checkpoint in `workdir`.

  On several hosts each host calls it, but only the main host uses `workdir`. `accept_edits` is as in `runs.open`; it
  applies to this run and to the run in `config.train.init_from`. The sizes are those of `config.model`, also with
  `init_from`; `runs.init_from.config_from(runs.open(OTHER), config)` gives a config with the sizes of another run.

  Raises:
    InputError: the config, the data or the folder cannot be used, or another process writes in the folder.
    RunError: the loss is not finite, or the disk is full.
    FloatingPointError: with `config.debug`, at the operation that computed the first NaN of an update or a validation
      loss.
    SystemExit: status 130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP, once the state is saved.
  """
  with hosts.collective_errors():
    config = serialization.validated(config)  # its values may have been changed since it was made
    config.require_positions()
  with jax.debug_nans(True) if config.debug else nullcontext():
    checks.require_equal_hosts(config)
    with hosts.collective_errors():
      folder = run_folder.folder_of(workdir)
    with locks.exclusive_lock(folder):
      _train(config, folder, accept_edits)


def _train(config: Config, workdir: epath.Path, accept_edits: bool) -> None:
  with ExitStack() as stack:
    with _interruption_reported():
      trainer = stack.enter_context(closing(_prepared(config, workdir, accept_edits)))
    trainer.run()
  say(f"try it:\n  {next_command(config, workdir, best=trainer.stopped_early)}")


@contextmanager
def _interruption_reported() -> Iterator[None]:
  """Reports that Ctrl-C ends the body, in which nothing is trained yet.

  For programs in Python, and the command as the first process of a container. Otherwise the command lets Ctrl-C end it
  at once, also outside of Python, and says nothing.
  """
  try:
    yield
  except KeyboardInterrupt:
    say(f"stopped by {signal.SIGINT.name} before this start made an update:\n  give the same command again")
    raise


def _prepared(config: Config, workdir: epath.Path, accept_edits: bool) -> "Trainer":
  """The trainer of a run that is begun in `workdir`, or goes on there."""
  task = task_of(config.model)
  tokenizer, content, vectors = None, b"", None
  with hosts.collective_errors():
    checks.require_trainable(config, task)
    begun = resume.run_to_go_on_with(workdir, config, accept_edits=accept_edits) if devices.is_main_host() else None
    checks.require_texts_exist(config)
    checks.warn(config)
    if devices.is_main_host():
      tokenizer, vectors = (begun.tokenizer, None) if begun else _new_vocabulary(config, accept_edits)
      content = tokenizers.to_bytes(tokenizer)
  content = hosts.broadcast_bytes(content)
  with hosts.collective_errors():
    tokenizer = tokenizer or tokenizers.from_bytes(content)
    with doing("packing the training text"):
      packed, pack = training_text(config, task, tokenizer)
    say(f"training on {packed.report.describe(config.data.row_length)}")
    if config.model.translates:
      checks.warn_of_skipped(packed.report)
    say(f"computing on {_devices_in_words()}")
    history = resume.history_of(begun, packed.fingerprint) if begun else []
    texts = checks.digests_of_texts(config, task, tokenizer, packed) if hosts.count() > 1 else {}
  hosts.require_equal(texts, "give all hosts the same text")
  now = _provenance(packed)
  _report_differences(history, now)
  trainer = Trainer(config, task, workdir, tokenizer, packed, pack, vectors, accept_edits)
  try:
    with hosts.collective_errors():
      run_folder.begin_run(workdir, config, tokenizer, [*history, now | trainer.begun_with])
  except BaseException:
    trainer.close()
    raise
  return trainer


def _devices_in_words() -> str:
  """The devices of a run, such as `8 devices (TPU v4) of 2 hosts`."""
  of_hosts = f" of {hosts.count()} hosts" if hosts.count() > 1 else ""
  return f"{counted(devices.device_count(), 'devices')} ({devices.describe()['kind']}){of_hosts}"


def _report_differences(history: list[JsonObject], now: JsonObject) -> None:
  """Reports a change of the machine, of packages or of JAX's settings since the last start of the run."""
  if changed := _changed("versions", history, now):
    order = ", and with grain the order of rows" if "grain" in changed else ""
    say(f"packages have changed: rounding may differ{order}\n  {', '.join(changed.values())}")
  if changed := _changed("settings", history, now):
    say(f"settings of JAX have changed: results will differ\n  {', '.join(changed.values())}")
  if history and history[-1].get("machine") != now["machine"]:
    before = history[-1].get("machine", "an unknown machine")
    was_and_is = f"  before {before}\n  now    {now['machine']}"
    say(f"another machine, cores or devices: results are equal up to rounding only\n{was_and_is}")


def _changed(group: str, history: list[JsonObject], now: JsonObject) -> dict[str, str]:
  """Name -> how it has changed, of the names that a group of values had at the last start."""
  before, after = history[-1].get(group) if history else {}, now.get(group, {})
  before = before if isinstance(before, dict) else {}  # older runs have none
  both = [name for name in after if name in before and before[name] != after[name]]
  return {name: f"{name} {before[name]} is now {after[name]}" for name in both}


def _new_vocabulary(config: Config, accept_edits: bool) -> tuple[Tokenizer, WordVectors | None]:
  """The vocabulary of a new run, and the vectors of `config.train.embeddings`; None if that is empty."""
  file = config.train.embeddings
  if file:  # a vocabulary may take long to learn
    existing(file)
  other = init_from.open_other(config, accept_edits=accept_edits)
  tokenizer = init_from.tokenizer_to_begin_with(config, other)
  if not file:
    return tokenizer, None
  with doing(f"reading the vectors in {file}"):
    found = read_vectors(file, tokenizer, config.model.d_model)
  say(f"{len(found.pieces):,} of {tokenizer.vocab_size:,} tokens have a vector in {file}")
  return tokenizer, found


class Trainer:
  """This process' part of a training run, from its start to its end."""

  def __init__(
    self,
    config: Config,
    task: Task,
    workdir: epath.Path,
    tokenizer: Tokenizer,
    packed: PackedRows,
    pack: PackPart | None,
    vectors: WordVectors | None,
    accept_edits: bool,
  ):
    self._config, self._task, self._accept_edits = config, task, accept_edits
    self._stopping = EarlyStopping(config.train.patience)
    self.begun_with: JsonObject = {}  # for the provenance
    self._step = update_on_devices(config, task)
    self._losses = further_losses(config, task)
    abstract = abstract_state(config, task)
    # The state is placed when it is made: if it moved later, the step would be compiled twice.
    init = jax.jit(functools.partial(init_state, config, task), out_shardings=devices.on_all_devices())
    with hosts.collective_errors():
      # Before the compiling, as this imports grain: meanwhile grain replaces Python's import for all threads.
      self._batches = _batches(config, packed, pack)
    batch = devices.shard(self._batches.empty())
    with doing("compiling the update"), devices.compile_async(self._step, abstract, batch):
      with hosts.collective_errors():
        self._checkpoints = checkpoint.Checkpoints(workdir, config.train.keep)
        with doing("packing the validation and test text"):
          self._validation = task.validation(config, task, tokenizer)
      with doing("restoring the last checkpoint"):
        restored = self._checkpoints.restore(abstract)
      self._state, interval = (
        self._resumed(restored, workdir) if restored else (self._begun(init(), vectors), MetricsAccumulator())
      )
    with hosts.collective_errors():
      self._metrics = MetricsLog(workdir, int(self._state.step), interval)
    made = interval or MetricsAccumulator()  # before this start
    self._workdir, self._updates, self._seconds = workdir, -made.updates, -made.seconds
    self._validated = ""  # the results of the last validation, in words

  def _resumed(
    self, restored: checkpoint.Restored, workdir: epath.Path
  ) -> tuple[TrainState, MetricsAccumulator | None]:
    step, log = int(restored.state.step), restored.log or {}
    if restored.log is None:
      say(
        f"the checkpoint of step {step} has no {checkpoint_files.LOG}: what it would tell begins anew,\n"
        "  early stopping and the means since the last line of the log"
      )
    try:
      if stopping := log.get("stopping"):
        self._stopping.restore(stopping)
      if not self._stopping.is_over:  # otherwise `run` says that it is
        say(self._where(step))
      self._batches.begin_at(log.get("place", {}))
      return restored.state, MetricsAccumulator.from_dict(log, self._losses) if log else None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
      numbers = checkpoint_files.folder_of(workdir, step) / checkpoint_files.LOG
      raise RunError(
        f"{numbers} does not have the numbers that a run writes: delete it, and the run goes on"
      ) from error

  def _where(self, step: int) -> str:
    """Where a run that was begun before goes on, or that it does not."""
    train = self._config.train
    if step < train.steps:
      return f"resuming after step {step}"
    more = "" if train.ends_at_last_step else ": raise config.train.steps to continue"
    return f"the run is finished: it has made {step} steps, and config.train.steps is {train.steps}{more}"

  def _begun(self, state: TrainState, vectors: WordVectors | None) -> TrainState:
    """The first state of a new run: `state`, or with parameters that do not begin at random.

    Those are of the run in `config.train.init_from`, or the tables of embeddings with `vectors`. Only the main host has
    either. All hosts begin with its parameters: random ones of another processor may differ by rounding.
    """
    if hosts.count() == 1 and not (self._config.train.init_from or self._config.train.embeddings):
      return state
    params = state.params
    with hosts.collective_errors():
      if devices.is_main_host():
        other = init_from.open_other(self._config, accept_edits=self._accept_edits)
        if other:
          params, step = init_from.params_from(other, self._config, params)
          self.begun_with = {"init_from": init_from.origin(other, step)}
        params = with_vectors(params, vectors) if vectors else params
    return begin_with(state, devices.replicate(hosts.broadcast(params)))

  def run(self) -> None:
    """Trains until the last step, or until a signal."""
    train = self._config.train
    first = int(self._state.step)
    number, numbers = 0, hosts.MaximumOverHosts()  # the signal that ends the run, on all hosts after the same step
    saved = first
    with Progress(total=train.steps, initial=first, unit="step") as progress, _signals() as received:
      for step in range(first + 1, train.steps + 1) if not self._stopping.is_over else ():
        # The first rows cannot be packed ahead; a later wait for rows counts as time of the updates.
        clock = self._metrics.clock_stopped() if step == first + 1 else nullcontext()
        with self._saved_on_error(step - 1), clock:
          number = _signal_before_rows(self._batches, step - 1, received)
        if number:
          if saved < step - 1:
            self._save(step - 1, None, planned=False)
          break
        self._update(step)
        validated, saves = self._measure(step, progress)
        # Read once: a signal that comes while the state is saved must not end the loop before the next save.
        number = numbers.highest(received[0] if received else 0)
        if saves or number:
          # Where only the signal asks for a checkpoint, an uninterrupted run has none that could be the best.
          self._save(step, validated if saves else None, planned=saves)
          saved = step
        progress.update(1)
        if number or self._stopping.is_over:
          break
      self._close()
    number = number or numbers.highest(received[0] if received else 0, wait=True)
    if number:
      name = signal.Signals(number).name
      say(f"stopped by {name} after step {int(self._state.step)}; the same command resumes from there")
      sys.exit(128 + number)
    if self._stopping.is_over:
      self._say_over(first)
    if self._updates > 0:
      self._write_log(planned_and_seen(self._config, int(self._updates), self._seconds))
    self._report()

  def _write_log(self, text: str) -> None:
    if devices.is_main_host():
      with writing(self._workdir / LOG):
        append(self._workdir / LOG, f"{run_folder.now()} step {int(self._state.step)}: {text}\n")

  def _report(self) -> None:
    """Reports the model's folder and its scores on the test text, or those of the last validation without one."""
    say(f"the model of step {int(self._state.step)} is in\n  {short_path(self._workdir)}")
    if not self._config.data.test:
      if self._validated:
        say(self._validated)
      return
    with doing("measuring on the test text"):
      scores = self._validation.test(self._state.params_for_decoding)
    if self._validation.samples:
      say(self._validation.samples)
    if devices.is_main_host():
      with suppress(BrokenPipeError), writing("standard output"):  # the run is done, even if nobody reads its scores
        print(scores, flush=True)

  @property
  def stopped_early(self) -> bool:
    """Whether early stopping has ended the run, so that the last checkpoint is not the best."""
    return self._stopping.is_over

  def close(self) -> None:
    """Closes all files and finishes any save, however the run ended."""
    self._batches.close()
    self._metrics.close()
    self._checkpoints.close()

  @contextmanager
  def _saved_on_error(self, step: int) -> Iterator[None]:
    """Saves the state, which has made `step` steps, if the body fails: the error is not one of an update.

    If another host died, nothing is saved: the restart makes again what that ended, such as a validation.
    """
    try:
      yield
    except Exception as error:
      if step and not hosts.is_peer_failure(error):
        self._save(step, None, planned=_due(step, self._config.train.save_every))
      raise

  def _update(self, step: int) -> None:
    with self._saved_on_error(step - 1):
      rows = self._batches[step - 1]
    self._state, metrics = self._step(self._state, devices.shard(rows))
    self._metrics.add(metrics)
    self._metrics.wait(devices.steps_in_flight())

  def _measure(self, step: int, progress: Progress) -> tuple[dict[str, float] | None, bool]:
    """Logs and validates if it is due; returns the validation's numbers, and whether a checkpoint is due."""
    train = self._config.train
    last = step == train.steps
    logs = last or _due(step, train.log_every)
    if logs:
      progress.note(self._log(step))
    validated = self._evaluate(step, progress) if last or _due(step, self._config.evaluate.every) else None
    is_best = validated is not None and self._is_best(step, validated)
    over = self._stopping.is_over
    if over and not logs:
      progress.note(self._log(step))
    return validated, last or over or is_best or _due(step, train.save_every)

  def _is_best(self, step: int, validated: Mapping[str, float]) -> bool:
    """Whether early stopping counts this validation and it is the best so far."""
    counts = self._stopping.patience and _due(step, self._config.evaluate.every)
    return bool(counts) and self._stopping.add(step, rank(validated))

  def _say_over(self, first: int) -> None:
    """Reports that early stopping has ended the run, now or before it was started at step `first`."""
    step, stopping = int(self._state.step), self._stopping
    done = "the run is finished: it stopped early" if step == first else "stopped early"
    waited = counted(stopping.waited, "validations")
    if not stopping.best_step:
      raise RunError(
        f"{done} after step {step}, as none of {waited} gave a finite loss, so no checkpoint is the best: use another "
        "--workdir with a lower config.train.peak_learning_rate or more config.train.warmup_steps"
      )
    text = (
      f"{done} after step {step}, as {waited} after step {stopping.best_step} had no better "
      f"{self._config.train.best_by}; --step best chooses the best checkpoint"
    )
    if step < self._config.train.steps:
      text += ", and a higher config.train.patience goes on"
    say(text)
    if step != first:
      self._write_log(text)

  def _save(self, step: int, validated: Mapping[str, float] | None, *, planned: bool) -> None:
    numbers: JsonObject = self._metrics.interval().to_dict()
    if self._stopping.patience:
      numbers["stopping"] = self._stopping.numbers()
    if place := self._batches.place(step):
      numbers["place"] = place
    with self._metrics.clock_stopped(), doing(f"saving the checkpoint of step {step}"):
      self._checkpoints.save(self._state, validated, numbers, planned=planned)

  def _log(self, step: int) -> str:
    line = self._metrics.flush(step, self._task.schedules(self._config, step - 1))
    self._updates += line["updates"]
    self._seconds += line["seconds"]
    if self._metrics.most_skipped:
      first, last = self._metrics.most_skipped
      if last - first + 1 > self._config.train.max_skipped:
        self._close()
        raise RunError(self._why_skipped(first, last))
    text = f"step {step}: "
    if line["skipped"]:
      skipped = f"{line['skipped']} of {counted(int(line['updates']), 'updates')} skipped"
      text += f"{skipped}, as loss or gradients were not finite\n{text}"
    if "loss" in line:
      text += f"loss {line['loss']:.3f}, perplexity {line['perplexity']:.4g}, "
    return f"{text}{line['tokens_per_second']:,.0f} {self._task.unit}/s"

  def _why_skipped(self, first: int, last: int) -> str:
    # Only the main host has the folder, and all must give the same advice.
    saved = b"yes" if devices.is_main_host() and run_folder.checkpoint_names(self._workdir) else b"no"
    then = (
      f"Checkpoints from step {first - 1} on have the parameters that gave this, and from earlier ones the same would "
      "happen: use another --workdir"
      if hosts.broadcast_bytes(saved) == b"yes"
      else "The run has no checkpoint yet: give the command again"
    )
    return (
      f"the loss or its gradients were not finite in the updates of steps {first} to {last}, which changed nothing; "
      f"the batch of step {first} has {self._batches.describe(first - 1)}. --config.debug says where the "
      f"first such number comes from. {then} with a lower config.train.peak_learning_rate or more "
      "config.train.warmup_steps"
    )

  def _evaluate(self, step: int, progress: Progress) -> dict[str, float] | None:
    """Measures on the validation text; returns the numbers that tell the best checkpoint."""
    if not self._config.data.validation:
      return None
    if self._metrics.interval().skipped_in_a_row > self._config.train.max_skipped:
      self._log(step)  # it ends the run
    with self._saved_on_error(step), self._metrics.clock_stopped(), doing(f"step {step}: validating"):
      line = self._validation.measure(self._state.params_for_decoding)
    self._metrics.write(step, "validation", line)
    scores = "".join(f", {shown.format(line[name])}" for name, shown in self._validation.shown.items() if name in line)
    text = f"step {step}: validation loss {line['loss']:.3f}, perplexity {line['perplexity']:.4g}{scores}"
    self._validated = text
    progress.note("\n".join(filter(None, (self._validated, self._validation.samples))), time_left=False)
    score = {SCORE: line["bleu"]} if self._config.train.best_by is BestBy.BLEU and "bleu" in line else {}
    return {LOSS: total_loss(line)} | score

  def _close(self) -> None:
    with doing("saving the last checkpoint"):
      self._checkpoints.wait()
    self._checkpoints.close()
    self._metrics.close()
    hosts.barrier()  # the main host may still write


def _batches(config: Config, packed: PackedRows, pack: PackPart | None) -> HostBatches:
  """The batches of the training text, for this host."""
  train = config.train
  size, multiple = train.batch_tokens // config.data.row_length, devices.device_count() * train.accumulation
  share = {"multiple": multiple, "host": hosts.index(), "hosts": hosts.count()}
  if pack is None:
    return Batches(packed, size, train.seed, **share)
  return BatchesPackedAhead(pack, cache_of(config.data), packed, size, train.seed, **share)


def _signal_before_rows(batches: HostBatches, step: int, received: Sequence[signal.Signals]) -> int:
  """Waits until all hosts have the rows of a step; the number of a signal that any of them gets before, or 0."""
  if batches.has(step):
    return 0
  while True:
    end = time.monotonic() + _SECONDS_TO_ASK
    is_ready = batches.wait(step, lambda end=end: bool(received) or time.monotonic() > end)
    said = hosts.gather(json.dumps([is_ready, int(received[0]) if received else 0]))
    ready, numbers = zip(*map(json.loads, said), strict=True)
    if all(ready) or any(numbers):
      return 0 if all(ready) else max(numbers)


def _due(step: int, every: int) -> bool:
  return every > 0 and step % every == 0


@contextmanager
def _signals() -> Iterator[list[signal.Signals]]:
  """Collects the first SIGTERM, SIGHUP or Ctrl-C in a list; a second one ends the process as usual, but for SIGHUP.

  An ignored one is none. SIGHUP comes when the terminal is closed.
  """
  received: list[signal.Signals] = []
  numbers = signal.SIGTERM, signal.SIGHUP, signal.SIGINT
  with handled(lambda number: received.append(signal.Signals(number)), *numbers):
    yield received


def _provenance(packed: PackedRows) -> JsonObject:
  """The provenance of this start of the run: what it depends on besides the config."""
  return run_folder.entry(
    data=packed.fingerprint,
    packing=dataclasses.asdict(packed.report),
    machine=devices.describe() | {"cores": cores()},
    versions=checks.package_versions(),
    settings=checks.jax_settings(),
  )
