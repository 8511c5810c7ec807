"""Times of single collectives: measured curves, NCCL's tuning model, placement of ranks."""
