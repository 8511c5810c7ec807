"""Phrases that the project's texts fall into and that a reader stumbles over, each with what to write in its place.

The list is short on purpose: it holds habits that were found again and again, not words that could be better.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS_OF_A_SENTENCE = 45
EVERYWHERE = ("page", "heading", "comment", "string")
SENTENCES = ("page", "comment")
PAGES = ("page", "heading")


@dataclass(frozen=True)
class Habit:
    """A phrase that should not be in a text.

    Attributes:
      kind: class of the habit, as findings are counted.
      pattern: what is found, in lower or upper case.
      instead: what to write.
      kinds: kinds of passages that it is looked for in.
    """

    kind: str
    pattern: re.Pattern[str]
    instead: str
    kinds: tuple[str, ...] = EVERYWHERE


def _habit(kind: str, pattern: str, instead: str, kinds: tuple[str, ...] = EVERYWHERE) -> Habit:
    spaced = re.sub(r"(\(\?<[=!][^)]*\))| ", lambda match: match.group(1) or r" +", pattern)  # lines are wrapped
    return Habit(kind, re.compile(spaced, re.IGNORECASE), instead, kinds)


_NO = r"(?<!there )\b(is|are|was|were) no " \
      r"(?!(longer|more|less|other|better|worse|one|faster|larger|smaller|slower|substitute)\b)"
_BEGIN = r"(?:^|(?<=[.!?] ))"

HABITS: tuple[Habit, ...] = (
    _habit("agent", r"\b(some|no|any|every)body\b|\bwho(so)?ever\b",
           "name the thing or the reader: you, an op, another process; or use the passive"),
    _habit("metaphor", r"\bhand(s|ed|ing)? (on|back|over|down|out|in|it|them|values?|calls|pairs|to)\b",
           "forward, yield, return, pass, give"),
    _habit("metaphor", r"\bat (its|their) mercy\b|\bin vain\b|\bcannot save it\b|\bsaves? it from\b", "say it plainly"),
    _habit("negated noun", _NO, "is not a, is not an, are not"),
    _habit("turn", r"(?<!in )(?-i:\bturns)\b(?! (out|lark|several|an|red|wrong|into|to|it|a|the|this|them|off|on|"
           r"mistakes|every|each|what|all|one)\b)"
           r"|\b(one|every|each|a|per|this|last|first|next|same) turn\b", "iteration, trip; trip count"),
    _habit("fragment", _BEGIN + r"(?-i:Which)\b(?![^.?]*\?)", "join it to the sentence before, or name the subject",
           kinds=SENTENCES),
    _habit("place", r"\b(stands?|lies) (in|at|on|there|here|behind|before|after|beside|next|where)\b",
           "is in, is at; a file is, a table has, an op follows", kinds=PAGES),
    _habit("own", r"\bof (its|their|our) own\b", "own, separate, or leave it out", kinds=PAGES),
    _habit("idiom", r"\bfor ever\b", "forever, indefinitely; or name the deadlock", kinds=PAGES),
    _habit("idiom", r"\b(on request|at hand|comes? out otherwise|tak(e|es|ing) part)\b",
           "if you ask for it; available; gives another result; contributes, participates", kinds=PAGES),
    _habit("private word", r"\bthe judge\b|\bcrowded\b|\bstays away\b",
           "compare, choose; full; does not apply", kinds=PAGES),
    _habit("figure", r"\bof it exposed\b|(?<=[\d¤]) in all\b", "... exposed; total, in total"),
)
