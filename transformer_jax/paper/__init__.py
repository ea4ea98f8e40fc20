"""What the paper states: `contract` has it with checks; Table 1 and Table 3 are here too."""
