"""`translate`: what it prints where, and how it ends. `test_translator.py` shows that translations are right."""

import fcntl
import math
import os
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest
from sacrebleu import BLEU, CHRF

from tests.commands.lines import LINES, text
from tests.example_commands import RESTORING
from tests.marks import long
from tests.model.example import float64
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.config import EvaluateConfig
from transformer_jax.decoding import n_best
from transformer_jax.decoding.minimum_bayes_risk import ranked
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.decoding.translation import Translation
from transformer_jax.model.special_tokens import EOS
from transformer_jax.paper import formulas
from transformer_jax.runtime import compilation_cache


def test_line_i_is_the_translation_of_line_i(run, translator, workdir):
  status, out, _ = run("translate", "--workdir", workdir, stdin=text(LINES).encode())
  assert status == 0
  assert out == text(translator.translate(LINES))
  assert out.split("\n")[1] == out.split("\n")[4] == ""


def test_windows_line_ends_and_a_missing_last_one(run, translator, workdir):
  _, out, _ = run("translate", "--workdir", workdir, stdin="\r\n".join(LINES).encode())
  assert out == text(translator.translate(LINES))


def test_at_a_terminal_the_end_is_told(translator, workdir, monkeypatch, capfd):
  keyboard, screen = os.openpty()
  os.write(keyboard, b"de de\n\x04")  # Ctrl-D
  with open(screen) as terminal:
    monkeypatch.setattr(sys, "stdin", terminal)
    assert main(["translate", "--workdir", str(workdir)]) == 0
  os.close(keyboard)
  out, err = capfd.readouterr()
  assert out == text(translator.translate(["de de"]))
  assert "type a sentence and Enter; Ctrl-D ends\n" in err


def test_scores_and_n_best(run, translator, workdir):
  _, out, _ = run("translate", "--workdir", workdir, "--n-best", 2, "--scores", stdin=text(LINES).encode())
  lines = out.split("\n")[:-1]
  assert len(lines) == 2 * len(LINES)
  for i, best in enumerate(translator.translate(LINES, n_best=2, return_scores=True)):
    for rank, translation in enumerate(best):
      found, _, translated = lines[2 * i + rank].partition("\t")
      assert translated == translation.text
      assert float(found) == pytest.approx(translation.score, abs=1e-6)
  assert lines[2:4] == ["0.000000\t", ""]


@pytest.fixture
def short_outputs(translator, monkeypatch):
  """EOS is so probable that hypotheses end at different lengths."""
  params = jax.tree.map(np.array, translator.params)
  direction = params["target_embedding"]["table"][EOS]
  params["decoder"]["layers_0"]["feed_forward_sublayer"]["norm"]["bias"] += 3.5 * direction / np.sum(direction**2)
  monkeypatch.setattr(translator, "params", params)
  return translator


def searched(translator, line, alpha, patience):
  """The best output of a line by the formulas of the model and of the search: (score, text, tokens)."""
  params, decode = float64(translator.params), translator.config.decode
  source = [*translator._tokenizer.encode(line), EOS]

  def log_probs(tokens):
    return np.log(formulas.softmax(formulas.transformer(params, source, [*tokens, EOS])[-1]))

  def penalty(length):
    return ((5 + length) / 6) ** alpha

  limit = len(source) + decode.extra_length
  score, tokens = formulas.beam_search(log_probs, limit, decode.beam_size, penalty, patience)[0]
  return score, translator._tokenizer.decode(tokens[:-1]), len(tokens)


@pytest.mark.parametrize(
  ("flags", "alpha", "patience", "length"),
  [
    (["--length-penalty", 2, "--patience", 0.5], 2.0, 0.5, 7),
    *long([(["--length-penalty", 0], 0.0, math.inf, 7), (["--length-penalty", 2], 2.0, math.inf, 10)]),
  ],
)
def test_length_penalty_and_patience_are_those_of_the_search(
  run, short_outputs, workdir, flags, alpha, patience, length
):
  """A larger exponent prefers longer outputs; little patience ends the search before it has found them."""
  _, out, _ = run("translate", "--workdir", workdir, "--scores", *flags, stdin=b"de de\n")
  score, translated, tokens = searched(short_outputs, "de de", alpha, patience)
  assert tokens == length
  found, _, line = out.partition("\t")
  assert line == f"{translated}\n" and float(found) == pytest.approx(score, abs=1e-4)


def test_draws_have_the_temperature_and_the_seed_of_the_flags(run, translator, workdir, monkeypatch):
  given = {}
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **options: given.update(options) or iter([]))
  flags = ["--sample", "--temperature", 0.7, "--top-k", 5, "--top-p", 0.9, "--seed", 11]
  flags += ["--scores", "--length-penalty", 2]  # on which the scores depend
  assert run("translate", "--workdir", workdir, *flags) == (0, "", [])
  assert given["sampling"] == SamplingOptions(temperature=0.7, top_k=5, top_p=0.9) and given["seed"] == 11
  assert given["length_penalty"] == 2


