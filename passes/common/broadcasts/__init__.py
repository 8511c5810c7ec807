"""Shared by passes that write broadcasts: pipelined chains, products with masks, what they become."""
