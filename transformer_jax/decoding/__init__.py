"""Translation of sentences (§6.1), and text generation."""
