"""The program around the training step: its loop, its log and its curves."""
