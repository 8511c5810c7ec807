"""The pass manager: passes as frozen dataclasses, their text form, running, dumps, remarks, traces."""
