"""Progress where stderr is no terminal."""

import sys
import threading
import time

from transformer_jax.runtime import progress
from transformer_jax.runtime.progress import Progress, doing, say, shortened
from transformer_jax.runtime.wording import counted


def test_plain_lines_now_and_then(capsys, monkeypatch):
  now = [100.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("line", total=1000) as bar:
    bar.update(0)  # the rate leaves out the time up to the first line
    for _ in range(7):
      now[0] += 5
      bar.update(50)
  out, err = capsys.readouterr()
  assert out == ""
  assert err.split("\n") == [
    "100 of 1,000 lines, 10 a second",
    "200 of 1,000 lines, 10 a second, 01:20 left",
    "300 of 1,000 lines, 10 a second, 01:10 left",
    "",
  ]


def test_a_resumed_run_counts_its_own_steps_for_the_rate(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("step", total=130, initial=90) as bar:
    now[0] += 9
    bar.update(10)  # in which the step is compiled
    bar.note("step 100: loss 2.5")
    now[0] += 9
    bar.update(9)
    bar.note("step 109: loss 2.4")
    now[0] += 1
    bar.update(1)
    bar.note("step 110: loss 2.3")
    bar.note("step 110: validation loss 2.2", time_left=False)
  assert capsys.readouterr().err.splitlines() == [
    "step 100: loss 2.5",
    "step 109: loss 2.4",
    "step 110: loss 2.3, 00:20 left",
    "step 110: validation loss 2.2",
  ]


def test_the_last_line_of_an_unknown_total_has_all(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  for seconds in (20, 0):
    with Progress("line") as bar:
      bar.update(1)
      now[0] += seconds
      bar.update(2)
      bar.update(4)
    assert capsys.readouterr().err.splitlines() == (
      ["3 lines, 0.1 a second", "7 lines, 0.3 a second"] if seconds else []
    )


def test_outputs_that_come_together_have_no_rate(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("line", total=40) as bar:
    now[0] += 20
    bar.update(1)
    now[0] += 0.01
    bar.update(38)
    assert bar.describe() == "39 of 40 lines"
    now[0] += 0.99
    bar.update(1)
    assert bar.describe() == "40 of 40 lines, 39 a second"
  assert capsys.readouterr().err == "1 of 40 lines\n"


def test_without_a_total_no_time_is_left(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("line") as bar:
    bar.update(1)
    now[0] += 20
    bar.update(50)
    bar.note("half")
    now[0] += 200
    bar.update(0)
  assert capsys.readouterr().err == "51 lines, 2.5 a second\nhalf\n51 lines, 0.227 a second\n"


def test_invisible_but_not_mute(capsys):
  with Progress("line", visible=False) as bar:
    bar.update(1)
    bar.note("a note")
  say("a remark")
  assert capsys.readouterr().err == "a note\na remark\n"


def test_a_bar_on_a_terminal_says_the_time_left_when_it_means_something(capsys, monkeypatch):
  monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
  now = [100.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("line", total=9) as bar:
    bar.update(3)
    bar.note("a note")
    assert "<" not in (early := capsys.readouterr().err) and "3/9" in early and "a note\n" in early
    now[0] += 20
    bar.update(3)
    bar.note("another")
  assert "6/9" in (late := capsys.readouterr().err) and "<" in late and "another\n" in late


def test_one_is_no_plural(capsys, monkeypatch):
  assert [counted(n, "lines") for n in (0, 1, 2, 1000)] == ["0 lines", "1 line", "2 lines", "1,000 lines"]
  assert counted(1, "source tokens") == "1 source token"
  assert counted(1, "pairs skipped, longer than 64 tokens") == "1 pair skipped, longer than 64 tokens"
  assert counted(1, "of them consecutive") == "1 of them consecutive"
  now = [0.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("line") as bar:
    now[0] += 20
    bar.update(1)
  assert capsys.readouterr().err == "1 line\n"


def test_only_what_takes_a_while_is_said(monkeypatch):
  said = []
  monkeypatch.setattr(progress, "say", said.append)
  monkeypatch.setattr(progress, "_SECONDS_OF_SILENCE", 3600.0)
  with doing("a quick thing"):
    [timer] = [each for each in threading.enumerate() if getattr(each, "args", None) == ["a quick thing ..."]]
  timer.join(60)
  assert not timer.is_alive()  # it says nothing later either
  monkeypatch.setattr(progress, "_SECONDS_OF_SILENCE", 0.01)
  with doing("a long thing"):
    for _ in range(1000):
      time.sleep(0.02)
      if said:
        break
  assert said == ["a long thing ..."]


def test_a_long_text_is_cut_to_its_columns():
  assert shortened("short", 10) == "short"
  assert shortened("exactly ten", 11) == "exactly ten"
  assert shortened("more than ten", 10) == "more th..."
  assert shortened("셋넷다섯여섯", 10) == "셋넷다..."  # two columns each
  assert shortened("two\nlines", 80) == "two lines"


def test_no_control_character_of_a_name_reaches_the_terminal(capsys):
  say("before \x1b]0;owned\x07\x9b2J\n\tnow \x7f\r")
  assert capsys.readouterr().err == "before  ]0;owned  2J\n\tnow   \n"


def test_a_terminal_gets_long_lines_wrapped_unless_they_are_to_be_copied(capsys, monkeypatch):
  command = "  transformer-jax translate --workdir " + "a-folder/" * 9 + "run < FILE"
  path = "/" + "a-folder/" * 9 + "run"
  text = f"{'ten words ' * 10}and {path} end\ntry it:\n{command}"
  say(text)
  assert capsys.readouterr().err == f"{text}\n"
  monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
  say(text)
  lines = capsys.readouterr().err.split("\n")
  first, second, third, *rest = lines
  assert max(len(first), len(second)) <= 80 and first.startswith("ten words") and second.startswith("  ten words")
  assert f"{first} {second.strip()}" == f"{'ten words ' * 10}and" and third == f"  {path}"
  assert rest == ["  end", "try it:", command, ""]
