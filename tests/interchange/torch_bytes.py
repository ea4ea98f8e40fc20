"""Files like those of `torch.save`, written without torch; `tests/parity/test_marian_import.py` reads torch's own."""

import io
import struct
import zipfile

import numpy as np

PROTO, STOP, MARK, TUPLE, REDUCE, SETITEMS, BUILD = b"\x80\x02", b".", b"(", b"t", b"R", b"u", b"b"
MAGIC = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"  # LONG1
KINDS = {np.dtype(np.float32): "FloatStorage", np.dtype(np.float16): "HalfStorage", np.dtype(np.int64): "LongStorage"}


def text(value: str) -> bytes:
  encoded = value.encode()
  return b"X" + struct.pack("<I", len(encoded)) + encoded


def whole(value: int) -> bytes:
  return b"J" + struct.pack("<i", value)


def name(module: str, attribute: str) -> bytes:
  return b"c" + f"{module}\n{attribute}\n".encode()


def of_tuple(*values: bytes) -> bytes:
  return MARK + b"".join(values) + TUPLE


def storage(array: np.ndarray, key: str, size: int) -> bytes:
  kind = name("torch", KINDS[array.dtype])
  return of_tuple(text("storage"), kind, text(key), text("cpu"), whole(size)) + b"Q"


def tensor(array: np.ndarray, key: str, size: int | None = None) -> bytes:
  strides = [stride // array.itemsize for stride in array.strides]
  order = b"".join((name("collections", "OrderedDict"), b")", REDUCE))
  sizes = [of_tuple(*map(whole, values)) for values in (array.shape, strides)]
  return (
    name("torch._utils", "_rebuild_tensor_v2")
    + of_tuple(storage(array, key, array.size if size is None else size), whole(0), *sizes, b"\x89", order)
    + REDUCE
  )


def pickled(arrays: dict[str, np.ndarray], size: int | None = None) -> bytes:
  """The pickle of an OrderedDict; array i has the storage i, of its own size or that one."""
  items = b"".join(text(each) + tensor(array, str(i), size) for i, (each, array) in enumerate(arrays.items()))
  made = name("collections", "OrderedDict") + b")" + REDUCE + MARK + items + SETITEMS
  return PROTO + made + b"}" + text("_metadata") + b"}s" + BUILD + STOP


def archive(arrays: dict[str, np.ndarray], pickle: bytes | None = None) -> bytes:
  """The archive of PyTorch since 1.6."""
  file = io.BytesIO()
  with zipfile.ZipFile(file, "w") as made:
    made.writestr("archive/data.pkl", pickled(arrays) if pickle is None else pickle)
    made.writestr("archive/byteorder", "little")
    for i, array in enumerate(arrays.values()):
      made.writestr(f"archive/data/{i}", array.tobytes())
    made.writestr("archive/version", "3\n")
  return file.getvalue()


def older(arrays: dict[str, np.ndarray], pickle: bytes | None = None) -> bytes:
  """The file of PyTorch before 1.6."""
  machine = b"}" + text("little_endian") + b"\x88s"
  keys = b"]" + MARK + b"".join(text(str(i)) for i in range(len(arrays))) + b"e"
  head = [PROTO + MAGIC + STOP, PROTO + b"M\xe9\x03" + STOP, PROTO + machine + STOP]
  body = [pickled(arrays) if pickle is None else pickle, PROTO + keys + STOP]
  numbers = [struct.pack("<q", array.size) + array.tobytes() for array in arrays.values()]
  return b"".join((*head, *body, *numbers))
