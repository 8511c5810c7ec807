"""Times of single collectives: measured curves, NCCL's tuning model, and placement of ranks."""
