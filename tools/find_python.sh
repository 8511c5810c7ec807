# Prints the Python that make takes: the newest supported one of this machine, on the path or of pyenv, whose shims need
# not run. A python3 that you put first on the path by its own folder (a virtual environment, a version of pyenv, conda)
# is the one you mean, if it is supported.
version_of() {
  "$1" -c 'import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}
first=$(command -v python3)
case "$first" in
  "" | /bin/* | /usr/* | */shims/*) ;;
  *) case "$(version_of "$first")" in 3.11 | 3.12 | 3.13) echo "$first"; exit 0 ;; esac ;;
esac
for version in 3.13 3.12 3.11; do
  for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python python3; do
    if [ "$(version_of "$candidate")" = "$version" ]; then
      command -v "$candidate"
      exit 0
    fi
  done
done
echo python3
