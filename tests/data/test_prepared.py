"""Prepared folders: what is in their rows, who reads which, and which folders are refused."""

import dataclasses
import json
import os
import re
import resource
import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from etils import epath

from tests.example_run import write_corpus
from tests.prepared_folder import prepare, text
from transformer_jax.data import clean_files, pipeline, preparation, shards
from transformer_jax.data.batches import Batches
from transformer_jax.data.cleaning import Rules, rules_by_reason
from transformer_jax.data.packing import SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS
from transformer_jax.data.prepared import PreparedRows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.text import TextPairs
from transformer_jax.runtime.errors import InputError, RunError


@pytest.fixture(scope="module")
def made(tmp_path_factory):
  """A text, and the config that trains with its prepared folder, which has five files."""
  folder = tmp_path_factory.mktemp("made")
  data = text(write_corpus(folder))
  return data, prepare(data, folder / "prepared")


@pytest.fixture
def own(made, tmp_path):
  """The config of a copy of the folder, and the folder."""
  folder = shutil.copytree(made[1].train, tmp_path / "prepared")
  return dataclasses.replace(made[1], train=str(folder)), folder


def packed(data, tokenizer=None):
  tokenizer = tokenizer or pipeline.learn_tokenizer(data, 290)
  return pipeline.packed_rows(data, data.train, tokenizer)


def pairs_in(rows, tokenizer):
  """How often each pair of texts is in packed rows."""
  sides = (SOURCE, SOURCE_SEGMENTS), (TARGET, TARGET_SEGMENTS)
  return Counter(
    tuple(tokenizer.decode(row[side][row[segments] == segment].tolist()[:-1]) for side, segments in sides)
    for row in rows
    for segment in sorted({*row[SOURCE_SEGMENTS].tolist()} - {0})
  )


def test_the_rows_are_the_pairs_that_fit(made):
  data, with_rows = made
  tokenizer = pipeline.learn_tokenizer(with_rows, 290)
  fit = Counter(
    pair for pair in TextPairs(data.train, "en", "de") if max(len(tokenizer.encode(side)) for side in pair) < 16
  )
  found = packed(with_rows)
  assert pairs_in(found.rows[:], tokenizer) == fit
  assert found.report.found["pairs"] == fit.total() and sum(found.report.left_out.values()) == 211 - fit.total() > 0
  assert found.report == dataclasses.replace(packed(data, tokenizer).report, rows=found.report.rows)


def test_a_part_is_packed_as_the_text_would_be_by_itself(made, tmp_path):
  """So one part is the text in packed rows, with the vocabulary that would be learned, and wide rows too."""
  data, _ = made
  with_rows = prepare(data, tmp_path / "one", lines=1000)
  tokenizer = pipeline.learn_tokenizer(data, 290)
  assert pipeline.learn_tokenizer(with_rows, 290).fingerprint() == tokenizer.fingerprint()
  one, other = packed(with_rows), packed(data)
  np.testing.assert_array_equal(one.rows[:], other.rows[:])
  assert one.rows.dtype == other.rows.dtype and one.rows.shape == other.rows.shape and one.report == other.report


