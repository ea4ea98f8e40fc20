"""Looking inside models and runs: attention as data, pictures and pages; the report of a run."""
