"""Standard input and output through pipes: who talks to `translate` is never left waiting."""

import errno
import fcntl
import os
import tempfile
import threading
import time

import pytest

from transformer_jax.commands.streams import Lines, Output, descriptor
from transformer_jax.data import text
from transformer_jax.runtime.errors import InputError, RunError


@pytest.fixture
def pipe():
  """Both ends of a pipe that holds one page; what a test has not closed is closed after it."""
  ends = list(os.pipe())
  fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
  yield ends
  for end in ends:
    if end is not None:
      os.close(end)


def close(pipe, end):
  os.close(pipe[end])
  pipe[end] = None


@pytest.mark.parametrize("content", [b"", b"\n", b"a", b"a\n", b"a\n\nb", b"\n\n\r\n", b"x" * 70_000 + b"\ny\n"])
def test_lines_are_those_of_a_file(tmp_path, content):
  (tmp_path / "file").write_bytes(content)
  with open(tmp_path / "file", "rb") as file, open(tmp_path / "file", "rb") as same:
    lines = Lines(file.fileno())
    assert list(iter(lambda: lines.readline(1 << 20), b"")) == list(same)
    assert lines.readline(1 << 20) == b""


def test_a_line_is_given_in_pieces_of_at_most_the_size(tmp_path):
  (tmp_path / "file").write_bytes(b"abcdefg\nh\n")
  with open(tmp_path / "file", "rb") as file:
    lines = Lines(file.fileno())
    assert [lines.readline(3) for _ in range(5)] == [b"abc", b"def", b"g\n", b"h\n", b""]


def test_a_line_that_comes_soon_is_waited_for(pipe):
  lines = Lines(pipe[0])
  os.write(pipe[1], b"o")
  writer = threading.Timer(0.05, os.write, (pipe[1], b"ne\n"))
  writer.start()
  assert lines.more(30) and lines.readline(99) == b"one\n"
  writer.join()


def test_more_tells_of_whole_lines_and_of_the_end(pipe):
  lines = Lines(pipe[0])
  assert not lines.more(0)
  os.write(pipe[1], b"one\ntw")
  assert lines.more(0)
  assert lines.readline(99) == b"one\n"
  assert not lines.more(0.001)  # half a line is none
  os.write(pipe[1], b"o\nthree")
  assert lines.more(0)
  assert lines.readline(99) == b"two\n"
  close(pipe, 1)
  assert lines.more(0) and lines.readline(99) == b"three"
  assert lines.more(0) and lines.readline(99) == b""


def test_a_line_without_an_end_is_not_read_on_and_on(monkeypatch, tmp_path):
  monkeypatch.setattr("transformer_jax.commands.streams.LONGEST_LINE", 1000)
  monkeypatch.setattr(text, "LONGEST_LINE", 1000)
  with open("/dev/zero", "rb") as zeros, pytest.raises(InputError, match=r"it, line 1 has more than 1,000 bytes"):
    next(text.read_lines(Lines(zeros.fileno()).readline, "it"))


def test_output_takes_everything_before_anything_is_read(pipe, monkeypatch):
  monkeypatch.setattr("transformer_jax.commands.streams._IN_MEMORY", 10_000)
  written = [f"line {i} é\n" for i in range(5003)]
  with Output(pipe[1]) as output:
    for line in written:
      output.write(line)  # 15 times what pipe holds, and more than memory is to hold
    found = bytearray()
    reader = threading.Thread(target=lambda: found.extend(os.read(pipe[0], 99)))  # some, and the rest later
    reader.start()
    reader.join()
    output.write("last\n")

    def read_all():
      while not found.endswith(b"last\n"):
        found.extend(os.read(pipe[0], 9999))

    reader = threading.Thread(target=read_all)
    reader.start()
  reader.join()
  assert found.decode() == "".join(written) + "last\n"


def test_the_place_of_text_that_is_written_is_used_again(pipe):
  """Otherwise a command that writes for days would fill memory and disk."""

  def size(output):
    with output._changed:
      return output._waiting.seek(0, os.SEEK_END)

  with Output(pipe[1]) as output:
    for number in range(20):
      output.write(f"{number:05}" * 1000)
      found = b""
      while len(found) < 5000:
        found += os.read(pipe[0], 5000)
      assert found == f"{number:05}".encode() * 1000
      begun = time.monotonic()
      while (waiting := size(output)) and time.monotonic() < begun + 30:
        time.sleep(0.001)
      assert waiting == 0


def test_output_without_a_reader_is_a_broken_pipe(pipe):
  close(pipe, 0)
  with pytest.raises(BrokenPipeError), Output(pipe[1]) as output:
    output.write("one\n")
  with pytest.raises(BrokenPipeError), Output(pipe[1]) as output:
    for _ in range(10**6):
      output.write("a line\n")


def test_a_descriptor_that_does_not_wait_is_waited_for(pipe):
  """Another program can make a descriptor like this that it shares with us."""
  for end in pipe:
    os.set_blocking(end, False)
  lines, content = Lines(pipe[0]), [f"{'x' * 70_000}{i}\n" for i in range(3)]
  found = []
  reader = threading.Thread(target=lambda: found.extend(lines.readline(1 << 20) for _ in content))
  reader.start()
  with Output(pipe[1]) as output:
    for line in content:
      output.write(line)
  reader.join()
  assert found == [line.encode() for line in content]


def test_output_is_written_before_an_error_goes_on(pipe):
  with pytest.raises(InputError, match="mistake"), Output(pipe[1]) as output:
    output.write("all of it\n")
    raise InputError("mistake")
  assert os.read(pipe[0], 99) == b"all of it\n"


def test_output_does_not_keep_ctrl_c_waiting(pipe):
  with pytest.raises(KeyboardInterrupt), Output(pipe[1]) as output:
    output.write("x" * 100_000)  # nobody reads
    raise KeyboardInterrupt


def test_closed_streams_are_one_sentence():
  with pytest.raises(InputError, match="standard input is closed"):
    descriptor(None, "standard input")


def test_little_text_needs_no_temporary_folder(pipe, monkeypatch):
  """Some containers have none that can be written."""
  monkeypatch.setattr(tempfile, "gettempdir", lambda: pytest.fail("no folder is needed"))
  with Output(pipe[1]) as output:
    output.write("one\n")
  assert os.read(pipe[0], 99) == b"one\n"


def test_a_full_temporary_folder_is_not_standard_outputs_fault(pipe, monkeypatch):
  class Full:
    def seek(self, place):
      if place == 0 and not full:
        return
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, content):
      return full.append(content) or len(content)

    def close(self):  # writes what is still held back
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self): ...

  full = []
  monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda size: Full())
  said = "cannot write the temporary file of what waits to be written: No space left"
  with pytest.raises(RunError, match=said), Output(pipe[1]) as output:
    output.write("one\n")
