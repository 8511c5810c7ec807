"""From a plan to a StableHLO module: flows, rounds, text."""
