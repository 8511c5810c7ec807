"""Rules whose rewrite is slightly wrong are not proved: one change each in a shipped rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hlorewrite.checks.prove.prove import prove_file
from hlorewrite.rules.library import checked, read_source
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import print_file

pytest.importorskip("z3")

RULES = {i.name: print_file(ast.File((replace(i, docs=(), comments=()),)))
         for name in ("collectives", str(Path(__file__).parents[2] / "rules" / "pairs.hlopat"))
         for i in checked(read_source(name))[0].items if isinstance(i, ast.Rule)}
CHANGES = [
    ("add-of-all-reduces", "like %ra;", "computation reduces(max) like %ra;"),
    ("add-of-all-reduces", "%t = stablehlo.add(%a, %b)", "%t = stablehlo.add(%a, %a)"),
    ("subtract-of-all-reduces", "%t = stablehlo.subtract(%a, %b)", "%t = stablehlo.subtract(%b, %a)"),
    ("maximum-of-all-reduces", "reduces(max)", "reduces(min)"),
    ("all-reduce-of-all-reduce", "{replica_groups = groups} like %outer", "like %outer"),
    ("all-reduce-of-all-reduce", "composed_groups(%inner, %outer)", "composed_groups(%outer, %inner)"),
    ("all-reduce-of-all-reduce", "like %outer", "like %inner"),
    ("all-reduce-of-uniform-sum", "reduces(sum)", "reduces(product)"),
    ("all-reduce-of-uniform-sum", "{value = splat(%x, n)}", "{value = splat(%x, 2)}"),
    ("all-reduce-of-uniform-idempotent", '$kind == "or"', '$kind == "or" or $kind == "sum"'),
    ("carry-inside-scatter", "stablehlo.add(carry, %g)", "stablehlo.add(%g, %g)"),
    ("carry-inside-scatter", "stablehlo.scatter(%zero, %indices", "stablehlo.scatter(carry, %indices"),
    ("carry-inside-scatter", "splat(%kept, 0)", "splat(%kept, 1)"),
    ("carry-inside-scatter", "%t = stablehlo.scatter(%zero, %indices, %updates) like %s",
     "%t = stablehlo.scatter(%zero, %indices, %updates) update_computation reduces(sum) -> type(%s)"),
    ("carry-inside-scatter", "update_computation reduces(sum); root", "update_computation reduces(max); root"),
    ("carry-inside-scatter", "computation reduces(sum); }", "computation reduces(max); }"),
    ("all-gather-of-reduce-scatter", "root %r = stablehlo.all_gather(%shard) {all_gather_dim = $d}",
     "root %r = stablehlo.all_gather(%shard) {all_gather_dim = $e}"),
    ("all-gather-of-reduce-scatter", "channel_handle = $c, ", ""),
    ("slice-of-all-reduce", "scatter_dimension = dimension, replica_groups = groups", "scatter_dimension = 0, "
     "replica_groups = groups"),
    ("slice-of-all-reduce", ", use_global_device_ids = $u} computation", "} computation"),
    ("slice-of-all-gather", "%p = stablehlo.collective_permute(%x) {source_target_pairs = pairs, channel_handle = $c}",
     "%p = stablehlo.collective_permute(%x) {source_target_pairs = pairs}"),
    ("permute-of-permute", "composed_pairs(%inner, %outer)", "composed_pairs(%outer, %inner)"),
    ("permute-of-permute", "like %outer", "like %inner"),
    ("all-to-all-and-back", "{split_dimension = $b, concat_dimension = $a}", "{split_dimension = $a, "
     "concat_dimension = $b}"),
    ("gather-before-widening", "stablehlo.all_gather(%x) -> retyped(%g, %x) like %g", "stablehlo.all_gather(%x) -> "
     "retyped(%g, %x)"),
    ("gather-after-narrowing", "%r = stablehlo.all_gather(%c) -> type(%n) like %g",
     "%q = stablehlo.negate(%c); %r = stablehlo.all_gather(%q) -> type(%n) like %g"),
    ("duplicate-collective", "replace %q with %p", "replace %q with %x"),
    ("collective-of-one", "alone(%r)", "one_use(%r)"),
    ("permute-to-oneself", "identity_permute(%r)", "one_use(%r)"),
]


@pytest.mark.parametrize("name, old, new", CHANGES, ids=[f"{name}: {new[:40]}" for name, _, new in CHANGES])
def test_a_wrong_rewrite_is_not_proved(name: str, old: str, new: str, tmp_path: Path) -> None:
    flat = " ".join(RULES[name].split())
    changed = flat.replace(" ".join(old.split()), new)
    assert changed != flat, "the change must follow the rule"
    path = tmp_path / "a.hlopat"
    path.write_text('import "natives.hlopat";\n' + changed)
    [verdict] = prove_file(str(path))
    assert not verdict.sound


def test_the_same_way_of_writing_is_proved_unchanged(tmp_path: Path) -> None:
    """So what fails above is the change, and not how the rules are written there."""
    path = tmp_path / "a.hlopat"
    path.write_text('import "natives.hlopat";\n' + "\n".join(" ".join(text.split()) for text in RULES.values()))
    assert all(verdict.sound for verdict in prove_file(str(path)))
