"""Source lines without the folders of this machine, so that plans made in different checkouts are equal."""

import re

_IN_MODULE = re.compile(r'"(?:[^"\\\n]|\\.)*?([^"/\\\n]+)":(\d+):(\d+)')
_IN_SENTENCE = re.compile(r"(?<![\w.:])/(?:[^\s:/]+/)+(?=[^\s:/]+)")


def without_folders(text: str) -> str:
    """A module's text whose locations name files without their folders.

    Example:
      >>> without_folders('loc("/home/me/train.py":10:3) {name = "a/b"}')
      'loc("train.py":10:3) {name = "a/b"}'
    """
    return _IN_MODULE.sub(r'"\1":\2:\3', text)


def short_places(sentence: str) -> str:
    """A sentence whose absolute paths are file names only.

    Example:
      >>> short_places("/home/me/train.py:10:3: in /opt/lib/flax/linear.py:4, 2/3 of a/b")
      'train.py:10:3: in linear.py:4, 2/3 of a/b'
    """
    return _IN_SENTENCE.sub("", sentence)


def short_place(location: str) -> str:
    """One source line, ``folder/file.py:line:col``, without its folder; relative ones too, as they depend on where a
    program is started.

    Example:
      >>> short_place("../src/train.py:10:3"), short_place("?")
      ('train.py:10:3', '?')
    """
    return location.rpartition("/")[2]