def test_the_batch_size_is_that_of_the_flag(run, translator, workdir, monkeypatch, tmp_path):
  given = []

  def noted(lines, batch_size, **options):
    given.append(batch_size)
    return ([Translation("x", 0.0, 0.0, 1)] for _ in lines)

  monkeypatch.setattr(translator, "translate_lines", noted)
  (tmp_path / "text").write_text("x\n")
  files = ["--source", tmp_path / "text", "--reference", tmp_path / "text"]
  for size in (3, 5):
    run("translate", "--workdir", workdir, "--batch-size", size)
    run("evaluate", "--workdir", workdir, *files, "--batch-size", size)
  assert given == [3, 3, 5, 5]


def test_lists_in_the_format_of_moses(run, translator, workdir):
  _, out, _ = run("translate", "--workdir", workdir, "--n-best", 2, "--moses", stdin=text(LINES).encode())
  found = n_best.read(out.split("\n")[:-1], "out")
  for candidates, best in zip(found, translator.translate(LINES, n_best=2, return_scores=True), strict=True):
    assert [candidate.text for candidate in candidates] == [translation.text for translation in best]
    for (_, features, score), translation in zip(candidates, best, strict=True):
      assert features["logp"] == pytest.approx(translation.log_probability, abs=1e-6)
      assert features["length"] == translation.tokens and score == pytest.approx(translation.score, abs=1e-6)


def test_minimum_bayes_risk_chooses_from_the_candidates(run, translator, workdir):
  flags = ["--mbr", "chrf", "--scores"]
  _, out, _ = run("translate", "--workdir", workdir, *flags, stdin=text(LINES).encode())
  for line, candidates in zip(out.split("\n"), translator.translate(LINES, n_best=2, return_scores=True), strict=False):
    [best, *_] = ranked(candidates, "chrf", drawn=False)
    assert line == f"{best.score:.6f}\t{best.text}"
  _, out, _ = run(
    "translate", "--workdir", workdir, *flags, "--sample", "--seed", 3, "--candidates", 5, stdin=text(LINES).encode()
  )
  drawn = translator.translate(LINES, n_best=5, sampling=SamplingOptions(), seed=3, return_scores=True)
  for line, candidates in zip(out.split("\n"), drawn, strict=False):
    [best, *_] = ranked(candidates, "chrf", drawn=True)
    assert line == f"{best.score:.6f}\t{best.text}"


def test_minimum_bayes_risk_has_sixteen_draws_or_the_whole_beam_unless_a_flag_says_otherwise(
  run, translator, workdir, monkeypatch
):
  asked = []
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **how: asked.append(how["n_best"]) or iter([]))
  for more in (["--sample"], ["--sample", "--candidates", 5], [], ["--beam-size", 7]):
    assert run("translate", "--workdir", workdir, "--mbr", "chrf", *more) == (0, "", [])
  assert asked == [16, 5, 2, 7]


CANDIDATES = [
  "steht Haus. alt",
  "STEHT STEHT Haus. STEHT",
  "(alt) das STEHT ein",
  "Haus alt STEHT",
  "STEHT Haus Das ein",
]


