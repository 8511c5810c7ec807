"""Programs that a rule's match block describes, made from a seed: what ``rules check`` executes.

Each op pattern becomes an op, leaves become arguments that differ between devices (or sums over devices, so that some
values are uniform), attributes that a pattern leaves open are drawn: groups of 2 to 8 devices, dimensions, element
types. Some results get a second reader, at once or at the end. Instances often violate a rule's conditions, on
purpose: a condition is tested by leaving it out.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hlorewrite.checks.reference.rule_checks.instance_ops import DoesNotFit, NotGenerated, ShapeWriters, Tensor
from hlorewrite.errors import InputError
from hlorewrite.ir import BY_OP, Module, parse
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.pattern_graph import OpPatternNode, nodes_of, results_of, values_in

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_SHAPES = ((8,), (8, 8), (16, 8))
_ELEMENTS = ("f32", "f32", "f32", "f32", "i32", "i32", "bf16", "f64", "i1", "complex<f32>")
_REDUCERS = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}
_UNARY = frozenset({"negate", "abs", "sign", "exponential", "tanh", "not", "optimization_barrier"})
_BINARY = frozenset({"add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or", "xor"})


def instance(rule: ast.Rule, seed: int) -> Module | None:
    """A program that has what a rule's match block describes.

    Args:
      rule: a checked rule.
      seed: the seed; the same one gives the same program.

    Returns:
      The program; None when what was drawn does not fit together.

    Raises:
      NotGenerated: the rule is about ops or regions that no program is generated for.
    """
    chosen = random.Random(f"{rule.name} {seed}")
    try:
        text = _InstanceWriter(chosen, chosen.choice((2, 4, 4, 8))).program(rule)
    except DoesNotFit:
        return None
    try:
        return parse(text, name=f"<instance {seed} of {rule.name}>")
    except InputError:
        return None


@dataclass
class _InstanceWriter(ShapeWriters):
    chosen: random.Random
    devices: int
    lines: list[str] = field(default_factory=list)
    arguments: list[Tensor] = field(default_factory=list)
    values: dict[str, Tensor] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    readers: list[Tensor] = field(default_factory=list)
    groups: str = ""
    name_choice: int = 0
    replicas: int = 1

    def program(self, rule: ast.Rule) -> str:
        patterns = [s for s in rule.match.statements if isinstance(s, ast.OpPattern)]
        nodes = nodes_of(patterns)
        if any(node.container for node in nodes):
            raise NotGenerated("it matches inside regions")
        self.shape, self.element = self.chosen.choice(_SHAPES), self.chosen.choice(_ELEMENTS)
        self.name_choice = self.chosen.randrange(64)
        if _says_ids_are_equal(patterns) and self.chosen.random() < 0.3:
            self.devices = self.replicas = 2  # the same ids may mean replicas in one op and partitions in another
        results = [self._op(node) for node in _in_order(nodes, self.chosen)]
        root = next(v for node, v in results if node.pattern.root)
        returned = [*([root] if rule_reads_root(rule) else []), *self.readers]
        for node, value in results:
            if not node.pattern.root and self.chosen.random() < 0.15:
                returned.append(value)
        return self._module(returned)

    def _module(self, returned: Sequence[Tensor]) -> str:
        keep = Tensor("%keep", self.shape, self.element)
        source = self._argument()
        everyone = f"dense<[{list(range(self.devices))}]> : tensor<1x{self.devices}xi64>"
        self.lines.append(f'%keep = "stablehlo.collective_broadcast"({source.name}) {{replica_groups = {everyone}, '
                          f'{_CHANNEL}}} : ({source.type}) -> {keep.type}')
        out = [*returned, keep]
        arguments = ", ".join(f"{a.name}: {a.type}" for a in self.arguments)
        body = "\n".join(self.lines)
        types = ", ".join(v.type for v in out)
        return (f"module attributes {{mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = "
                f"{self.replicas} : i32}} {{\nfunc.func @main({arguments}) -> ({types}) {{\n{body}\n"
                f"return {', '.join(v.name for v in out)} : {types}\n}}\n}}\n")

    def _argument(self) -> Tensor:
        value = Tensor(f"%arg{len(self.arguments)}", self.shape, self.element)
        self.arguments.append(value)
        return value

    def _fresh(self, shape: tuple[int, ...], element: str) -> Tensor:
        return Tensor(f"%v{len(self.lines)}", shape, element)

    # ---- operands

    def _leaf(self, name: str) -> Tensor:
        if name not in self.values or name == "_":
            value = self._argument()
            if self.replicas == 1 and self.chosen.random() < 0.35:  # the same on every device of a group
                value = self._all_reduce(value, self._groups(), "sum")
            self.values[name] = value
        return self.values[name]

    def _operands(self, pattern: ast.OpPattern) -> list[Tensor]:
        operands: list[Tensor] = []
        for operand in pattern.operands:
            if isinstance(operand, ast.Indexed):
                raise NotGenerated("it matches operands by position")
            if isinstance(operand, ast.Spread):
                operands += [self._argument()]
            else:
                operands.append(self._leaf(operand.name))
        return operands

    # ---- ops

    def _op(self, node: OpPatternNode) -> tuple[OpPatternNode, Tensor]:
        pattern = node.pattern
        if len(pattern.results) != 1:
            raise NotGenerated("it matches ops with several results")
        names = pattern.names
        name = names[(self.name_choice if self.chosen.random() < 0.85 else self.chosen.randrange(64)) % len(names)]
        dialect, _, short = name.partition(".")
        operands = self._operands(pattern)
        write: Callable[[ast.OpPattern, str, list[Tensor]], Tensor] | None = getattr(self, f"_write_{short}", None)
        if dialect != "stablehlo":
            raise NotGenerated(f"it matches {name}")
        if short in _BINARY or short in _UNARY:
            value = self._elementwise(short, operands)
        elif write is not None:
            value = write(pattern, short, operands)
        else:
            raise NotGenerated(f"it matches {name}")
        self.values[pattern.results[0]] = value
        if not pattern.root and self.chosen.random() < 0.2:
            self.readers.append(self._elementwise("optimization_barrier", [value]))
        return node, value

    def _elementwise(self, short: str, operands: list[Tensor]) -> Tensor:
        first = operands[0]
        if len({o.type for o in operands}) != 1:
            raise DoesNotFit
        result = self._fresh(first.shape, first.element)
        types = ", ".join(o.type for o in operands)
        names = ", ".join(o.name for o in operands)
        self.lines.append(f'{result.name} = "stablehlo.{short}"({names}) : ({types}) -> {result.type}')
        return result

    def _write_convert(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        (operand,) = operands
        result = self._fresh(operand.shape, self.chosen.choice(("bf16", "f32", "f64", "i32")))
        self.lines.append(f"{result.name} = stablehlo.convert {operand.name} : ({operand.type}) -> {result.type}")
        return result

    def _write_reverse(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        text = self._attribute(pattern, "dimensions", lambda: "array<i64: 0>")
        return self._plain(short, operands[0], f"dimensions = {text}", operands[0].shape)

    def _plain(self, short: str, operand: Tensor, attributes: str, shape: tuple[int, ...]) -> Tensor:
        result = self._fresh(shape, operand.element)
        self.lines.append(f'{result.name} = "stablehlo.{short}"({operand.name}) {{{attributes}}} : ({operand.type}) '
                          f'-> {result.type}')
        return result

    # ---- collectives

    def _write_all_reduce(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        return self._all_reduce(operands[0], self._groups_of(pattern), self._kind(pattern))

    def _all_reduce(self, operand: Tensor, groups: str, kind: str) -> Tensor:
        return self._reducing("all_reduce", operand, groups, kind, "", operand.shape)

    def _reducing(self, short: str, operand: Tensor, groups: str, kind: str, more: str,
                  shape: tuple[int, ...]) -> Tensor:
        if kind in ("and", "or") and operand.element not in ("i32", "i1"):
            raise DoesNotFit
        result = self._fresh(shape, operand.element)
        scalar = f"tensor<{operand.element}>"
        self.lines.append(
            f'{result.name} = "stablehlo.{short}"({operand.name}) ({{^bb0(%x: {scalar}, %y: {scalar}): '
            f'%z = stablehlo.{_REDUCERS[kind]} %x, %y : {scalar} stablehlo.return %z : {scalar}}}) '
            f'{{replica_groups = {groups}{self._mode(short)}{more}}} : ({operand.type}) -> '
            f'{result.type}')
        return result

    def _write_reduce_scatter(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        groups, size = self._sized(pattern)
        dimension = self._dimension(pattern, "scatter_dimension", operands[0])
        shape = _scaled(operands[0].shape, dimension, 1, size)
        return self._reducing(short, operands[0], groups, self._kind(pattern),
                              f", scatter_dimension = {dimension} : i64", shape)

    def _write_all_gather(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        groups, size = self._sized(pattern)
        dimension = self._dimension(pattern, "all_gather_dim", operands[0])
        return self._moving(short, operands[0], groups, f"all_gather_dim = {dimension} : i64",
                            _scaled(operands[0].shape, dimension, size, 1))

    def _write_all_to_all(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        groups, size = self._sized(pattern)
        split = self._dimension(pattern, "split_dimension", operands[0])
        concat = self._dimension(pattern, "concat_dimension", operands[0])
        shape = _scaled(_scaled(operands[0].shape, split, 1, size), concat, size, 1)
        return self._moving(short, operands[0], groups, f"split_dimension = {split} : i64, concat_dimension = {concat} "
                                                        f": i64, split_count = {size} : i64", shape)

    def _write_collective_broadcast(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        return self._moving(short, operands[0], self._groups_of(pattern), "", operands[0].shape)

    def _write_collective_permute(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        pairs = self._attribute(pattern, "source_target_pairs", self._pairs)
        return self._plain(short, operands[0], f"source_target_pairs = {pairs}{self._mode(short)}", operands[0].shape)

    def _mode(self, short: str) -> str:
        """The attributes that say what ids mean: devices, or replicas or partitions of 2 x 2 devices."""
        row = BY_OP[f"stablehlo.{short}"]
        if self.replicas == 1:
            return f", {_CHANNEL}" + (", use_global_device_ids" if row.global_ids else "")
        # How large such a result is depends on how many devices the ids mean.
        return f", {_CHANNEL}" if not row.larger and self.chosen.random() < 0.5 else ""

    def _moving(self, short: str, operand: Tensor, groups: str, more: str, shape: tuple[int, ...]) -> Tensor:
        more = f", {more}" if more else ""
        return self._plain(short, operand, f"replica_groups = {groups}{self._mode(short)}{more}", shape)

    def _write_dynamic_slice(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        """A slice of one shard, chosen by a table over the devices; sometimes across shards."""
        source = operands[0]
        dimension = self.chosen.randrange(len(source.shape))
        count = self.chosen.choice([c for c in (2, 2, 4, 8) if c <= self.devices])
        shape = _scaled(source.shape, dimension, 1, count)
        draw = self.chosen.random()
        shards = [d % count if draw < 0.4 else d * count // self.devices if draw < 0.8
                  else self.chosen.randrange(count) for d in range(self.devices)]
        starts = [shard * shape[dimension] + (draw < 0.1) for shard in shards]
        tag = len(self.lines)
        self.lines += [f"%id{tag} = stablehlo.partition_id : tensor<ui32>",
                       f"%zero{tag} = stablehlo.constant dense<0> : tensor<i32>",
                       f"%table{tag} = stablehlo.constant dense<{starts}> : tensor<{self.devices}xi32>",
                       f"%row{tag} = stablehlo.dynamic_slice %table{tag}, %id{tag}, sizes = [1] : "
                       f"(tensor<{self.devices}xi32>, tensor<ui32>) -> tensor<1xi32>",
                       f"%start{tag} = stablehlo.reshape %row{tag} : (tensor<1xi32>) -> tensor<i32>"]
        indices = [f"%start{tag}" if i == dimension else f"%zero{tag}" for i in range(len(source.shape))]
        result = self._fresh(shape, source.element)
        self.lines.append(f"{result.name} = stablehlo.dynamic_slice {source.name}, {', '.join(indices)}, sizes = "
                          f"{list(shape)} : ({', '.join([source.type, *['tensor<i32>'] * len(indices)])}) -> "
                          f"{result.type}")
        return result

    def _write_select(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        """A value on one device of a few, zeros on the others; sometimes on two, or two values."""
        kept, other = operands[1], operands[2]
        every, keeper, draw = self.chosen.choice((2, self.devices)), self.chosen.randrange(2), self.chosen.random()
        keeps = [d % every == keeper or (draw < 0.1 and d % every == 0) for d in range(self.devices)]
        swapped, tag = self.chosen.random() < 0.4, len(self.lines)
        table = str([here != swapped for here in keeps]).lower()
        if draw < 0.9:
            other = Tensor(f"%zeros{tag}", kept.shape, kept.element)
            zero = {"i1": "false", "complex<f32>": "(0.0, 0.0)"}.get(
                kept.element, "0" if kept.element == "i32" else "0.0")
            self.lines.append(f"{other.name} = stablehlo.constant dense<{zero}> : {other.type}")
        mask = Tensor(f"%mask{tag}", kept.shape, "i1")
        self.lines += [f"%id{tag} = stablehlo.partition_id : tensor<ui32>",
                       f"%table{tag} = stablehlo.constant dense<{table}> : tensor<{self.devices}xi1>",
                       f"%row{tag} = stablehlo.dynamic_slice %table{tag}, %id{tag}, sizes = [1] : "
                       f"(tensor<{self.devices}xi1>, tensor<ui32>) -> tensor<1xi1>",
                       f"%own{tag} = stablehlo.reshape %row{tag} : (tensor<1xi1>) -> tensor<i1>",
                       f"{mask.name} = stablehlo.broadcast_in_dim %own{tag}, dims = [] : (tensor<i1>) -> {mask.type}"]
        sides = [other, kept] if swapped else [kept, other]
        return self._line(short, [mask, *sides], "", kept.shape, kept.element)

    def _write_scatter(self, pattern: ast.OpPattern, short: str, operands: list[Tensor]) -> Tensor:
        """Two rows of updates, at places of a table."""
        operand, tag = operands[0], len(self.lines)
        updates = Tensor(f"%updates{tag}", (2, *operand.shape[1:]), operand.element)
        at = Tensor(f"%at{tag}", (2, 1), "i32")
        limits = [2, *operand.shape[1:]]
        zeros = [0] * len(limits)
        scalar, op = f"tensor<{operand.element}>", _REDUCERS[self._kind(pattern)]
        result = Tensor(f"%v{tag + 2}", operand.shape, operand.element)
        places = [[self.chosen.randrange(operand.shape[0] + 1)] for _ in range(2)]
        self.lines += [
            f"{at.name} = stablehlo.constant dense<{places}> : {at.type}",
            f'{updates.name} = "stablehlo.slice"({operands[2].name}) {{start_indices = array<i64: '
            f'{", ".join(map(str, zeros))}>, limit_indices = array<i64: {", ".join(map(str, limits))}>, strides = '
            f'array<i64: {", ".join("1" for _ in limits)}>}} : ({operands[2].type}) -> {updates.type}',
            f'{result.name} = "stablehlo.scatter"({operand.name}, {at.name}, {updates.name}) ({{^bb0(%x: {scalar}, '
            f"%y: {scalar}): %z = stablehlo.{op} %x, %y : {scalar} stablehlo.return %z : {scalar}}}) "
            f"{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {list(range(1, len(limits)))}, "
            "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : "
            f"({operand.type}, {at.type}, {updates.type}) -> {result.type}"]
        return result

    # ---- what a pattern leaves open

    def _attribute(self, pattern: ast.OpPattern, name: str, draw: Callable[[], str]) -> str:
        named = next((a.value for a in pattern.attributes if a.name == name), None)
        if isinstance(named, ast.AttributeVariable):
            return self.attributes.setdefault(named.name, draw())
        if isinstance(named, ast.Mlir):
            return named.text
        if isinstance(named, ast.Literal):
            if isinstance(named.value, bool):
                return str(named.value).lower()
            if isinstance(named.value, tuple) and all(isinstance(entry, int) for entry in named.value):
                return f"array<i64: {', '.join(map(str, named.value))}>"
            if not isinstance(named.value, int):
                raise NotGenerated(f"it wants a certain `{name}`")
            return str(int(named.value))
        return draw()

    def _dimension(self, pattern: ast.OpPattern, name: str, operand: Tensor) -> int:
        return int(self._attribute(pattern, name, lambda: str(self.chosen.randrange(len(operand.shape)))))

    def _kind(self, pattern: ast.OpPattern) -> str:
        region = next((r for r in pattern.regions if isinstance(r, ast.Reduces)), None)
        bitwise = ("and", "or") if self.element in ("i32", "i1") else ()
        draw = self.chosen.choice(("sum", "sum", "max", "min", *bitwise))
        if region is None:
            return draw
        if isinstance(region.kind, str):
            return region.kind
        return self.attributes.setdefault(region.kind.name, draw)

    def _groups_of(self, pattern: ast.OpPattern) -> str:
        return self._attribute(pattern, "replica_groups", self._groups)

    def _sized(self, pattern: ast.OpPattern) -> tuple[str, int]:
        groups = self._groups_of(pattern)
        return groups, int(groups.split("tensor<")[1].split("x")[1])

    def _groups(self) -> str:
        """Groups of the devices, often those drawn before."""
        if self.groups and self.chosen.random() < 0.55:
            return self.groups
        size = self.chosen.choice([s for s in (1, 2, 2, 4, 8) if s <= self.devices])
        order = list(range(self.devices))
        if self.chosen.random() < 0.5:  # neighbours, or devices far apart
            order = [d for start in range(self.devices // size) for d in order[start::self.devices // size]]
        rows = [order[i:i + size] for i in range(0, self.devices, size)]
        if self.chosen.random() < 0.25:
            rows = [row[::-1] for row in rows]
        self.groups = f"dense<{rows}> : tensor<{len(rows)}x{size}xi64>"
        return self.groups

    def _pairs(self) -> str:
        everyone = list(range(self.devices))
        draw = self.chosen.random()
        if draw < 0.35:
            pairs = [(d, d) for d in everyone]
        else:
            targets = everyone[:]
            self.chosen.shuffle(targets)
            pairs = list(zip(everyone, targets, strict=True))
        if self.chosen.random() < 0.4:
            pairs = pairs[:max(1, len(pairs) // 2)]
        return f"dense<{[list(p) for p in pairs]}> : tensor<{len(pairs)}x2xi64>"


def _says_ids_are_equal(patterns: Sequence[ast.OpPattern]) -> bool:
    """Whether a rule gives the groups or pairs of two ops one name, which says nothing about what their ids mean."""
    named = [attribute.value.name for pattern in patterns for attribute in pattern.attributes
             if attribute.name in ("replica_groups", "source_target_pairs")
             and isinstance(attribute.value, ast.AttributeVariable)]
    return len(named) > len(set(named))


def _scaled(shape: tuple[int, ...], dimension: int, up: int, down: int) -> tuple[int, ...]:
    if dimension >= len(shape) or shape[dimension] * up % down:
        raise DoesNotFit
    return tuple(size * up // down if i == dimension else size for i, size in enumerate(shape))


def rule_reads_root(rule: ast.Rule) -> bool:
    """Whether a rule makes the readers of its root read something else; a rule about dead ops requires that there are
    none."""
    roots = [s for s in rule.match.statements if isinstance(s, ast.OpPattern) and s.root]
    replaced = [s.old.name for s in rule.rewrite.statements if isinstance(s, ast.Replace)]
    return any(name in replaced for root in roots for name in root.results)


def _in_order(nodes: Sequence[OpPatternNode], chosen: random.Random) -> list[OpPatternNode]:
    """Patterns with those that define their operands first; free choices are drawn."""
    owners = results_of(nodes)
    placed: list[OpPatternNode] = []
    waiting = list(nodes)
    # Ends: each round places a node, or says that there is a circle.
    while waiting:
        numbers = {n.number for n in placed}
        ready = [n for n in waiting if all(owners[r.name][0] in numbers for r in values_in(n.pattern.operands)
                                           if r.name in owners)]
        if not ready:
            raise NotGenerated("its ops read each other in a cycle")
        placed.append(chosen.choice(ready))
        waiting.remove(placed[-1])
    return placed
