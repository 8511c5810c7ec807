"""Programs of several meshes (the ``mpmd`` dialect), and one SPMD view for each mesh."""
