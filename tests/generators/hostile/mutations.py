"""Damages inputs as accidents and attackers do: bits, lengths, repeated and missing parts, and hostile words."""

from __future__ import annotations

import random
import re

from generators.hostile.command_grammar import pipeline_files, pipeline_words, reshard_words
from generators.hostile.seeds import Seed

_WORDS = [
    b"0", b"-1", b"99999999999999999999", b"9223372036854775807", b"1e999", b"nan", b"inf", b"", b"\0", b"\xff\xfe",
    b"(" * 300, b"[" * 3000, b"{" * 50, b"\n" * 200, b'"', b"'", b"\\", b"%s%n", b"../../etc/passwd", b"/dev/zero",
    b"<script>alert(1)</script>", b"true", b"null", b"tensor<99999999999x9999999999xf32>", b"x" * 5000, b"#", b"//",
    b"tensor<?xf32>", b"dense<", b"loc(", b"@main", b"%0", b"f8E4M3FN", b"i1", b"complex<f32>", b"\xc3\xa9", b";",
    b"=",
]
_NUMBERS = [
    b"0", b"1", b"2", b"3", b"-1", b"7", b"16", b"1000000", b"4294967296", b"9223372036854775807",
    b"99999999999999999999", b"1e308", b"1e999", b"0.5", b"null", b"true", b'"x"', b"[]", b"{}",
]
_VALUES = [
    "step.mlir", "0", "-1", "1", "2", "3", "4", "7", "x", "", "h200:1x8", "h200:0x8", "h200:99999x8", "nan", "inf",
    "1e308", "1e999", "99999999999999999999", "1000000", "8,8", "f32", "2x4", "a=2", "../x", "/dev/zero",
    "/dev/full", "all-reduce", "gpt3-175b", "1MiB", "1ms", "1e300", "(8x1),(4x2)", "-", "host,-", "interleaved",
    "[[0,1],[2,3]]", "0.5", "1,1", "nccl.txt", "gpipe", "out.png", "out.svg", "out.npy", "\xe9", "a" * 3000,
    "1e-300", "{}", "rules{files=step.mlir}",
]
_INTEGERS = [str(number) for number in (0, 1, 2, 3, 4, 7, 8, 16, 1000, 10**6, 10**9, 10**13, 10**20, -1)]
_LINES = [
    "opt step.mlir -O comm -o out", "opt step.mlir --pass=comm-shift -o out", "opt step.mlir --diff",
    "opt step.mlir --pass=all-reduce-fusion{topology=h200:1x4} --remarks=all -o out", "opt --list-passes=text",
    "opt step.mlir --explain=negate --rules=collectives", "opt step.mlir --check=proof --pass=cse",
    "opt --help-pass=cse", "report step.mlir --topology=h200:1x4", "report step.mlir --json --mesh=a=1",
    "report step.mlir --vs=step.mlir", "lint step.mlir", "lint step.mlir --json",
    "timeline step.mlir --target=h200:1x4",
    "reshard --shape=64,64 --dtype=f32 --src-mesh=2x4 --dst-mesh=2x4 --src-spec=host,- --dst-spec=-,host",
    "reshard --shape=8 --src-mesh=2x2 --dst-mesh=1x2 --src-spec=device --dst-spec=- --json",
    "pipeline simulate --stages=4 --microbatches=8 --fwd=1ms",
    "pipeline simulate --stages=2 --microbatches=4 --fwd=1ms --topology=h200 --meshes=(4x1),(4x1) --act-bytes=1MiB",
    "pipeline simulate --stages=4 --microbatches=8 --fwd=1ms --schedule=interleaved-1f1b --json",
    "estimate --model=gpt3-175b --topology=h200:16x8 --tp=8 --pp=4 --global-batch=64",
    "estimate --model=gpt --layers=4 --hidden=64 --heads=4 --seq=128 --vocab=1000 --topology=a100:1x8 --global-batch=8",
    "estimate --model=llama-7b --topology=h100:2x8 --search --global-batch=64 --json",
    "collective all-reduce --bytes=1MiB --topology=h200:2x8",
    "collective all-gather --bytes=1KiB --topology=v100:2x8", "calibrate nccl.txt --topology=h200:1x8", "rules list",
    "rules show add-of-all-reduces", "rules check --static", "rules docs linearity", "fmt step.mlir",
    "fmt --check step.mlir", "view step.mlir", "completion bash",
]
_TOKEN = re.compile(rb"[A-Za-z_.%@$][\w.]*|\d+|\S")
_FLAGS = [
    "--time-limit=0", "--time-limit=20", "--memory-limit=1", "--memory-limit=x", "--json", "-o", "--", "-", "", "-O",
    "--pass=", "--pass=rules{files=/dev/zero}", "--pass=comm-shift{", "--pass=rules{files=}", "--topology=h200:0x0",
    "--topology=h200:999999999x8", "--bytes=1e999", "--bytes=-1", "--mesh=a=99999999999999", "--trace=/dev/null",
    "--trace=.", "--trace=/proc/self", "--rules=/dev/zero", "--natives=nowhere", "--natives=/dev/null",
    "--emit=portable", "--emit=bytecode", "--explain=x", "--remarks=json", "--remarks=,", "--tol=nan", "--seed=-1",
    "--seed=99999999999999999999", "--elide-large-constants=-1", "--memory-budget=1e30", "--devices=0",
    "--devices=99999999", "--help", "--global-batch=99999999999999999999", "--parameters=1e308", "--layers=0",
    "--hidden=99999999999", "--stages=100000000", "--microbatches=100000000", "--fwd=1e300", "--fwd=-1ms",
    "--matrix=/dev/full", "--plot=x.svg", "--opt=--", "--search", "--slowdown=nan", "--jaxlib=0", "--port=99999999",
]


