"""Programs of several meshes: pipelines of stages, their schedules, transfers, simulation and execution."""
