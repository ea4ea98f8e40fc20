"""PyTorch's files: what is read of them, and that nothing in them is run."""

import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from etils import epath

from tests import damage
from tests.interchange import torch_bytes as made
from transformer_jax.interchange import torch_file
from transformer_jax.runtime.errors import InputError

FORMS = {"archive": made.archive, "older": made.older}


def arrays():
  generator = np.random.default_rng(0)
  return {
    "a.weight": generator.standard_normal((5, 7)).astype(np.float32),
    "a.bias": generator.standard_normal(3).astype(np.float16),
    "steps": np.array(11),
    "turned": generator.standard_normal((2, 3)).astype(np.float32).T,
  }


def read(path):
  with torch_file.opened(epath.Path(path)) as file:
    return {name: np.array(file.array(name)) for name in file.shapes}, file.types


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_arrays(form, tmp_path):
  whole = {name: array for name, array in arrays().items() if name != "turned"}
  (tmp_path / "a.bin").write_bytes(form(whole))
  found, types = read(tmp_path / "a.bin")
  assert types == {"a.weight": "F32", "a.bias": "F16", "steps": "I64"}
  for name, array in whole.items():
    np.testing.assert_array_equal(found[name], array, strict=True)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_arrays_of_one_storage_read_it_once(form, tmp_path, monkeypatch):
  """A file may have thousands of them, all in one buffer."""
  (tmp_path / "a.bin").write_bytes(form({"a": np.arange(7, dtype=np.float32)}))
  with torch_file.opened(epath.Path(tmp_path / "a.bin")) as file:
    read = []
    monkeypatch.setattr(np, "frombuffer", lambda *args, made=np.frombuffer: read.append(args) or made(*args))
    for _ in range(3):
      np.testing.assert_array_equal(file.array("a"), np.arange(7))
  assert len(read) == 1


def test_a_file_of_holes(tmp_path):
  """It would fill the memory with zeros."""
  with (tmp_path / "a.bin").open("wb") as file:
    file.write(made.archive(arrays()))
    file.truncate(1 << 40)
  with pytest.raises(InputError, match=r"has 1,099,511,627,776 bytes, but only [\d,]+ of them are data"):
    read(tmp_path / "a.bin")


def test_an_array_that_is_turned_in_memory(tmp_path):
  array = arrays()["turned"]
  pickle = made.pickled({"turned": array})
  (tmp_path / "a.bin").write_bytes(made.archive({"turned": array.T}, pickle))
  np.testing.assert_array_equal(read(tmp_path / "a.bin")[0]["turned"], array)


class Bomb:
  def __reduce__(self):
    return os.system, ("touch bomb",)


