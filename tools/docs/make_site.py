"""Builds the documents: ``python tools/docs/make_site.py [--stage-only]``, or ``make docs``. Needs no network.

The pages under ``docs/``, the project's own files at the root, and the pages generated from rules, passes, parsers and
docstrings come together in ``build/docs/source``; Sphinx makes ``build/docs/html`` of them. A warning is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
os.environ["COLUMNS"] = "100"  # usage lines are as wide as the terminal otherwise

from links import LANGUAGES, Links, source_page  # noqa: E402
from markup import fence, toctree  # noqa: E402
from notebooks import notebook_page, notebooks  # noqa: E402

PROJECT = {"ARCHITECTURE.md": "project/architecture.md", "CONTRIBUTING.md": "project/contributing.md",
           "CHANGELOG.md": "project/changelog.md", "SECURITY.md": "project/security.md"}
"""Files at the root that are pages of the site."""


def stage(out: Path) -> None:
    """Puts the source of the site together.

    Args:
      out: a folder; what was in it is gone afterwards.
    """
    from api_pages import api_pages
    from cli_pages import cli_pages
    from pass_pages import pass_pages
    from rule_pages import rule_pages
    from xla_pages import xla_page
    shutil.rmtree(out, ignore_errors=True)
    written = {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix()
               for path in (ROOT / "docs").rglob("*.md")}
    taught = {f"docs/notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in notebooks()}
    links = Links({**written, **PROJECT, **taught, "README.md": "index.md"})
    for origin, page in {**written, **PROJECT}.items():
        text = (ROOT / origin).read_text(encoding="utf-8")
        _write(out / page, links.rewritten(_present_only(text), origin))
    for origin, page in taught.items():
        text, pictures = notebook_page(ROOT / origin)
        _write(out / page, links.rewritten(text, origin))
        for name, picture in pictures.items():
            _write(out / "notebooks" / name, picture)
    for picture in [*(ROOT / "docs").rglob("*.svg"), *(ROOT / "docs").rglob("*.png")]:
        _copy(picture, out / picture.relative_to(ROOT / "docs"))
    for folder, pages in (("rules", rule_pages()), ("passes", pass_pages()), ("cli", cli_pages()),
                          ("api", api_pages())):
        for name, text in pages.items():
            _write(out / "reference" / folder / name, text)
    _write(out / "reference" / "xla-situations.md", xla_page())
    for path in sorted(links.sources):
        _write(out / source_page(path), _source(path))
    _write(out / "source" / "index.md", _source_index(sorted(links.sources)))


def _present_only(text: str) -> str:
    """Leaves out navigation entries marked ``?`` whose page does not exist."""
    def kept(match: re.Match[str]) -> str:
        return f"{match.group(1)}\n" if (ROOT / "docs" / f"{match.group(1)}.md").exists() else ""
    return re.sub(r"^\?([\w-]+)\n", kept, text, flags=re.MULTILINE)


def _source(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"# {path}\n\n" + fence(LANGUAGES.get(Path(path).suffix, "text"), text).replace("```", "`" * 5)


def _source_index(paths: list[str]) -> str:
    names = [source_page(path).removeprefix("source/").removesuffix(".md") for path in paths]
    return ("# Files\n\nFiles of the repository that these pages show.\n\n"
            + toctree(f"{path} <{name}>" for path, name in zip(paths, names, strict=True)))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def html(source: Path, out: Path) -> int:
    """Runs Sphinx; the exit code is 1 when it warned."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet",
               "--conf-dir", str(ROOT / "docs"), "--doctree-dir", str(out.parent / "doctrees"), str(source), str(out)]
    environment = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3",
                       PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])))
    return subprocess.run(command, check=False, env=environment).returncode


def main() -> int:
    """Stages and builds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage-only", action="store_true", help="make the source of the site, run no Sphinx")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="where to; default build/docs")
    args = parser.parse_args()
    stage(args.out / "source")
    if args.stage_only:
        return 0
    code = html(args.out / "source", args.out / "html")
    if code == 0:
        print(f"open {os.path.relpath(args.out / 'html' / 'index.html')}")
    return code


if __name__ == "__main__":
    sys.exit(main())
