"""The path of a corpus to batches: sentence pairs, tokens, packed rows, their order."""