def refused(path, content, message):
  path.write_bytes(content)
  with pytest.raises(InputError, match=message) as caught:
    read(path)
  assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_no_program_is_run(form, protocol, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  refused(tmp_path / "a.bin", form({}, pickle.dumps({"a": Bomb()}, protocol)), "which no file of arrays needs")
  assert not (tmp_path / "bomb").exists()


ONE = np.zeros(6, np.float32)


@pytest.mark.parametrize(
  ("shape", "strides", "size", "message"),
  [
    ((2, 4), (2, 1), 6, r"an array of shape \(2, 4\) is larger than its storage"),
    ((2, 2), (5, 1), 6, r"an array of shape \(2, 2\) is larger than its storage"),
    ((7,), (1,), 6, r"an array of shape \(7,\) is larger than its storage"),
    ((1 << 30,), (0,), 6, "is larger than its storage"),
    ((1 << 30,), (0,), 1 << 30, "its arrays would have 4,294,967,296 bytes"),
    ((7,), (1,), 7, "the numbers of 0 are missing"),
    ((1,) * 9, (1,) * 9, 6, "an array is damaged"),
  ],
)
def test_sizes_that_are_not_there(shape, strides, size, message, tmp_path):
  array = np.lib.stride_tricks.as_strided(ONE, shape, [4 * stride for stride in strides])
  for form in FORMS.values():
    refused(tmp_path / "a.bin", form({"a": ONE}, made.pickled({"a": array}, size)), message)


def test_parts_that_are_missing_or_other(tmp_path):
  whole = made.archive(arrays())
  refused(tmp_path / "a.bin", whole[:-9], "is damaged")
  refused(tmp_path / "a.bin", b"", "it is empty")
  refused(tmp_path / "a.bin", b"hello", "is damaged")
  refused(tmp_path / "a.bin", made.archive({}, b"\x80\x02]."), "it holds no dict of arrays")
  refused(
    tmp_path / "a.bin", made.archive({}, made.PROTO + b"}" + made.text("a") + b"Ns."), "something that is no array"
  )
  place = whole.index(arrays()["a.weight"].tobytes())
  refused(tmp_path / "a.bin", whole[:place] + b"\xff" + whole[place + 1 :], "Bad CRC-32")
  with zipfile.ZipFile(tmp_path / "b.bin", "w", zipfile.ZIP_DEFLATED) as packed:
    packed.writestr("archive/data.pkl", b"\0" * (1 << 24))
  refused(tmp_path / "a.bin", (tmp_path / "b.bin").read_bytes(), "it is compressed")


def test_a_part_at_an_impossible_place(tmp_path):
  entry = zipfile.ZipInfo("archive/data.pkl")
  entry.extra = struct.pack("<HHQ", 1, 8, 2**64 - 1)  # the place of a part in an archive of more than 4 GiB
  with zipfile.ZipFile(tmp_path / "b.bin", "w") as archive:
    archive.writestr(entry, b"\x80\x02}.")
  content = bytearray((tmp_path / "b.bin").read_bytes())
  place = content.index(b"PK\x01\x02") + 42
  content[place : place + 4] = b"\xff" * 4  # asks for that place
  refused(tmp_path / "a.bin", bytes(content), "a part is behind the end of the file")


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@damage.COUNTS
def test_damage_at_random(form, count, tmp_path, record_property):
  path = tmp_path / "a.bin"
  path.write_bytes(form(arrays()))

  def attempt():
    found, _ = read(path)
    assert sum(array.nbytes for array in found.values()) <= 4 * path.stat().st_size

  refused = damage.read_damaged([path], count, attempt, record_property, seconds=5)
  assert count // 100 < refused < count - count // 100


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_array_that_begins_within_its_storage(form, tmp_path):
  """As a slice of a larger array is saved: its storage is the whole one."""
  whole = np.arange(12, dtype=np.float32)
  pickle = made.pickled({"part": whole[5:11].reshape(2, 3)}, whole.size)
  begin = b"Q" + made.whole(0)
  assert pickle.count(begin) == 1
  (tmp_path / "a.bin").write_bytes(form({"part": whole}, pickle.replace(begin, b"Q" + made.whole(5))))
  np.testing.assert_array_equal(read(tmp_path / "a.bin")[0]["part"], [[5, 6, 7], [8, 9, 10]])
  beyond = form({"part": whole}, pickle.replace(begin, b"Q" + made.whole(7)))
  refused(tmp_path / "a.bin", beyond, r"an array of shape \(2, 3\) is larger than its storage")


def test_numbers_in_the_other_byte_order_are_refused(tmp_path):
  older = made.older({"a": ONE}).replace(b"little_endian\x88", b"little_endian\x89")
  refused(tmp_path / "a.bin", older, "not little endian")
  with zipfile.ZipFile(tmp_path / "b.bin", "w") as archive:
    for name, part in (("data.pkl", made.pickled({"a": ONE})), ("byteorder", "big"), ("data/0", ONE.tobytes())):
      archive.writestr(f"archive/{name}", part)
  refused(tmp_path / "a.bin", (tmp_path / "b.bin").read_bytes(), "not little endian")
