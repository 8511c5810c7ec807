"""What a pass is, pipeline text, registry, manager, verification, dumps, remarks."""
