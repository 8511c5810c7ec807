"""``hlorewrite`` with one more pass, ``wrong``, that turns multiplications into additions."""

import sys
from dataclasses import dataclass

from hlorewrite.cli.main import guarded
from hlorewrite.passmanager import registry
from hlorewrite.passmanager.base import Pass


@dataclass(frozen=True)
class Wrong(Pass):
    """Turns multiplications into additions."""

    name = "wrong"

    def run(self, module, ctx):
        editor = ctx.editor(module)
        for op in ctx.view(module).ops("stablehlo.multiply"):
            made = editor.create("stablehlo.add", list(op.operands), [op.results[0].type], location=op.location,
                                 before=op)
            editor.replace(op.results[0], made.results[0])
            editor.erase(op)
        return True


registry.plugin_passes = lambda: {"wrong": (Wrong, "test")}
sys.exit(guarded(sys.argv[1:]))
