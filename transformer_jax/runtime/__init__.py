"""The machine: devices, hosts, files, streams, and how errors reach the user. It knows nothing of models."""
