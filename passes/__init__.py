"""The shipped passes, one a file."""

if __name__ != "hlorewrite.passes":
    raise ImportError("import hlorewrite.passes")