@pytest.mark.parametrize("duplicates", [None, "pairs", "sources", "targets"])
def test_cleaning_is_that_of_clean(tmp_path, duplicates):
  write_corpus(tmp_path)
  for language in ("en", "de"):
    lines = (tmp_path / f"text.{language}").read_text().splitlines(keepends=True)
    other = ["\n", "same\n"] if language == "en" else ["x\n", "same\n"]
    # Two pairs that break a rule, so that two others with the source of one and the target of the other are no repeats.
    broken = ["elf neun elf zwei\n", "x\n"] if language == "en" else ["x\n", "elf zwei acht elf\n"]
    good = (
      ["elf neun elf zwei\n", "acht acht elf\n"] if language == "en" else ["neun acht elf\n", "elf zwei acht elf\n"]
    )
    (tmp_path / f"text.{language}").write_text("".join([*broken, *lines, *other, *lines[100:150], *other, *good]))
  rules = Rules(copies=False, min_length=2)
  new = [tmp_path / f"cleaned.{language}" for language in ("en", "de")]
  pairs = TextPairs(str(tmp_path / "text"), "en", "de")
  expected = clean_files.clean(pairs, rules_by_reason(rules), duplicates, *new, None)
  folder = tmp_path / "prepared"
  with_rows = prepare(text(str(tmp_path / "text"), row_length=64), folder, rules=rules, duplicates=duplicates)
  report = preparation.cleaning_report(epath.Path(folder))
  assert (report.read, report.left_out) == (expected.read, expected.left_out)
  tokenizer = pipeline.learn_tokenizer(with_rows, 290)
  assert pairs_in(packed(with_rows).rows[:], tokenizer) == Counter(TextPairs(str(tmp_path / "cleaned"), "en", "de"))
  assert (
    tokenizer.fingerprint()
    == SentencePieceTokenizer.learn((side for pair in pairs_of(tmp_path) for side in pair), 290).fingerprint()
  )


def pairs_of(folder):
  """The pairs that pass the rules above, with duplicates."""
  return [
    (source, target)
    for source, target in TextPairs(str(folder / "text"), "en", "de")
    if source and source != target and min(len(source.split()), len(target.split())) > 1
  ]


def test_each_host_reads_the_rows_of_its_share_alone(made, monkeypatch):
  """Two hosts together have the batches of one, which are those of the same rows in memory."""
  found = packed(made[1])
  in_memory = dataclasses.replace(found, rows=found.rows[:])
  one = Batches(in_memory, 13, seed=3, multiple=2)
  read = []
  getitems = type(found.rows._source).__getitems__
  monkeypatch.setattr(type(found.rows._source), "__getitems__", lambda *args: read.append(args[1]) or getitems(*args))
  hosts = [Batches(found, 13, seed=3, multiple=2, host=host, hosts=2) for host in range(2)]
  for step in (0, 1, 7, 500):
    shares = [batches[step] for batches in hosts]
    np.testing.assert_array_equal(np.concatenate([share.rows for share in shares]), one[step].rows)
    np.testing.assert_array_equal(np.concatenate([share.indices for share in shares]), one[step].indices)
    numbers = one.rows_of(step).tolist()
    assert read == [numbers[:7], numbers[7:]]
    read.clear()
  idle = Batches(found, 1, seed=3, multiple=2, host=1, hosts=2)[0]  # a batch of one row, and two hosts
  assert idle.rows.shape == (1, 4, 16) and not idle.rows.any() and not read


def test_a_file_that_cannot_be_written_whole_does_not_get_its_name(tmp_path):
  def rows():
    yield np.zeros((3, 4, 16), np.uint16)
    raise InputError("no more")

  with pytest.raises(InputError, match="no more"):
    shards.write_shard(epath.Path(tmp_path), "00000-00000.array_record", rows())
  assert not [*tmp_path.iterdir()]
  with pytest.raises(RunError, match=r"cannot write .*nowhere"):
    shards.write_shard(epath.Path(tmp_path / "nowhere"), "00000-00000.array_record", iter([]))


def test_a_new_beginning_deletes_what_was_left_behind_and_nothing_else(made, own):
  data, folder = own
  tokenizer = pipeline.learn_tokenizer(data, 290)
  with pytest.raises(InputError, match="prepared is prepared already: train with it, delete it, or choose another"):
    preparation.begin(epath.Path(folder), tokenizer)
  (folder / "manifest.json").unlink()
  (folder / f".00000-00001.array_record.{'a' * 32}.tmp").touch()
  (folder / "notes").touch()
  with pytest.raises(InputError, match="notes is none of the files of a prepared text: choose another --output"):
    preparation.begin(epath.Path(folder), tokenizer)
  (folder / "notes").unlink()
  preparation.begin(epath.Path(folder), tokenizer)
  assert [path.name for path in folder.iterdir()] == ["tokenizer.model"]


