"""Plans: cross-mesh resharding, and pipeline schedules with their simulator."""
