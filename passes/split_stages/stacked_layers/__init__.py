"""Layers in loops, and tensors that stack what belongs to several stages: cut at stage boundaries for split-stages."""
