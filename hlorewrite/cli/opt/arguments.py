"""The flags of ``hlorewrite opt``; they are those of ``mlir-opt``."""

import argparse

from hlorewrite.cli.parser import (
    add_frame_arguments,
    add_load_argument,
    add_plan_arguments,
    add_report_argument,
    add_step_flag,
)
from hlorewrite.errors import UsageError
from hlorewrite.rules.listener import REMARK_KINDS

# Flags whose value may be left out; a word after them is the file, not their value.
_OPTIONAL_VALUES = {"--remarks": "text", "--stats": "text", "--timing": "text", "--list-passes": "text",
                    "--list-rules": "text"}
_WORDS = {"text", "json", "all", *REMARK_KINDS}
EMIT_FORMS = ("text", "generic", "bytecode", "portable", "export")


def prepare(words: list[str]) -> list[str]:
    """Gives flags without a value their default, and translates MLIR's spellings.

    Raises:
      UsageError: a flag is followed by its value, which would be read as the file.

    Example:
      >>> prepare(["--remarks", "in.mlir", "--mlir-timing"])
      ['--remarks=text', 'in.mlir', '--timing=text']
    """
    out = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word in _OPTIONAL_VALUES and set(after.split(",")) <= _WORDS:
            raise UsageError(f'{word}: "{after}" would be read as the file',
                             hint=f"write {word}={after}, or ./{after} for a file of that name")
        word = word.replace("--mlir-print-ir-", "--print-ir-", 1).replace("--mlir-timing", "--timing", 1)
        word = word.replace("--mlir-pass-statistics", "--stats", 1)
        out.append(f"{word}={_OPTIONAL_VALUES[word]}" if word in _OPTIONAL_VALUES else word)
    return out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of ``opt``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", nargs="?", default="-", metavar="IN",
                        help="MLIR text or bytecode, StableHLO portable artifact or serialized jax.export; - is stdin")
    _pipeline_arguments(parser.add_argument_group("passes"))
    _output_arguments(parser.add_argument_group("output"))
    _report_arguments(parser.add_argument_group("reports"))
    _test_arguments(parser.add_argument_group("checks and tests"))


def _pipeline_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--pass", dest="passes", action="append", default=[], metavar="NAME[{OPTION=VALUE}]",
                       help="run a pass; repeatable, in the order given")
    group.add_argument("--pass-pipeline", dest="passes", action="append", metavar="PIPELINE",
                       help="run passes: 'a,b{x=1},builtin.module(cse)'")
    group.add_argument("-O", dest="passes", action="append", metavar="NAME", type=_named_pipeline,
                       help="auto: the best of all ways to compile the module for --target; the module may stay as it "
                            "is. Or a named pipeline: comm runs each pass that is estimated to communicate no more "
                            "than before; time also moves communication to where compute hides it (needs --topology "
                            "or --target). With a target, each begins with expose-collectives if the module is "
                            "auto-sharded")
    group.add_argument("--rules", dest="passes", action="append", metavar="FILE", type=_rules_pass,
                       help="apply the rules of a .hlopat file or a shipped one; short for --pass=rules{files=FILE}")
    add_load_argument(group)
    group.add_argument("--natives", action="append", default=[], metavar="MODULE",
                       help="import a module, or a .py file, that registers natives for rule files; repeatable")
    group.add_argument("--ignore-cost", action="store_true", help="apply rules even if their cost conditions fail")
    group.add_argument("--topology", default="", metavar="NAME",
                       help="the cluster to estimate times for, such as h200:4x8; a name alone means as many whole "
                            "servers as the module needs (default: the cluster of --target)")
    add_step_flag(group, "memory_budget",
                  help="bytes per device that passes may spend on values they keep longer: local sums, gathered "
                       "values, buffers of fused calls; auto is 80%% of the memory of a device of "
                       "--target, less arguments and results, less 5%%, less the temporaries of the compiled input; by "
                       "default each pass has its own limit")
    group.add_argument("--run-reproducer", action="store_true", help="run the pipeline written in the file")
    group.add_argument("--reproducer", default="hlorewrite-reproducer.mlir", metavar="FILE",
                       help="where to write a reproducer when a pass fails; default %(default)s")
    group.add_argument("--no-reproducer", action="store_true", help="write none")
    group.add_argument("--list-passes", choices=("text", "json"), metavar="FORM",
                       help="list all passes and stop; FORM is text, the default, or json")
    group.add_argument("--list-rules", choices=("text", "json"), metavar="FORM",
                       help="list the shipped rules and stop; FORM is text, the default, or json")
    group.add_argument("--help-pass", metavar="PASS", help="show what a pass does and its options, and stop")
    group.add_argument("--dump-pass-pipeline", action="store_true", help="print the pipeline to stderr before it runs")


