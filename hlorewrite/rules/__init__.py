"""The rule language: rules and linearity facts as text, matched and applied.

``hlorewrite.rules.native`` is the decorator that registers a function for rule files.
"""

from hlorewrite.rules.register import native as native