@pytest.mark.parametrize(
  ("metric", "evaluate", "chosen"),
  [
    (BLEU(effective_order=True), {}, 3),
    (BLEU(effective_order=True, tokenize="char"), {"tokenize": "char"}, 4),
    (BLEU(effective_order=True, lowercase=True), {"lowercase": True}, 0),
    (CHRF(), {"tokenize": "char"}, 4),
    (CHRF(lowercase=True), {"lowercase": True}, 1),
  ],
  ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_minimum_bayes_risk_reads_texts_as_the_run_says(
  run, translator, workdir, monkeypatch, metric, evaluate, chosen
):
  """By config.evaluate: sacreBLEU's tokeniser, and whether case counts."""
  opened, drawn = runs.open, [Translation(each, 0.0, -1.0, 3) for each in CANDIDATES]

  def with_evaluate(*args, **options):
    found = opened(*args, **options)
    found.config.evaluate = EvaluateConfig(**evaluate)
    return found

  monkeypatch.setattr(runs, "open", with_evaluate)
  monkeypatch.setattr(translator, "translate_lines", lambda lines, **options: iter([drawn]))
  utility = "bleu" if isinstance(metric, BLEU) else "chrf"
  argv = ["--sample", "--mbr", utility, "--candidates", len(drawn), "--n-best", len(drawn), "--scores"]
  _, out, _ = run("translate", "--workdir", workdir, *argv, stdin=b"a\n")
  expected = {
    text: np.mean([metric.sentence_score(text, [other]).score for other in CANDIDATES]) for text in CANDIDATES
  }
  scores, texts = zip(*(line.split("\t") for line in out.splitlines()), strict=True)
  assert list(texts) == sorted(expected, key=lambda text: -expected[text]) and texts[0] == CANDIDATES[chosen]
  np.testing.assert_allclose(np.array(scores, float), sorted(expected.values(), reverse=True), atol=1e-6)


NO_PENALTY = (
  "--length-penalty is 2.0, but must be left out: draws do not depend on it, and no score of theirs is written"
)


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--moses", "--scores"], "--moses writes the scores: leave out --scores"),
    (["--candidates", 3], "--candidates is 3, but must be left out without --mbr"),
    (["--sample", "--length-penalty", 2], NO_PENALTY),
    (["--sample", "--mbr", "chrf", "--moses", "--length-penalty", 2], NO_PENALTY),
    (["--mbr", "chrf", "--beam-size", -1], "--beam-size is -1, but must be from 1 to 1024"),
    (["--mbr", "chrf", "--beam-size", 0], "--beam-size is 0, but must be from 1 to 1024"),
    (["--mbr", "chrf", "--sample", "--candidates", 5000], "--candidates is 5000, but must be from 1 to 1024"),
    (["--mbr", "bleu", "--n-best", 3], "--n-best is 3, but must be from 1 to --candidates, which is 2"),
    (
      ["--mbr", "bleu", "--candidates", 3],
      "--candidates is 3, but must be from 1 to the beam size, which is 2 (or raise --beam-size)",
    ),
    (["--seed", 3], "--seed is for random choices, but this is a search: add --sample, or leave it out"),
    (
      ["--temperature", 0.5],
      "--temperature is for random choices, but this is a search: add --sample, or leave it out",
    ),
    (["--top-k", 3], "--top-k is for random choices, but this is a search: add --sample, or leave it out"),
    (["--top-p", 0.5], "--top-p is for random choices, but this is a search: add --sample, or leave it out"),
    (["--sample", "--beam-size", 3], "--beam-size is 3, but must be left out with sampling, which has no beam"),
    (["--prefix", "/nowhere"], "/nowhere does not exist: check the path"),
  ],
)
def test_flags_that_do_not_fit_together(run, translator, workdir, flags, message):
  assert run("translate", "--workdir", workdir, *flags)[::2] == (2, [f"transformer-jax: error: {message}"])


def test_prefixes_come_from_a_file(run, translator, workdir, tmp_path):
  (tmp_path / "prefixes").write_text("ab\n\n\nc\n\n\n")
  _, out, _ = run("translate", "--workdir", workdir, "--prefix", tmp_path / "prefixes", stdin=text(LINES).encode())
  assert out == text(translator.translate(LINES, prefixes=["ab", "", "", "c", "", ""]))
  assert out.split("\n")[0].startswith("ab") and out.split("\n")[3].startswith("c")


def test_a_bad_byte_comes_after_the_lines_before_it(run, translator, workdir):
  status, out, err = run("translate", "--workdir", workdir, stdin=b"abc de\nf\n\xff\nab\n")
  assert status == 2
  assert out == text(translator.translate(["abc de", "f"]))
  assert len(err) == 1 and err[0].startswith("transformer-jax: error: standard input, line 3: ")


def test_a_long_line_is_split_or_refused_and_changes_no_other(run, translator, workdir):
  long = "abc de " * 300
  lines = ["abc", long, "de", *LINES]
  alone = text(translator.translate(lines[:1] + lines[2:])).split("\n")
  status, out, err = run("translate", "--workdir", workdir, stdin=text(lines).encode())
  assert status == 0
  assert out.split("\n")[:1] + out.split("\n")[2:] == alone
  assert [line.split(" tokens")[0] for line in err] == ["line 2 has more than config.decode.max_source_length = 16"]
  status, out, err = run("translate", "--workdir", workdir, "--long", "refuse", stdin=text(lines).encode())
  assert (status, out) == (2, f"{alone[0]}\n")
  assert len(err) == 1 and "line 2 has more than config.decode.max_source_length = 16 tokens" in err[0]


def test_an_input_that_cannot_be_read_is_named(workdir, translator, capfd, monkeypatch, tmp_path):
  with open(tmp_path / "file", "w") as not_readable:
    monkeypatch.setattr(sys, "stdin", not_readable)
    assert main(["translate", "--workdir", workdir]) == 2
  assert "error: cannot read standard input: Bad file descriptor; give it" in capfd.readouterr().err


