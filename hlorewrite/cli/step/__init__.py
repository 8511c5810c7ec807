"""hlorewrite timeline and hlorewrite audit: a compiled step as schedule, and what it communicates without need."""
