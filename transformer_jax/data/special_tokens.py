"""BERT's special tokens in the vocabulary that every model here has.

BOS stands for [CLS] and EOS for [SEP]. UNK stands for [MASK]: no text ever has it, as what no piece can spell is
spelled in bytes.
"""

from transformer_jax.data.tokenizer import BOS, EOS, UNK

CLS, SEP, MASK = BOS, EOS, UNK
FIRST_PIECE = 4  # smaller numbers are special
