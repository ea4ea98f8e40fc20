"""The parameters, memory and operations of a config or a function, counted before anything runs."""
