"""``hlorewrite.pipeline``: a train step with stage marks, split over several meshes."""
