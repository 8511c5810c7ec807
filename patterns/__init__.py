"""The shipped rule files (``*.hlopat``) and their native predicates."""

if __name__ != "hlorewrite.patterns":
    raise ImportError("import hlorewrite.patterns")
