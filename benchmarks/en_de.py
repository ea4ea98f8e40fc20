"""Everyday English to German: trains recipes on Tatoeba and news, and compares each with the first on both.

    python benchmarks/en_de.py --data DIR --runs DIR [--name NAME] [--train CORPUS ...] [--begin-with NAME]
      [--reverse] [--output DIR] [--KEY=VALUE ...]

DIR has tatoeba_en-de with train and valid, and wmt_news_en-de with the news sets, each .en.xz and .de.xz. Texts:

| corpus | train | valid | test |
|---|---|---|---|
| tatoeba | `train` without the validation text | every 80th English sentence of `train` | `valid` |
| news | news-test2008 to newstest2012 | newstest2013 | newstest2014 |
| back | the German of both, and translations of it by the recipe `reverse` | | |

All pairs with a validation sentence, on either side, are left out of the training. The texts are written to RUNS/text,
and counted.

NAME is the name of the recipe that the flags after it make; the first one is `before`. --train names the corpora, and
--begin-with the recipe whose parameters are the first ones. --reverse trains from German to English, and translates
the German of both corpora by drawing at random, each translation with the tag <BT> before it. A recipe is chosen by the
validation sets; the test sets are translated once for each recipe. The same command resumes after a stop, and repeats
nothing that OUTPUT has: `NAME.json`, and the translations `NAME.SPLIT.CORPUS.de`.

OUTPUT/table.md has, for each split and corpus, chrF2, BLEU and the paper's own BLEU ("Table 2") of all recipes that
OUTPUT has, and the p-value of a paired bootstrap against `before`. OUTPUT/curve.svg has the curves of their training.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import children
import compared
import programs
import report
from compared import Pair, Texts

from transformer_jax.evaluation.compounds import compound_split_bleu

CORPORA = ("tatoeba", "news")
LANGUAGES = ("en", "de")
BACK, REVERSE = "back", "reverse"
EVERY = 80
NEWS = {
  "train": ("news-test2008", "newstest2009", "newstest2010", "newstest2011", "newstest2012"),
  "valid": ("newstest2013",),
  "test": ("newstest2014",),
}


def main() -> None:
  children.end_children()
  args, keys = parse()
  runs, output, texts = compared.begun(args, LANGUAGES, CORPORA, write_texts)
  if args.reverse:
    back_translate(runs / REVERSE, texts, args.train, keys)
    return
  if args.begin_with:
    keys = [f"train.init_from={runs / args.begin_with}", *keys]
  recipe = compared.Recipe(args.name, "en_de.py", tuple(args.train), tuple(keys))
  compared.make(recipe, runs / args.name, texts, output)
  report.write_table(compared.table(texts, output, "13a", as_the_paper), output / "table.md")
  compared.draw(output)


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="Everyday English to German.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with the two corpora")
  add("--runs", required=True, metavar="DIR", help="where the texts and run folders are made, or found")
  add("--name", default=compared.FIRST, help="of the recipe (default before)")
  add("--train", nargs="+", choices=(*CORPORA, BACK), default=["tatoeba"], help="(default tatoeba)")
  add("--begin-with", default="", metavar="NAME", help="the recipe whose parameters are the first ones")
  add("--reverse", action="store_true", help="train from German to English, and make the corpus `back`")
  add("--output", default="docs/results/en_de", metavar="DIR", help="(default docs/results/en_de)")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def write_texts(data: Path, texts: Texts) -> None:
  """Writes train, valid and test of both corpora, and last their numbers of pairs."""
  tatoeba = data / "tatoeba_en-de"
  whole = compared.pairs(tatoeba / "train", LANGUAGES)
  news = data / "wmt_news_en-de"
  splits = {
    "tatoeba": {"train": whole, "valid": sample(whole), "test": compared.pairs(tatoeba / "valid", LANGUAGES)},
    "news": {
      split: [pair for name in names for pair in compared.pairs(news / name, LANGUAGES)]
      for split, names in NEWS.items()
    },
  }
  held_out = [pair for corpus in splits.values() for split in ("valid", "test") for pair in corpus[split]]
  counts = {}
  for name, corpus in splits.items():
    corpus["train"] = compared.without(corpus["train"], held_out)
    counts[name] = {split: len(some) for split, some in corpus.items()}
    for split, some in corpus.items():
      texts.write(name, split, some)
  (texts.folder / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")


def sample(pairs: Iterable[Pair]) -> list[Pair]:
  """The first pair of every 80th source sentence, in their order."""
  first: dict[str, Pair] = {}
  for pair in pairs:
    first.setdefault(pair.source, pair)
  return list(first.values())[::EVERY]


def back_translate(run: Path, texts: Texts, corpora: Sequence[str], keys: Sequence[str]) -> None:
  """Trains the recipe `reverse`, and makes the corpus `back` of the German of both corpora."""
  german = texts.folder / "german"
  german.write_text("".join(f"{line}\n" for corpus in CORPORA for line in texts.lines(corpus, "train", 1)))
  languages = [f"data.source_language={LANGUAGES[1]}", f"data.target_language={LANGUAGES[0]}"]
  compared.train(compared.Recipe(REVERSE, "en_de.py", tuple(corpora), (*languages, *keys)), run, texts)
  flags = ["--input", str(german), "--output", str(texts.folder / f"{BACK}.train"), "--tag", "<BT>", "--seed", "1"]
  children.command(["backtranslate", "--workdir", str(run), *flags])


def as_the_paper(translations: list[str], reference: list[str]) -> dict[str, str]:
  return {"Table 2": f"{compound_split_bleu(translations, reference)[0]:.2f}"}


if __name__ == "__main__":
  programs.run(main)
