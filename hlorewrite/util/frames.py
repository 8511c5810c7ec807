"""The frames of a call stack that are the user's own."""

import os
import re
from dataclasses import dataclass

_INSTALLED = re.compile(r"/(?:site-packages|dist-packages)/|/lib(?:64)?/python3\.\d+/|(?:^|/)<[^/]*>$")


@dataclass(frozen=True)
class Frames:
    """The frames of a call stack that are the user's own: by default those outside installed packages.

    Attributes:
      skip: packages that count as installed wherever they are, for example a framework in an editable checkout.
      own: packages that count as the user's wherever they are.

    Example:
      >>> ours = Frames(skip=("haliax",))
      >>> ours.are_own("/home/me/train.py"), ours.are_own("/home/me/src/haliax/core.py")
      (True, False)
      >>> Frames().are_own("/venv/lib/python3.11/site-packages/flax/linen/linear.py")
      False
    """

    skip: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def are_own(self, file: str) -> bool:
        """Whether frames in a file are the user's own."""
        parts = set(os.path.splitext(file)[0].split("/")) if self.skip or self.own else set()
        if parts & set(self.own):
            return True
        return not parts & set(self.skip) and _INSTALLED.search(file) is None


USUAL_FRAMES = Frames()
