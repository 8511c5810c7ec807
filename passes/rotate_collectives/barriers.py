"""Divides the barriers of rematerialised layers, which tie gathers to what the layer computes."""

from collections.abc import Sequence

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.regions import Loop
from hlorewrite.passes.rotate_collectives.split import needs_of


def separate_barriers(loop: Loop, collectives: Sequence[ir.Operation], editor: Editor) -> int:
    """Gives what collectives depend on a barrier of its own, where one barrier holds that and other values.

    ``jax.checkpoint`` passes all that a layer's backward pass reads through one barrier: parameters, residuals and the
    incoming gradient. XLA then waits for that gradient before it gathers the parameters. Each result of a barrier is
    its operand, so values stay the same. All values keep a barrier, so XLA does not merge them with the forward pass.

    Args:
      loop: the loop in whose body the barriers stand.
      collectives: of the body.
      editor: the editor of the module.

    Returns:
      How many barriers were divided.
    """
    parts = needs_of(loop, collectives).parts
    for barrier, positions in parts:
        others = [position for position in range(len(barrier.results)) if position not in positions]
        for group in (sorted(positions), others):
            made = editor.create(barrier.name, [barrier.operands[position] for position in group],
                                 [barrier.results[position].type for position in group], location=barrier.location,
                                 before=barrier)
            for position, result in zip(group, made.results, strict=True):
                editor.replace(barrier.results[position], result)
        editor.erase(barrier)
    return len(parts)