def _named_pipeline(name: str) -> str:
    from hlorewrite.passmanager.named import AUTO, named_pipeline
    return name if name == AUTO else named_pipeline(name)



def _rules_pass(file: str) -> str:
    from hlorewrite.passmanager.options import quoted
    return f"rules{{files={quoted(file)}}}"


def _output_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-o", "--output", default=None, metavar="FILE", help="where to write; default stdout")
    group.add_argument("--emit", choices=EMIT_FORMS, default="text", help="the form to write; default %(default)s")
    group.add_argument("--mlir-print-op-generic", "--print-op-generic", dest="generic", action="store_true",
                       help="print ops in generic form")
    group.add_argument("--mlir-print-debuginfo", "--print-debuginfo", dest="debug_info", action="store_true",
                       default=None, help="print locations; the default when the input carries them")
    group.add_argument("--no-debuginfo", dest="debug_info", action="store_false", help="print no locations")
    add_plan_arguments(group, "write the result to a plan file; later runs replay it without passes")
    group.add_argument("--elide-large-constants", "--mlir-elide-elementsattrs-if-larger", dest="elide", type=int,
                       metavar="N", help="print constants of more than N elements as ... (cannot be read again)")
    group.add_argument("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")


def _report_arguments(group: argparse._ArgumentGroup) -> None:
    for when in ("before", "after"):
        group.add_argument(f"--print-ir-{when}", action="append", default=[], metavar="PASS",
                           help=f"print the module to stderr {when} a pass")
        group.add_argument(f"--print-ir-{when}-all", action="store_true",
                           help=f"print the module to stderr {when} every pass")
    group.add_argument("--print-ir-after-change", action="store_true",
                       help="print the module to stderr after every pass that changed it")
    group.add_argument("--remarks", metavar="json|all|KIND,...",
                       help="print to stderr which ops are rewritten, blocked or unprofitable and why; all adds missed")
    add_frame_arguments(group)
    group.add_argument("--explain", default="", metavar="RULE",
                       help="print a rule's best partial match and why it stopped, instead of the module")
    group.add_argument("--diff", action="store_true", help="print what changed instead of the module")
    group.add_argument("--stats", choices=("text", "json"), help="print to stderr what each rule did")
    group.add_argument("--timing", choices=("text", "json"), help="print the time of each step to stderr")
    group.add_argument("--trace", metavar="DIR", help="write the run to a directory, for `hlorewrite view`")


def _test_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--check", choices=("none", "interp", "proof"), action="append", default=[],
                       help="interp: execute the module before and after on the StableHLO interpreter and compare "
                       "values; proof: say whether the result is proved to compute the same; may be given twice")
    group.add_argument("--target", default="", metavar="MACHINE",
                       help="what the module is compiled for, such as h200:1x8; it is compared with what XLA alone "
                            "makes of the input")
    group.add_argument("--against", choices=("xla",),
                       help="print calls, bytes, memory and predicted step of XLA alone and of the result to stderr; "
                            "needs --target")
    group.add_argument("--json", action="store_true",
                       help="print one JSON object on standard output: which way is chosen for --target, and all ways "
                            "with their figures; the module is written only with -o")
    add_report_argument(group)
    group.add_argument("--xla-flags", choices=("best",),
                       help="with --against: also compile the input with published sets of XLA flags, and show the one "
                            "with the shortest predicted step")
    add_step_flag(group, "keep", choices=("better", "always"),
                  help="better: write the input if the result is not better for --target than XLA alone; the "
                       "default with a target")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="seed of the inputs of --check")
    group.add_argument("--tol", type=float, metavar="X", default=None,
                       help="relative tolerance of --check=interp; default: what rounding explains")
    group.add_argument("--split-input-file", action="store_true", help="treat parts between // ----- as modules")
    group.add_argument("--verify-diagnostics", action="store_true",
                       help="check expected-error, -warning, -remark and -note comments")
