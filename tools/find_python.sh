# Prints the newest supported Python of this machine: one on the path that runs, or one of pyenv, whose shims need not.
for version in 3.13 3.12 3.11; do
  for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python python3; do
    found=$("$candidate" -c 'import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
    if [ "$found" = "$version" ]; then
      command -v "$candidate"
      exit 0
    fi
  done
done
echo python3
