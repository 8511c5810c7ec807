"""Finds what makes the project's texts hard to use, and says what to write instead.

``python tools/plain_words.py [--json] [--count] [PATH...]`` reads README and the other pages, docs, docstrings,
comments, strings of prose (errors, remarks, help) and the comments of rule files. In pages it finds dead links,
commands, flags, passes and options that do not exist, and terms of the glossary that are used before they are explained
(``tools/words/pages.py``). Everywhere it finds a short list of habits (``tools/words/faults.py``) and long sentences.
Exit code 0 without findings, 1 with findings, 2 for a path that cannot be read.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "docs"))  # what tools share, when a test imports this file
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from words.faults import HABITS, WORDS_OF_A_SENTENCE
from words.pages import faults_of_page
from words.texts import Passage, passages

ROOT = Path(__file__).resolve().parent.parent
READ = ("*.md", "docs", "hlorewrite", "passes", "patterns", "tools", "bench", "examples")
SUFFIXES = (".md", ".py", ".hlopat", ".ipynb")

ALLOWED: dict[tuple[str, str], str] = {
    ("tools/words/faults.py", ""): "the table of habits quotes them",
}
"""(file, part of the line): why its findings are not reported."""
HISTORY = ("CHANGELOG.md",)
"""Texts that stay as they were written; only what a reader follows in them is checked."""


@dataclass(frozen=True)
class WordFinding:
    """A place that should be written differently.

    Attributes:
      file: path from the root of the repository.
      line: number of the line, from 1.
      kind: class of the fault.
      words: what stands there.
      instead: what to write.
    """

    file: str
    line: int
    kind: str
    words: str
    instead: str

    def __str__(self) -> str:
        return f'{self.file}:{self.line}: {self.kind}: "{self.words}"; write: {self.instead}'


def findings_of(path: Path, shown: str) -> list[WordFinding]:
    """The findings of one file, by line.

    Args:
      path: the file.
      shown: its name in findings.
    """
    lines = path.read_text("utf-8").splitlines()
    faults = [fault for passage in (() if shown in HISTORY else passages(path)) for fault in _in_passage(passage)]
    faults += faults_of_page(path) if path.suffix == ".md" else []
    found = [WordFinding(shown, *fault) for fault in faults]
    reported = (one for one in found if not _allowed(one, lines[one.line - 1]))
    return sorted(reported, key=lambda one: (one.line, one.kind))


def _allowed(finding: WordFinding, line: str) -> bool:
    return any(finding.file == file and part in line for file, part in ALLOWED)


def _in_passage(passage: Passage) -> Iterator[tuple[int, str, str, str]]:
    text = passage.text.replace("\n", " ")
    for habit in HABITS:
        if passage.kind not in habit.kinds:
            continue
        for match in habit.pattern.finditer(text):
            begin = match.start() + len(match.group()) - len(match.group().lstrip())
            yield (passage.line + passage.text.count("\n", 0, begin), habit.kind, " ".join(match.group().split()),
                   habit.instead)
    if passage.kind != "string":
        yield from _long_sentences(passage)


def _long_sentences(passage: Passage) -> Iterator[tuple[int, str, str, str]]:
    """Sentences of more words than are allowed; a semicolon ends one too."""
    begin = 0
    for end in [*(match.end() for match in re.finditer(r"[.?!;][)\"'*_]*(?=\s|$)", passage.text)), len(passage.text)]:
        sentence = passage.text[begin:end]
        words = re.findall(r"\S*[\w¤]\S*", sentence)
        if len(words) > WORDS_OF_A_SENTENCE:
            lead = begin + len(sentence) - len(sentence.lstrip())
            yield (passage.line + passage.text.count("\n", 0, lead), "long sentence", " ".join(words[:4]) + " …",
                   f"two sentences: this one has {len(words)} words, at most {WORDS_OF_A_SENTENCE} are allowed")
        begin = end


def _files(names: list[str]) -> Iterator[tuple[Path, str]]:
    """The files to read, with their names in findings; links to folders are not followed."""
    given = [Path(name) for name in names] or [path for pattern in READ for path in ROOT.glob(pattern)]
    for path in sorted(given):
        if not path.exists():
            raise FileNotFoundError(path)
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in SUFFIXES and file.is_file() and not {"__pycache__", "node_modules"} & set(file.parts):
                full = file.resolve()
                yield file, full.relative_to(ROOT).as_posix() if full.is_relative_to(ROOT) else file.name


def main(arguments: list[str] | None = None) -> int:
    """Prints the findings; 1 when there are any, 2 when a path does not exist."""
    parser = argparse.ArgumentParser(
        description="find dead links, unknown commands, unexplained terms and habits of style in the project's texts")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders; without any, the project's texts")
    parser.add_argument("--json", action="store_true", help="one JSON list of findings")
    parser.add_argument("--count", action="store_true", help="only the number of findings of each class")
    args = parser.parse_args(arguments)
    try:
        found = list({one: None for path, shown in _files(args.paths) for one in findings_of(path, shown)})
    except (FileNotFoundError, UnicodeDecodeError) as error:
        print(f"plain_words: cannot read: {error}", file=sys.stderr)
        return 2
    if args.count:
        counts = dict(sorted(Counter(one.kind for one in found).items()))
        print(json.dumps(counts) if args.json else "\n".join(f"{kind:14} {n}" for kind, n in counts.items()))
    elif args.json:
        print(json.dumps([asdict(one) for one in found], indent=1))
    else:
        print("\n".join(map(str, found)))
    return 1 if found else 0


if __name__ == "__main__":
    gc.disable()  # what is read lives to the end
    sys.exit(main())
