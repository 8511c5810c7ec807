"""The dataflow graph: nodes, equations between them, what is known on each process, groups of processes."""
