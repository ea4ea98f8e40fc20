"""Looking inside a model: attention as data, as pictures and as a page."""
