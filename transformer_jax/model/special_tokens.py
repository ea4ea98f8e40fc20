"""The special tokens of the vocabularies that are learned here.

BERT's share their numbers: BOS is [CLS] and EOS is [SEP]. UNK is [MASK]: no text has it, as characters without a
piece are spelled in bytes.
"""

PAD, UNK, BOS, EOS = range(4)
CLS, SEP, MASK = BOS, EOS, UNK
FIRST_PIECE = 4  # smaller numbers are special
