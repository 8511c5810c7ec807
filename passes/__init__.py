"""The shipped passes, one a file or folder. A pass of a user imports ``passes.api``."""

if __name__ != "hlorewrite.passes":
    raise ImportError("import hlorewrite.passes")
