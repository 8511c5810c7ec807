"""Channel handles of collectives, sends and receives."""

from hlorewrite.ir.binding import ir, stablehlo
from hlorewrite.ir.collectives import CHANNEL


def channel_number(op: ir.Operation) -> int:
    """The number of an op's channel; 0 when it has none.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse('func.func @f(%a: tensor<f32>) -> tensor<f32> { %b = "stablehlo.collective_permute"(%a) '
      ...                   '<{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, '
      ...                   'source_target_pairs = dense<0> : tensor<1x2xi64>}> : (tensor<f32>) -> tensor<f32> '
      ...                   'return %b : tensor<f32> }'))
      >>> channel_number(view.ops("stablehlo.collective_permute")[0])
      7
    """
    return stablehlo.ChannelHandle(op.attributes[CHANNEL]).handle if CHANNEL in op.attributes else 0


def renumbered(op: ir.Operation, number: int) -> ir.Attribute:
    """The channel handle of an op with another number.

    Args:
      op: an op with a channel.
      number: the number.
    """
    return stablehlo.ChannelHandle.get(number, stablehlo.ChannelHandle(op.attributes[CHANNEL]).channel_type, op.context)