def mutate(seed: Seed, random_: random.Random) -> Seed:
    """A damaged copy; for arguments a random command line."""
    if seed.form == "arguments":
        return Seed(seed.form, seed.content, (_arguments(random_),))
    if seed.form == "reshard":
        return Seed(seed.form, seed.content, (reshard_words(random_),))
    if seed.form == "pipeline":
        return Seed(seed.form, pipeline_files(random_), (pipeline_words(random_),))
    at = random_.randrange(len(seed.content)) if seed.form in ("trace", "program") else 0
    name, content = seed.content[at]
    other = random_.choice(seed.content)[1]
    binary = seed.form in ("bytecode", "portable", "export")
    for _ in range(random_.choice((1, 1, 1, 2, 3, 8))):
        content = _damaged(content, other, random_, binary)
    files = tuple((each, content if each == name else old) for each, old in seed.content)
    if seed.form == "trace" and random_.random() < 0.1:
        files = tuple(pair for pair in files if pair[0] != name)
    return Seed(seed.form, files, (random_.choice(seed.commands),))


def _damaged(content: bytes, other: bytes, random_: random.Random, binary: bool) -> bytes:
    size = len(content)
    if not size:
        return random_.choice(_WORDS)
    at, end = sorted((random_.randrange(size + 1), random_.randrange(size + 1)))
    short = min(end, at + random_.choice((1, 4, 30, 300)))
    kind = random_.randrange(6 if binary else 20)
    if kind == 0:
        return content[:at] if random_.random() < 0.3 else content[:at] + content[short:]
    if kind == 1:
        return content[:short] + content[at:short] * random_.choice((1, 2, 50)) + content[short:]
    if kind == 2:
        return content[:at] + random_.choice(_WORDS) + content[at:]
    if kind == 3:
        cut = random_.randrange(len(other) + 1)
        return content[:at] + other[cut:cut + 200] + content[at:]
    if binary:
        place = min(at, size - 1)
        value = random_.choice((0, 255, 128, 127, content[place] ^ (1 << random_.randrange(8)), random_.randrange(256)))
        return content[:place] + bytes([value]) + content[place + 1:]
    return _other_token(content, random_)


def _other_token(content: bytes, random_: random.Random) -> bytes:
    """Puts another word in the place of one: mostly of its own class, so that the whole is still read."""
    tokens = list(_TOKEN.finditer(content))
    if not tokens:
        return b""
    token = random_.choice(tokens)
    if random_.random() < 0.1:
        instead = random_.choice(_WORDS)
    elif token.group().isdigit():
        instead = random_.choice((*_NUMBERS, random_.choice(tokens).group()))
    else:
        kin = [each.group() for each in tokens if _class(each.group()) == _class(token.group())]
        instead = random_.choice(kin)
    return content[:token.start()] + instead + content[token.end():]


def _class(word: bytes) -> str:
    first = chr(word[0])
    return "word" if first.isalpha() or first == "_" else "digit" if first.isdigit() else first


def _arguments(random_: random.Random) -> tuple[str, ...]:
    """A sound command line with some values, flags and words changed."""
    from hlorewrite.cli.parser import Parser
    from hlorewrite.cli.subcommands import subcommand
    words = random_.choice(_LINES).split()
    parser = Parser(prog=words[0], allow_abbrev=False)
    subcommand(words[0]).add_arguments(parser)
    actions = parser._actions
    for action in actions:
        if action.choices and not action.option_strings and hasattr(action.choices, "items"):
            actions = action.choices[words[1]]._actions  # type: ignore[index]
    own = [(option, action) for action in actions for option in action.option_strings
           if option not in ("--serve", "-h", "--help")]
    for _ in range(random_.choice((1, 1, 2, 3, 5))):
        place = random_.randrange(1, len(words) + 1)
        kind = random_.random()
        if kind < 0.4 and place < len(words):
            option, equals, _ = words[place].partition("=")
            words[place] = f"{option}={random_.choice(_VALUES)}" if equals else random_.choice(_VALUES)
        elif kind < 0.85 and own:
            option, action = random_.choice(own)
            values = list(action.choices) if action.choices and random_.random() < 0.8 else (
                _INTEGERS if action.type is int and random_.random() < 0.8 else _VALUES)
            words.insert(place, option if action.nargs == 0 else f"{option}={random_.choice(values)}")
        elif kind < 0.95:
            words.insert(place, random_.choice(_FLAGS))
        else:
            words.insert(place, random_.choice(_VALUES))
    return tuple(word for word in words if "--serve" not in word)
