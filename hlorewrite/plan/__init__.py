"""Plans: cross-mesh resharding, pipeline schedules and their simulator."""
