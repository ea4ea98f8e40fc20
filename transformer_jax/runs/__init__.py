"""The run folder: what training leaves and decoding reads."""
