"""``hlorewrite view``: a run as one page that needs nothing but a browser."""

import argparse

HELP = "show a traced run as one self-contained page: what moved, why, where, and what it saves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite view``."""
    parser.add_argument("run", metavar="RUN", help="the DIR of a run with --trace=DIR, or the JSON file of `pipeline "
                                                   "simulate --trace`")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the page there; - is standard output (default: "
                                                               "RUN.html)")
    parser.add_argument("--serve", action="store_true", help="serve the page on this machine instead, rebuilt at "
                                                             "each load")
    parser.add_argument("--port", type=int, metavar="N", default=0, help="port of --serve (default: a free one)")
    parser.add_argument("--topology", metavar="NAME:HOSTSxGPUS", help="predict times on this cluster, such as h200:4x8")
    parser.add_argument("--json", action="store_true", help="print the page's content as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite view``."""
    from hlorewrite.errors import UsageError

    if args.serve and (args.output or args.json):
        raise UsageError(f"--serve and {'--output' if args.output else '--json'} cannot be used together",
                         hint="leave one of them out")
    if not 0 <= args.port < 1 << 16:
        raise UsageError(f"--port {args.port} is not a port", hint="use 1 to 65535, or leave it out")
    if args.json:
        import json
        print(json.dumps(data_of(args)))
        return 0
    if args.serve:
        from hlorewrite.viewer.serve import serve
        page_of(args)  # a wrong RUN is reported here and not in the browser
        serve(lambda: page_of(args), args.port)
        return 0
    from hlorewrite.util.progress import progress
    from hlorewrite.util.write import write_output
    path = args.output or args.run.rstrip("/").removesuffix(".json") + ".html"
    with progress("drawing the page"):
        page = page_of(args)
    write_output(path, page)
    if path != "-":
        print(f"{path}: {len(page) / 1e6:.2f} MB")
    return 0


def data_of(args: argparse.Namespace) -> dict:
    """What the page shows."""
    from hlorewrite.cost import topology
    from hlorewrite.viewer.model import page_data
    from hlorewrite.viewer.reading import read_trace

    topo = topology(args.topology) if args.topology else None
    return page_data(read_trace(args.run), topo)


def page_of(args: argparse.Namespace) -> bytes:
    """The page."""
    from hlorewrite.viewer.page import render

    data = data_of(args)
    return render(data, f"{data['head']['run'].get('input') or 'run'} · hlorewrite")
