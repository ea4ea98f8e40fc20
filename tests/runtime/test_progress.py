"""Progress where stderr is no terminal."""

from transformer_jax.runtime import progress
from transformer_jax.runtime.progress import Progress, say


def test_plain_lines_now_and_then(capsys, monkeypatch):
  now = [100.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("line", total=1000) as bar:
    for _ in range(7):
      now[0] += 5
      bar.update(50)
  out, err = capsys.readouterr()
  assert out == ""
  assert err.split("\n") == [
    "100 of 1,000 lines, 10 a second, 01:30 left",
    "200 of 1,000 lines, 10 a second, 01:20 left",
    "300 of 1,000 lines, 10 a second, 01:10 left",
    "",
  ]


def test_a_resumed_run_counts_its_own_steps_for_the_rate(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("step", total=110, initial=90) as bar:
    now[0] += 5
    bar.update(10)
    bar.note("step 100: loss 2.5")
  assert capsys.readouterr().err == "step 100: loss 2.5, 00:05 left\n"


def test_without_a_total_no_time_is_left(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  with Progress("line") as bar:
    now[0] += 20
    bar.update(50)
    bar.note("half")
  assert capsys.readouterr().err == "50 lines, 2.5 a second\nhalf\n"


def test_invisible_but_not_mute(capsys):
  with Progress("line", visible=False) as bar:
    bar.update(1)
    bar.note("a note")
  say("a remark")
  assert capsys.readouterr().err == "a note\na remark\n"


def test_a_bar_on_a_terminal(capsys, monkeypatch):
  monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
  with Progress("line", total=3) as bar:
    bar.update(3)
    bar.note("a note")
  err = capsys.readouterr().err
  assert "3/3" in err and "a note\n" in err
