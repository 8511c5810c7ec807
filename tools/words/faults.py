"""The systematic faults of style that a pattern can find, each with what to write in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS_OF_A_SENTENCE = 45
EVERYWHERE = ("page", "heading", "comment", "string")
SENTENCES = ("page", "comment")


@dataclass(frozen=True)
class Fault:
    """A pattern of words that should not be in a text.

    Attributes:
      kind: class of the fault, as findings are counted.
      pattern: what is found, in lower or upper case.
      instead: what to write.
      kinds: kinds of passages that it is looked for in.
    """

    kind: str
    pattern: re.Pattern[str]
    instead: str
    kinds: tuple[str, ...] = EVERYWHERE


def _fault(kind: str, pattern: str, instead: str, kinds: tuple[str, ...] = EVERYWHERE) -> Fault:
    spaced = re.sub(r"(\(\?<[=!][^)]*\))| ", lambda match: match.group(1) or r" +", pattern)  # lines are wrapped
    return Fault(kind, re.compile(spaced, re.IGNORECASE), instead, kinds)


_NO = r"(?<!there )\b(is|are|was|were) no " \
      r"(?!(longer|more|less|other|better|worse|one|faster|larger|smaller|slower)\b)"

_BEGIN = r"(?:^|(?<=[.!?] ))"
_WHAT = r"(?-i:What|Whatever)\b(?![^.?]*\?)"
_SUBJECT = "the subject itself: `The compiler's options are …`, not `What the compiler is given is …`"

FAULTS: tuple[Fault, ...] = (
    _fault("agent", r"\b(some|no|any|every)body\b|\b(some|any|every)one\b|\bwho(so)?ever\b|\bno one\b",
           "name the thing or the reader: a user, an op, another process; or use the passive"),
    _fault("tell", r"\b(tell|tells|telling|told)\b",
           "report, return, show, state, detect; distinguish for `tell apart`"),
    _fault("metaphor", r"\bhand(s|ed|ing)? (on|back|over|down|out|in|it|them|values?|calls|pairs|to)\b",
           "forward, yield, return, pass, give"),
    _fault("metaphor", r"\b(is|are|was|were|been|be) looked at\b", "is read, is visited, is compared"),
    _fault("idiom", r"\bbut for\b", "except for"),
    _fault("idiom", r"\bto the byte\b", "byte for byte"),
    _fault("metaphor", r"\bmend(s|ed|ing)?\b", "fix, repair"),
    _fault("metaphor", r"\bbargain\b|\bfor good measure\b|\bat (its|their) mercy\b", "rarely pays, costs more"),
    _fault("metaphor", r"\bthe house\b|\bway of the data\b", "architecture, data flow"),
    _fault("metaphor", r"\bhears?\b", "is called with, receives"),
    _fault("metaphor", r"\blet(s|ting)? go( of)?\b|\bget(s)? away with\b", "frees, releases; fails the check"),
    _fault("metaphor", r"\bin vain\b", "unnecessarily, without need"),
    _fault("metaphor", r"\bcannot save it\b|\bsaves? it from\b", "cannot remove the excess"),
    _fault("negated noun", _NO, "is not a, is not an, are not"),
    _fault("position", r"\bbehind\b", "after, below, underneath"),
    _fault("position", r"\bin front of\b", "before"),
    _fault("position", r"\bbeside\b", "next to, with, at the same time as, in addition to"),
    _fault("turn", r"(?<!in )(?-i:\bturns)\b(?! (out|lark|several|an|red|wrong|into|to|it|a|the|this|them|off|on|"
           r"mistakes|every|each|what|all|one)\b)"
           r"|\b(one|every|each|a|per|this|last|first|next|same) turn\b", "iteration, trip; trip count"),
    _fault("fragment", _BEGIN + r"(?-i:Which)\b(?![^.?]*\?)", "join it to the sentence before, or name the subject",
           kinds=SENTENCES),
    _fault("what-clause", _BEGIN + _WHAT, _SUBJECT, kinds=("page",)),
    _fault("what-clause", r"(?<=[.!?] )" + _WHAT, _SUBJECT, kinds=("comment", "string")),
    _fault("term", r"\bplain parts?\b", "replicated addend"),
    _fault("term", r"\bdoubts\b", "limitations"),
    _fault("knows", r"\bknows\b", "stores, reads, has"),
    _fault("figure", r"\bof it exposed\b|^in all$", "… exposed; total"),
    _fault("figure", r"(?<=[\d¤]) in all\b", "total, in total"),
    _fault("idiom", r"\b(gets?|got) .{3,30} wrong\b", "miscompiles, computes wrong values for"),
    _fault("idiom", r"\bone can\b", "state it directly")
)
