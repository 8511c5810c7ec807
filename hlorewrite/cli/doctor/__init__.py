"""hlorewrite doctor: what is installed, which settings hold, and what works here."""
