"""What a program communicates and what it costs: topologies, collective times, traffic, iteration time."""

from hlorewrite.cost.topology import Topology, load_topology, topology

__all__ = ["Topology", "load_topology", "topology"]
