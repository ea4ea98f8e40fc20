"""Table 2 (§6.1): BLEU and training cost of each system, and the costs recomputed from devices and days."""
