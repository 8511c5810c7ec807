"""The shipped passes: each a file, or a folder with the files only it uses. A pass of your own imports ``api``."""

if __name__ != "hlorewrite.passes":
    raise ImportError("import hlorewrite.passes")
