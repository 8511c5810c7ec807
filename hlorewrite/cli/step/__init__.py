"""hlorewrite compile, timeline, audit and tune: a compiled step, its schedule, and what it sends without need."""
