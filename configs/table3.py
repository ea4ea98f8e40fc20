"""Every row of the paper's Table 3, on WMT14 English to German: the base model with one thing changed.

    transformer-jax train --config=configs/table3.py:B-dk16 --workdir=runs/B-dk16
    transformer-jax plan --config=configs/table3.py:B-dk16

A row differs from `base.py` only by the fields that the table prints for it. `transformer_jax/paper/table3.py` has
these fields and the paper's results, which are of one checkpoint each, without averaging (§6.2). None of the rows has
been run.
"""

import dataclasses

from configs import base
from transformer_jax.config import Config
from transformer_jax.paper.table3 import ROWS
from transformer_jax.runtime.errors import InputError


def get_config(row: str = "base") -> Config:
  if row not in ROWS:
    raise InputError(f"{row!r} is not a row of Table 3; there are {', '.join(ROWS)}")
  config = base.get_config()
  return dataclasses.replace(
    config,
    model=dataclasses.replace(config.model, **ROWS[row].model),
    train=dataclasses.replace(config.train, **ROWS[row].train),
  )
