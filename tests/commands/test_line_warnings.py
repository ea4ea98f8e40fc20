"""The warnings about lines that tell no language, to a model of several: the reason once, however long the text."""

import pytest

from tests.commands.lines import text
from tests.example_commands import read_with_tags
from transformer_jax.decoding import attention as decoding_attention
from transformer_jax.decoding.translator import Translator
from transformer_jax.inside import attention, head_steps
from transformer_jax.runtime.errors import InputError

_ANY = "its translation may be in any language"


@pytest.fixture
def of_languages(translator, monkeypatch):
  """The run's model has a tag."""
  read_with_tags(monkeypatch)
  monkeypatch.setattr(translator._lines, "_tags", ["<2de>"])


def told(lines):
  return [line for line in lines if "language" in line]


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_lines_without_a_tag_are_counted(run, of_languages, workdir, tmp_path, command):
  lines = ["<2de> a", "b", "", "<2fr> c", "d", "<2de> e"]
  (tmp_path / "source").write_text(text(lines))
  files = ["--source", tmp_path / "source", "--reference", tmp_path / "source"] if command == "evaluate" else []
  status, _, said = run(command, "--workdir", workdir, *files, stdin=text(lines).encode())
  assert status == 0
  assert told(said) == [
    f"line 2 begins with none of <2de>: {_ANY}",
    "3 lines, the last of which is line 5, begin with no tag or code of a language of this run",
  ]


def test_each_line_in_parts_is_told_and_one_without_a_tag_once(run, of_languages, workdir):
  long = "<2de> " + "a b c " * 9
  status, _, said = run("translate", "--workdir", workdir, stdin=text([long, "a", long]).encode())
  assert status == 0 and told(said) == [f"line 2 begins with none of <2de>: {_ANY}"]
  assert [line.split(" has ")[0] for line in said if "parts" in line] == ["line 1", "line 3"]


@pytest.mark.parametrize(
  ("command", "work"),
  [
    ("attention", (attention, "attention_of")),
    ("draw search", (Translator, "search_tree")),
    ("draw next", (Translator, "next_token")),
    ("draw self-attention", (head_steps, "of_model")),
  ],
)
def test_a_sentence_without_a_tag_is_told_before_the_work(
  run, of_languages, workdir, tmp_path, monkeypatch, command, work
):
  pytest.importorskip("matplotlib", reason="pictures need matplotlib")

  def stop(*_, **__):
    raise InputError("the work begins")

  monkeypatch.setattr(*work, stop)
  output = tmp_path / ("folder" if command == "attention" else "picture.svg")
  flags = [*command.split(), "--workdir", workdir, "--output", output, "--sentence"]
  status, _, said = run(*flags, "a b")
  assert status == 2 and "the work begins" in said[-1]
  assert told(said) == [f"--sentence begins with none of <2de>: {_ANY}"]
  status, _, said = run(*flags, "<2de> a b")
  assert status == 2 and "the work begins" in said[-1] and told(said) == []


def test_the_warning_of_a_sentence_is_no_record_of_the_log(of_languages, translator, monkeypatch, caplog):
  monkeypatch.setattr(decoding_attention, "attention_of_pair", lambda *_: "weights")
  assert translator.attention("a b") == "weights"
  assert not caplog.records