def test_memory_that_is_exhausted_is_one_sentence(run, translator, workdir, monkeypatch):
  for error in (MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: out of memory while allocating 9 bytes")):

    def exhausted(*args, error=error, **options):
      raise error

    monkeypatch.setattr(translator, "translate_lines", exhausted)
    status, out, err = run("translate", "--workdir", workdir, stdin=b"a\n")
    assert (status, out) == (1, "") and len(err) == 1 and "memory is exhausted" in err[0]


def test_nothing_in_nothing_out(run, translator, workdir):
  assert run("translate", "--workdir", workdir) == (0, "", [])


def test_options_that_the_search_cannot_use(run, translator, workdir):
  status, _, err = run("translate", "--workdir", workdir, "--n-best", 3)
  assert status == 2
  assert err == ["transformer-jax: error: --n-best is 3, but must be from 1 to the beam size, which is 2 (or raise it)"]
  status, _, err = run("translate", "--workdir", workdir, "--patience", -1)
  assert status == 2
  assert err == ["transformer-jax: error: --patience is -1.0, but must be from 0 to 1,000,000"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_behind_the_output_is_one_sentence(run, translator, workdir, monkeypatch):
  with open("/dev/full", "w") as full:
    monkeypatch.setattr(sys, "stdout", full)
    status, _, err = run("translate", "--workdir", workdir, stdin=text(LINES).encode())
  assert status == 1
  assert err[-1] == (
    "transformer-jax: error: cannot write standard output: No space left on device; "
    "what was saved before is untouched: make room, and give the same command again"
  )


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_behind_standard_error_costs_no_translation(workdir):
  """The lost message says that a long line is translated in parts."""
  program = [sys.executable, "-m", "transformer_jax", "translate", "--workdir", workdir]
  lines = text(["abc", "abc " * 50, "de"]).encode()
  expected = subprocess.run(program, input=lines, capture_output=True, check=True)
  assert b"line 2" in expected.stderr
  with open("/dev/full", "w") as full:
    done = subprocess.run(program, input=lines, stdout=subprocess.PIPE, stderr=full)
  assert (done.returncode, done.stdout) == (0, expected.stdout) and expected.stdout.count(b"\n") == 3


def test_ctrl_c_is_quiet(run, translator, workdir, monkeypatch):
  def interrupted(*args, **options):
    raise KeyboardInterrupt

  monkeypatch.setattr(translator, "translate_lines", interrupted)
  assert run("translate", "--workdir", workdir) == (130, "", [])


@pytest.fixture
def process(workdir):
  """`translate` in a process of its own, whose locale does not know UTF-8, and whose pipes hold one page."""
  process = subprocess.Popen(
    [sys.executable, "-m", "transformer_jax", "translate", "--workdir", workdir, "--beam-size", "1"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    env={
      "LC_ALL": "C",
      "PYTHONUTF8": "0",
      "JAX_PLATFORMS": "cpu",
      "PYTHONPATH": ":".join(sys.path),
      "TRANSFORMER_JAX_CACHE": os.environ["TRANSFORMER_JAX_CACHE"],
    },
  )
  for pipe in (process.stdin, process.stdout):
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
  watchdog = threading.Timer(120, process.kill)
  watchdog.start()
  yield process
  watchdog.cancel()
  process.kill()
  process.communicate()


@pytest.mark.long
def test_a_reader_that_leaves_is_no_error(process):
  """The reader is like `| head -1`."""
  process.stdout.close()
  process.stdout = None
  _, err = process.communicate("abc \N{SNOWMAN}\n".encode())
  assert process.returncode == 141
  lines = err.decode().splitlines()
  [said] = [line for line in lines if not line.endswith(" ...") and not line[0].isdigit()]  # of a busy machine
  assert said.startswith(RESTORING)


@pytest.mark.long
def test_a_program_at_both_ends_is_never_left_waiting(process):
  """It waits for the answer to each line, then writes several pages before it reads any, then a byte that is wrong."""
  lines = ["abc", "", "de de", "f ghij \N{SNOWMAN}", "a" * 50]
  answers = []
  for line in lines:
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
    answers.append(process.stdout.readline())
  assert len(set(answers)) > 2 and answers[1] == b"\n"
  process.stdin.write(text(300 * lines).encode() + b"abc\n\xff\nabc\n")
  process.stdin.flush()
  assert len(b"".join(300 * answers)) > 2 * 4096
  out, err = process.communicate()
  assert out == b"".join([*300 * answers, answers[0]])
  assert process.returncode == 2
  error = f"transformer-jax: error: standard input, line {301 * len(lines) + 2}: "
  assert err.decode().splitlines()[-1].startswith(error)


def test_what_a_command_compiles_is_kept(run, translator, workdir, monkeypatch):
  kept = []
  monkeypatch.setattr(compilation_cache, "use_compilation_cache", lambda: kept.append(True))
  assert run("translate", "--workdir", workdir)[0] == 0 and kept == [True]