def refused(data, error, match, tokenizer=None):
  with pytest.raises(error, match=match) as caught:
    found = packed(data, tokenizer)
    found.rows[:]
  assert "\n" not in str(caught.value)


def test_what_was_not_prepared_to_its_end_is_refused(own, tmp_path):
  data, folder = own
  (folder / "manifest.json").unlink()
  refused(data, InputError, "has no manifest.json: it was not prepared to its end; make it with")
  refused(dataclasses.replace(data, train=str(tmp_path / "none")), InputError, "none is no folder; make it with")
  (tmp_path / "file").touch()
  refused(dataclasses.replace(data, train=str(tmp_path / "file")), InputError, "file is no folder; make it with")
  refused(
    dataclasses.replace(data, train="gs://bucket/prepared"), InputError, "is in a bucket, where ArrayRecord cannot"
  )


@pytest.mark.parametrize(
  ("keys", "match"),
  [
    ({"row_length": 17}, r"config\.data\.row_length = 16, not 17: set it to that, or prepare the text anew"),
    ({"max_length": 15}, r"config\.data\.max_length = 16, not 15"),
    ({"target_language": "fr"}, r"config\.data\.target_language = 'de', not 'fr'"),
    ({"source_language": "de", "target_language": "en"}, r"config\.data\.source_language = 'en', not 'de'"),
  ],
)
def test_another_config_is_refused(made, keys, match):
  refused(dataclasses.replace(made[1], **keys), InputError, match)


def test_another_vocabulary_is_refused(made, tmp_path):
  data, with_rows = made
  refused(with_rows, InputError, "with another vocabulary than that of this run", pipeline.learn_tokenizer(data, 289))
  with pytest.raises(InputError, match=r"config\.model\.vocab_size is 289, but .*prepared has 290 tokens"):
    pipeline.learn_tokenizer(with_rows, 289)


def test_it_has_no_text(made):
  with pytest.raises(InputError, match="prepared has packed rows and no text: name the text that it was prepared from"):
    pipeline.read_pairs(made[1], made[1].train)
  for keys in ({"validation": made[1].train}, {"bpe_dropout": 0.1}, {"tags": True}):
    with pytest.raises(InputError, match=r"^config\.data\."):
      dataclasses.replace(made[1], **keys)
  with_text = dataclasses.replace(made[1], validation=made[0].train)
  assert pipeline.read_pairs(with_text, with_text.validation, 3) == [*TextPairs(made[0].train, "en", "de")][:3]


NAME = "00000-00002.array_record"


def change(folder, **values):
  """Changes the third file's entry in the manifest, or, by name, the rest of it."""
  path = folder / "manifest.json"
  found = json.loads(path.read_text())
  entry = found["shards"][2]
  for key, value in values.items():
    (entry if key in entry else found)[key] = value
  path.write_text(json.dumps(found))


@pytest.mark.parametrize(
  "values",
  [
    {"name": "../00000-00000.array_record"},
    {"name": "/etc/passwd"},
    {"name": "00000-00001.array_record"},  # twice
    {"name": 3},
    {"rows": -1},
    {"rows": 0},
    {"rows": 1 << 40},  # more than the file's bytes can hold
    {"rows": 1.5},
    {"rows": True},
    {"size": "large"},
    {"shards": []},
    {"shards": 5},
    {"settings": {}},
    {"counts": {"pairs": 5}},
    {"format": 2},
  ],
)
def test_a_manifest_of_something_else_is_refused(own, values):
  data, folder = own
  change(folder, **values)
  refused(data, InputError, "manifest.json is not what this version of `transformer-jax prepare` writes")


def test_a_manifest_that_is_no_json_is_refused(own):
  data, folder = own
  for content in (b"[" * 100_000, b"\xff", b'{"format": 1, "format": 1}', b"null"):
    (folder / "manifest.json").write_bytes(content)
    refused(data, InputError, "manifest.json (cannot be read|is not what)")


