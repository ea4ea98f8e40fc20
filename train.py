"""`python train.py ...` is the same as `transformer-jax train ...`, for use in a checkout."""

import sys

from transformer_jax.__main__ import program

if __name__ == "__main__":
  sys.exit(program(["train", *sys.argv[1:]]))
