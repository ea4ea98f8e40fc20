"""The paper's big model (Table 3) on WMT14 (§5): English to German, or with `:en-fr` English to French.

    transformer-jax train --config=configs/big.py:en-fr --workdir=runs/big-fr
    transformer-jax average --workdir=runs/big-fr --last=20 --output=runs/big-fr-average

Data and batch are those of `base.py`. A run makes 300,000 updates, with dropout 0.3 for German and 0.1 for French. §6.1
averages the last twenty checkpoints; how often they are written it says of the base model alone: every ten minutes. At
the paper's 1.0 s per step that is every 600 steps.

This config has not been run to the end; `docs/accelerators.md` has its speed on an H200. `transformer-jax plan
--config=configs/big.py` counts 214,171,648 parameters and 1.01e19 operations for the whole run. The paper took 3.5 days
on 8 P100 and reports a BLEU of 28.4 (German) and 41.8 (French).
"""

import dataclasses

from configs import base
from transformer_jax.config import Config

DROPOUT = {"en-de": 0.3, "en-fr": 0.1}


def get_config(direction: str = "en-de") -> Config:
  config = base.get_config(direction)
  model = dataclasses.replace(config.model, d_model=1024, d_ff=4096, num_heads=16, dropout=DROPOUT[direction])
  train = dataclasses.replace(config.train, steps=300_000, save_every=600, keep=20)
  evaluate = dataclasses.replace(config.evaluate, every=4200)  # a multiple of save_every
  return dataclasses.replace(config, model=model, train=train, evaluate=evaluate)