def test_files_that_are_not_those_of_the_manifest_are_refused(own, tmp_path):
  data, folder = own
  content = (folder / NAME).read_bytes()
  (folder / NAME).write_bytes(content[:-1])
  refused(
    data, InputError, rf"{NAME} has {len(content) - 1:,} bytes in place of {len(content):,}: copy the folder again"
  )
  (folder / NAME).unlink()
  refused(data, InputError, f"{NAME} is not there: copy the folder again")
  (tmp_path / "elsewhere").write_bytes(content)
  (folder / NAME).symlink_to(tmp_path / "elsewhere")
  refused(data, InputError, f"{NAME} is a link that leads out of the folder")
  (folder / NAME).unlink()
  os.mkfifo(folder / NAME)
  refused(data, InputError, f"{NAME} is neither a file nor a folder")


def test_a_flipped_bit_is_seen_when_its_row_is_read(own):
  data, folder = own
  content = bytearray((folder / NAME).read_bytes())
  content[200] ^= 1
  (folder / NAME).write_bytes(content)
  refused(data, RunError, rf"cannot read the rows in {re.escape(str(folder))}: .*; copy its files again")


def replace_shard(folder, rows):
  (folder / NAME).unlink()
  shard = shards.write_shard(epath.Path(folder), NAME, iter([rows]))
  assert shard
  change(folder, **shard._asdict())


def test_records_that_are_no_rows_are_refused(own):
  data, folder = own
  replace_shard(folder, np.zeros((5, 4, 15), np.uint16))
  refused(data, RunError, "has a record that is no row of 16 tokens: prepare the text anew")
  replace_shard(folder, np.full((5, 4, 16), 290, np.uint16))
  refused(data, RunError, "has a token that is not of its vocabulary: prepare the text anew")
  replace_shard(folder, np.full((5, 4, 16), 289, np.uint16))
  assert packed(data).rows[:].max() == 289


@pytest.mark.parametrize(
  ("source", "target", "is_refused"), [(6, 10, False), (7, 10, True), (6, 11, True)], ids=["both", "source", "target"]
)
def test_each_side_has_the_tokens_of_its_own_vocabulary(tmp_path, source, target, is_refused):
  rows = np.zeros((3, 4, 5), np.uint16)
  rows[1, SOURCE, 2], rows[2, TARGET, 3] = source, target
  shard = shards.write_shard(epath.Path(tmp_path), NAME, iter([rows]))
  found = PreparedRows(epath.Path(tmp_path), [shard], 5, (7, 11))
  with pytest.raises(RunError, match="a token that is not of its vocabulary") if is_refused else nullcontext():
    np.testing.assert_array_equal(found[:], rows)


def test_another_text_has_another_fingerprint(made, own, tmp_path):
  data, folder = own
  assert packed(data).fingerprint == packed(made[1]).fingerprint
  rows = packed(data).rows[20:23]
  replace_shard(folder, rows[::-1])
  other = packed(data).fingerprint
  assert other != packed(made[1]).fingerprint
  replace_shard(folder, rows)
  assert packed(data).fingerprint not in (other, packed(made[1]).fingerprint)


def test_a_text_of_which_nothing_is_left_is_an_error(tmp_path):
  for language in ("en", "de"):
    (tmp_path / f"text.{language}").write_text("\n\nthis is longer than a row\n")
  skipped = (
    r"1 pair skipped, longer than 4 tokens \(the longest has 2\d\); 2 left out: an empty side; check that both files"
  )
  with pytest.raises(InputError, match=f"no sentence pair is left: {skipped}"):
    prepare(text(str(tmp_path / "text"), row_length=4), tmp_path / "prepared", vocab_size=276)
  assert not (tmp_path / "prepared" / "manifest.json").exists()


