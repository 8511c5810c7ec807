"""``--diff``: what changed between two texts of a module, SSA names set aside."""

import difflib
import re

_SSA = re.compile(r"%[A-Za-z_0-9$.-]+(?:#\d+)?|#loc\d*|\^bb\d+")


def module_diff(before: str, after: str, name: str, context: int = 3) -> str:
    """A unified diff in which lines that differ in SSA names alone count as equal.

    Args:
      before: text of the module.
      after: text of the rewritten module.
      name: the file's name, for the heading.
      context: unchanged lines to show around changes.

    Returns:
      The diff, empty when nothing but names changed.

    Example:
      >>> print(module_diff("%0 = a\\n%1 = b\\n", "%5 = a\\n%6 = c\\n", "x.mlir"), end="")
      --- x.mlir (before)
      +++ x.mlir (after)
      @@ -1,2 +1,2 @@
       %5 = a
      -%1 = b
      +%6 = c
    """
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, *([_SSA.sub("%", line) for line in lines] for lines in (old, new)),
                                      autojunk=False)
    out: list[str] = []
    for group in matcher.get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        out.append(f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@")
        for tag, a0, a1, b0, b1 in group:
            if tag == "equal":
                out += [f" {line}" for line in new[b0:b1]]
                continue
            out += [f"-{line}" for line in old[a0:a1]]
            out += [f"+{line}" for line in new[b0:b1]]
    if not out:
        return ""
    return "\n".join([f"--- {name} (before)", f"+++ {name} (after)", *out]) + "\n"
