"""Trees of arguments as ``jax.export`` can write them: types that it cannot write become tuples."""

from typing import Any

import jax

from hlorewrite.jaxbridge.xla import private


def plain_tree(tree: Any) -> Any:
    """The same tree, with a tuple in place of each node that ``jax.export`` cannot write.

    The leaves keep their order and number. Nodes that it can write stay: tuples, lists, ``None``, dictionaries with
    text keys, and types that the user registered with ``jax.export.register_pytree_node_serialization``.

    Args:
      tree: the structure of arguments or results, a ``jax.tree_util.PyTreeDef``.

    Example:
      >>> import collections
      >>> State = collections.namedtuple("State", "count mu")
      >>> plain_tree(jax.tree.structure({"opt": State(0, [1, 2])}))
      PyTreeDef({'opt': (*, [*, *])})
    """
    node = tree.node_data()
    if node is None:
        return jax.tree.structure(0)  # JAX traces with a separate registry, in which files cannot be written
    children = [plain_tree(child) for child in tree.children()]
    if not _is_written(*node):
        return jax.tree_util.treedef_tuple(children)
    return type(tree).from_node_data_and_children(jax.tree_util.default_registry, node, children)


def _is_written(kind: type, keys: Any) -> bool:
    if kind in (tuple, list, type(None)):
        return True
    return all(isinstance(key, str) for key in keys) if kind is dict else private.is_written_by_export(kind)
