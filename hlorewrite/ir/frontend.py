"""Frontend attributes: named settings of a StableHLO op for XLA's own passes."""

from hlorewrite.ir.binding import ir

FRONTEND = "mhlo.frontend_attributes"
COMBINER_KEY = "combiner_key"
"""XLA's combiners leave collectives of different keys apart."""
STREAM = "_xla_stream_annotation"
"""The number of the stream that XLA:GPU runs a call or a collective on."""


def frontend_attributes(op: ir.Operation) -> dict[str, str]:
    """The frontend attributes of an op."""
    if FRONTEND not in op.attributes:
        return {}
    return {entry.name: ir.StringAttr(entry.attr).value if isinstance(entry.attr, ir.StringAttr) else str(entry.attr)
            for entry in ir.DictAttr(op.attributes[FRONTEND])}


def with_frontend(op: ir.Operation, name: str, value: str) -> ir.Attribute:
    """The frontend attributes of an op with one added or changed."""
    with op.context:
        merged = {**frontend_attributes(op), name: value}
        return ir.DictAttr.get({each: ir.StringAttr.get(text) for each, text in sorted(merged.items())})
