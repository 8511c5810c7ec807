"""Clusters: hosts, GPUs, links and network ports, and the files that describe them."""
