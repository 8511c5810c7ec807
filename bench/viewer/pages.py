"""How soon pages are painted in headless Chromium: ``python bench/viewer/pages.py [--json] PAGE.html...``.

Prints the first paint of each page as the browser reports it, the best of several loads, and the size of the page. Exit
code 1 when a page takes 0.5 s or more.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "viewer"))
from browser import Browser, missing, open_browser

from hlorewrite.util.tables import table

LOADS = 5
LIMIT_MS = 500.0
_PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def first_paint_ms(browser: Browser, page: Path) -> float:
    """Milliseconds from the start of the load to the first text or picture, the best of ``LOADS``."""
    times = []
    for _ in range(LOADS):
        browser.driver.get(page.resolve().as_uri())
        browser.wait(_PAINT.replace(" ?? null", " !== undefined"))
        times.append(browser.run(_PAINT))
    return min(times)


def main() -> int:
    """Measures the pages that are given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE.html")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args()
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    with open_browser() as browser:
        times = {str(page): first_paint_ms(browser, page) for page in args.pages}
    if args.json:
        print(json.dumps(times, indent=1))
    else:
        rows = [[name, f"{time:.0f} ms", f"{Path(name).stat().st_size / 1024:.0f} KiB"] for name, time in times.items()]
        print("\n".join(table([["page", "first paint", "size"], *rows], "<>>")))
    return int(any(time >= LIMIT_MS for time in times.values()))


if __name__ == "__main__":
    sys.exit(main())
