"""The results of an HLO program that alias arguments, and the arguments that are donated for any result."""

import re

_ENTRY = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}")
_DONOR = re.compile(r"\((\d+),\s*\{([\d,\s]*)\}\)")


def _section(header: str, key: str) -> str:
    start = header.find(f" {key}={{")
    if start < 0:
        return ""
    begin = depth = 0
    for at in range(start, len(header)):
        depth += (header[at] == "{") - (header[at] == "}")
        begin = begin or at * (header[at] == "{")
        if begin and depth == 0:
            return header[begin:at + 1]
    return ""


def aliases(header: str) -> frozenset[tuple[str, str]]:
    """Each aliased result with its argument, from a header line of HLO.

    Example:
      >>> sorted(aliases("HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }, num_partitions=2"))
      [('0', '1')]
    """
    return frozenset((result.replace(" ", ""), f"{argument}{'.' if part else ''}{part.replace(' ', '')}")
                     for result, argument, part in _ENTRY.findall(_section(header, "input_output_alias")))


def donors(header: str) -> frozenset[str]:
    """The arguments whose memory any result may take.

    Example:
      >>> sorted(donors("HloModule m, buffer_donor={ (0, {}), (3, {}) }"))
      ['0', '3']
    """
    return frozenset(f"{argument}{'.' if part else ''}{part.replace(' ', '')}"
                     for argument, part in _DONOR.findall(_section(header, "buffer_donor")))


def alias_fault(before: str, after: str) -> str:
    """Illegal changes that a pass made to the sharing of memory; empty if there are none.

    Args:
      before: the header line of the program that the pass read.
      after: that of the program it left.

    Example:
      >>> alias_fault("HloModule m", "HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }")
      'result 0 takes the memory of argument 1, which the program before does not donate'
    """
    held, made = aliases(before), aliases(after)
    for result, argument in sorted(made - held):
        if argument not in donors(before):
            return (f"result {result or '()'} takes the memory of argument {argument}, which the program before does "
                    "not donate")
    for result, argument in sorted(held - made):
        return f"result {result or '()'} shares no memory with argument {argument} any more"
    return ""
