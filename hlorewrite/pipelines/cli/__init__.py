"""``hlorewrite pipeline``: simulates and runs programs of several meshes."""
