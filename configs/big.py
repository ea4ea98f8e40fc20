"""The paper's big model (Table 3) on WMT14 English to German (§5): dropout 0.3, 300,000 steps.

    python train.py --config=configs/big.py --workdir=runs/big

Data and batch are those of `base.py`. Not run here.
"""

import dataclasses

from configs import base
from transformer_jax.config import Config


def get_config() -> Config:
  config = base.get_config()
  model = dataclasses.replace(config.model, d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)
  train = dataclasses.replace(config.train, steps=300_000, keep=20)
  return dataclasses.replace(config, model=model, train=train)
