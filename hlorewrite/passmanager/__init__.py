"""The pass interface, pipeline text, registry, manager, verification, dumps, remarks."""
