"""The tokens that are no text, in the vocabulary that every model here has.

BERT's have no numbers of their own. BOS stands for [CLS] and EOS for [SEP]. UNK stands for [MASK]: no text ever has
it, as what no piece can spell is spelled in bytes.
"""

PAD, UNK, BOS, EOS = range(4)
CLS, SEP, MASK = BOS, EOS, UNK
FIRST_PIECE = 4  # smaller numbers are special
