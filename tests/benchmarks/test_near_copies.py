"""benchmarks/near_copies.py: similarities by hand, and scores with and without the near-copies."""

import json

import pytest

pytest.importorskip("rapidfuzz")


def test_near_copies(program):
  near_copies = program("near_copies")
  train = [near_copies.words(text) for text in ("Return the end of the match.", "", "x y")]
  for text, expected in (
    ("return the start of the match.", True),  # 6 of 7 words: 12 / 14
    ("Return the end.", True),  # 4 of 4: 8 / 11
    ("the match.", False),  # 3 of 3: 6 / 10
    ("match the of end the return", False),
    ("", False),
  ):
    assert near_copies.near_copies([near_copies.words(text)], train, 0.7) == [expected], text


def test_rows(program, tmp_path):
  near_copies, compared, en_ko = program("near_copies"), program("compared"), program("en_ko")
  texts = compared.Texts(tmp_path / "text", en_ko.LANGUAGES, ("a", "b"))
  sources = ["one two three four", "five six seven eight"]
  for corpus, split, lines in (("a", "train", ["five six seven"]), ("b", "train", ["z"])):
    texts.write(corpus, split, [compared.Pair(line, line) for line in lines])
  for corpus in texts.scored:
    for split in compared.SPLITS:
      texts.write(corpus, split, [compared.Pair(source, f"참조 문장 {source}") for source in sources])
      right = f"참조 문장 {sources[0]}"
      (tmp_path / f"before.{split}.{corpus}.ko").write_text(f"{right}\nx\n")
  (tmp_path / "before.json").write_text(json.dumps({}))
  found = near_copies.rows(texts, tmp_path, 0.7)
  assert [(row["split"], row["corpus"], row["lines"], row["near-copies"]) for row in found] == [
    (split, corpus, 2, 1) for split in compared.SPLITS for corpus in texts.scored
  ]
  for row in found:
    assert row["without, before"] == "100.00, 100.00" and float(row["all, before"].split(", ")[0]) < 90
