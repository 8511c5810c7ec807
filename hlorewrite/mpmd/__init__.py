"""Programs of several meshes (the ``mpmd`` dialect): as plain data, as one SPMD view for each mesh, and back."""
