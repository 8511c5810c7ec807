"""The interface for user passes: the base class, the module and its ops, sizes, remarks.

The names here stay; the modules that define them may move.
"""

from hlorewrite.errors import PassFailed
from hlorewrite.ir import COLLECTIVES, Editor, Module, ir, parse, tensor_bytes
from hlorewrite.ir.view import View, op_key
from hlorewrite.passes.all_reduce_fusion.members import NO_FUSE
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passmanager.base import Pass, PassContext

__all__ = ["COLLECTIVES", "NO_FUSE", "Editor", "Module", "Pass", "PassContext", "PassFailed", "View", "ir", "op_key",
           "parse", "tell", "tensor_bytes"]