def test_a_vocabulary_of_the_user_is_not_deleted(tmp_path):
  """Only files that this text's own preparation would write, or has written with rows, are left by a killed one."""
  made = SentencePieceTokenizer.learn(["abc ab"] * 5, 265)
  preparation.begin(epath.Path(tmp_path), made)
  preparation.begin(epath.Path(tmp_path), made)
  (tmp_path / "tokenizer.model").write_bytes(b"mine")
  with pytest.raises(InputError, match=r"tokenizer\.model is another vocabulary than that of this text"):
    preparation.begin(epath.Path(tmp_path), made)
  assert (tmp_path / "tokenizer.model").read_bytes() == b"mine"


def test_a_pair_longer_than_the_config_allows_is_left_out(tmp_path):
  data = text(write_corpus(tmp_path), row_length=31, max_length=13)
  with_rows = prepare(data, tmp_path / "prepared")
  tokenizer = pipeline.learn_tokenizer(with_rows, 290)
  fit = {
    most: Counter(
      pair for pair in TextPairs(data.train, "en", "de") if max(len(tokenizer.encode(side)) for side in pair) < most
    )
    for most in (13, 31)
  }
  assert pairs_in(packed(with_rows).rows[:], tokenizer) == fit[13] < fit[31]


def test_a_file_has_the_rows_of_all_its_blocks(tmp_path):
  """A part that is larger than a window is packed in several."""
  rows = np.arange(13 * 4 * 7, dtype=np.uint16).reshape(13, 4, 7)
  shard = shards.write_shard(epath.Path(tmp_path), NAME, iter([rows[:8], rows[8:11], rows[11:]]))
  assert shard and shard.rows == 13
  np.testing.assert_array_equal(PreparedRows(epath.Path(tmp_path), [shard], 7, (13 * 4 * 7,))[:], rows)


def test_a_duplicate_is_left_out_of_its_own_corpus(tmp_path):
  """The second corpus repeats pairs of both."""
  write_corpus(tmp_path)
  for language in ("en", "de"):
    lines = (tmp_path / f"text.{language}").read_text().splitlines(keepends=True)
    (tmp_path / f"one.{language}").write_text("".join(lines[:101]))
    (tmp_path / f"two.{language}").write_text("".join([*lines[101:], *lines[151:170], *lines[:7]]))
  which = f"{tmp_path / 'one'};{tmp_path / 'two'}"
  with_rows = prepare(text(which, row_length=64), tmp_path / "prepared", lines=23, duplicates="pairs")
  tokenizer = pipeline.learn_tokenizer(with_rows, 290)
  assert pairs_in(packed(with_rows).rows[:], tokenizer) == Counter({*TextPairs(which, "en", "de")})


def test_a_vocabulary_that_another_process_has_put_there_makes_no_rows(tmp_path):
  made, own = (SentencePieceTokenizer.learn([text] * 7, 270) for text in ("ab cd ef", "gh ij kl"))
  preparation.begin(epath.Path(tmp_path / "rows"), made)
  message = "another process prepares another text in .*/rows: choose another --output"
  with pytest.raises(RunError, match=message):
    preparation._tokenizer(str(tmp_path / "rows"), own.fingerprint())
  assert preparation._tokenizer(str(tmp_path / "rows"), made.fingerprint()).fingerprint() == made.fingerprint()


def test_all_files_of_a_folder_may_be_open_at_once(made):
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  count = len([*Path(made[1].train).glob("*.array_record")])
  try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))
    packed(made[1])
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == count + 1024
  finally:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("name", ["manifest.json", "tokenizer.model"])
def test_no_file_outside_of_the_folder_is_read(own, tmp_path, name):
  data, folder = own
  (folder / name).rename(tmp_path / name)
  (folder / name).symlink_to(tmp_path / name)
  refused(data, InputError, f"{name} is a link that leads out of the folder")


def test_a_prepared_folder_may_be_in_the_home_folder(own, monkeypatch):
  data, folder = own
  monkeypatch.setenv("HOME", str(folder.parent))
  assert packed(dataclasses.replace(data, train="~/prepared")).fingerprint == packed(data).fingerprint
