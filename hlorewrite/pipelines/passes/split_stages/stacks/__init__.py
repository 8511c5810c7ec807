"""Shared by split-stages: layers in loops and stacked tensors, cut at stage boundaries."""
