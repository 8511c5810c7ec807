"""Runs a command and fails unless it exits with the given code: lit's ``not`` accepts every failure."""

import subprocess
import sys

code = subprocess.run(sys.argv[2:], check=False).returncode
if code != int(sys.argv[1]):
    sys.exit(f"exit code {code} instead of {sys.argv[1]}")
