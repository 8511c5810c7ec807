"""HLO text that people write by hand or that an older XLA printed, read by XLA's own parser."""

import re

from hlorewrite.errors import InputError
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.ir import Module, parse
from hlorewrite.jaxbridge.xla import private

_AT = re.compile(r"was parsing (\d+):(\d+): error: (.*)")


def printed_by_xla(text: str, name: str, unread: InputError) -> str:
    """Reprints through XLA HLO text that ``hlo.parse`` does not read.

    Args:
      text: HLO in any form that XLA's parser accepts: instructions over several lines, without indentation, shapes or
        a header, with comments.
      name: the name of the file, for messages.
      unread: why ``hlo.parse`` does not read it.

    Raises:
      InputError: XLA's parser does not read it either: the line and the column where it stops.

    Example:
      >>> written = "HloModule m\\nENTRY e {\\np = f32[2] parameter(0)\\nROOT n = f32[2]\\n negate(p)\\n}"
      >>> print(printed_by_xla(written, "m.hlo", InputError("")).splitlines()[4])
        ROOT %n = f32[2]{0} negate(%p)
    """
    try:
        printed = private.printed_hlo(text)
    except Exception as error:  # of jaxlib's own type, which differs between versions
        at = _AT.search(str(error))
        if at is None:
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(f"{unread.what}; XLA's parser refuses it too ({first[0]})", location=name,
                             hint=unread.hint) from None
        raise InputError(f"XLA's parser of HLO stops here ({at[3]})", location=f"{name}:{at[1]}:{at[2]}",
                         hint="correct the line, or pass HLO as XLA prints it") from None
    try:
        parse_hlo(printed)
    except InputError as error:
        error.location = error.location or name
        raise
    return printed


def stablehlo_of(text: str, name: str, fault: str, hint: str) -> Module:
    """HLO text as jaxlib imports it to StableHLO, with what its importer adds.

    Args:
      text: HLO as XLA prints it.
      name: the name of the file, for messages.
      fault: what an error says went wrong, before jaxlib's own words.
      hint: what to do then.

    Raises:
      InputError: this jaxlib does not read the text, or cannot write it as StableHLO.
    """
    try:
        return parse(private.hlo_to_stablehlo(private.hlo_text_to_proto(text)), name=name)
    except Exception as error:  # of jaxlib's own type, which differs between versions
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{fault} ({first[:200]})", location=name, hint=hint) from None
