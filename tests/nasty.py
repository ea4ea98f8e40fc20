"""Texts that trip programs up, and strategies of Hypothesis that make more of them."""

from hypothesis import strategies as st

PIECES = [
  *(" ", "  ", "\t", "\0", "\x01", "\x1b[2J", "\x7f", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\xa0"),
  *("\u2028", "\u2029", "\u3000", "\ufeff", "\u200b", "\u200d", "\u200e", "\ufffe", "\uffff", "\ufffd", "\u2047"),
  *(
    "\u2581",
    " \u2581 ",
    "\u2585",
    "e\u0301",
    "\u0301",
    "\xe9",
    "ﬁ",
    "½",
    "한",
    "\u1112\u1161\u11ab",
    "Z\u0351\u036b\u0343",
  ),
  *("שלום", "\u202eabc", "\u2067x\u2069", "👩\u200d👩\u200d👧", "🇰🇷", "🏴\U000e0067\U000e007f", "\U0010ffff", "\ue000"),
  *("<s>", "</s>", "<pad>", "<unk>", "<0x41>", "horse", " a", "über ", "a.b! c", "NULL", "../", "{}", "%s%n"),
]
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\n")
# Lines without line feed, the only character that ends one.
LINES = st.lists(st.sampled_from(PIECES) | CHARACTERS, max_size=30).map("".join) | st.text(CHARACTERS)
