"""Random programs of counted loops: accumulation over micro-batches around a loop over layers, with collectives in and after
them, rows stacked at indices that may repeat, carried values that change places, and counters read elsewhere."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from itertools import count

V, I = "tensor<8xf32>", "tensor<i32>"  # noqa: E741
GROUPS = ("[[0, 1, 2, 3]]", "[[0, 1], [2, 3]]")


def all_reduce(value: str, tag: int, groups: str, kind: str, type_: str = V) -> str:
    """The text of an all-reduce of f32, with a channel and names of its own by a number."""
    rows = "2x2" if "], [" in groups else "1x4"
    return (f'"stablehlo.all_reduce"({value}) <{{channel_handle = #stablehlo.channel_handle<handle = {tag + 1}, type = 1>, '
            f"replica_groups = dense<{groups}> : tensor<{rows}xi64>, use_global_device_ids}}> ({{ ^bb0(%l{tag}: tensor<f32>, "
            f"%r{tag}: tensor<f32>): %s{tag} = stablehlo.{kind} %l{tag}, %r{tag} : tensor<f32> stablehlo.return %s{tag} : "
            f"tensor<f32> }}) : ({type_}) -> {type_}")


class _Block:
    """Lines of one block, and the vectors that can be read in it.

    Args:
      rng: decides.
      names: numbers for names that are used once.
      pool: the vectors of the blocks around.
      rows: the number of rows of stacked tensors.
    """

    def __init__(self, rng: random.Random, names: count[int], pool: list[str], rows: int) -> None:
        self.rng, self.names, self.pool, self.rows = rng, names, list(pool), rows
        self.lines: list[str] = []

    def line(self, text: str, type_: str) -> str:
        """Writes ``%v = text : type`` and returns the name."""
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name} = stablehlo.{text} : {type_}")
        return name

    def reduced(self, value: str, type_: str = V) -> str:
        """An all-reduce, a sum or a maximum, over all devices or pairs of them."""
        name, tag, groups = f"%v{next(self.names)}", next(self.names), self.rng.choice(GROUPS)
        self.lines.append(f"{name} = {all_reduce(value, tag, groups, self.rng.choice(('add', 'add', 'maximum')), type_)}")
        return name

    def statement(self, counter: str) -> None:
        """A vector more."""
        what = self.rng.choice(("tanh", "add", "multiply", "subtract", "reduce", "gather", "counter"))
        one, other = self.rng.choice(self.pool), self.rng.choice(self.pool)
        if what == "tanh":
            made = self.line(f"tanh {one}", V)
        elif what == "reduce":
            quarter = self.line("constant dense<0.25>", V)
            made = self.line(f"multiply {self.reduced(one)}, {quarter}", V)
        elif what == "gather":
            made = self.gathered(counter)
        elif what == "counter":
            number = self.line(f"convert {counter}", f"({I}) -> tensor<f32>")
            made = self.line(f"broadcast_in_dim {number}, dims = []", f"(tensor<f32>) -> {V}")
        else:
            made = self.line(f"{what} {one}, {other}", V)
            made = self.line(f"tanh {made}", V)
        self.pool.append(made)

    def gathered(self, counter: str) -> str:
        """The rows of all devices of one part of the weights, which the counter chooses."""
        zero, tag = self.line("constant dense<0>", I), next(self.names)
        row = self.line(f"dynamic_slice %w, {counter}, {zero}, sizes = [1, 2]",
                        f"(tensor<4x2xf32>, {I}, {I}) -> tensor<1x2xf32>")
        part = self.line(f"reshape {row}", "(tensor<1x2xf32>) -> tensor<2xf32>")
        name = f"%v{next(self.names)}"
        self.lines.append(
            f'{name} = "stablehlo.all_gather"({part}) <{{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<'
            f"handle = {tag + 1}, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}}> : "
            f"(tensor<2xf32>) -> {V}")
        return name


def _loop(body: _Block, depth: int, trips: str = "") -> None:
    """A counted loop of carried vectors and a stacked tensor; its results join the pool of the block.

    Args:
      body: the block.
      depth: how deep loops may stand in it.
      trips: the number of its iterations; by default that of the rows.
    """
    rng, rows = body.rng, body.rows
    vectors, stacks = rng.randint(1, 3), rng.random() < 0.7
    stacked = f"tensor<{rows}x8xf32>"
    zero, one, bound = (body.line(f"constant dense<{number}>", I) for number in (0, 1, rows))
    bound = trips or bound
    zeros = body.line("constant dense<0.0>", stacked)
    tag = next(body.names)
    slots = [f"%c{tag}_{number}" for number in range(vectors)]
    carried = [f"%i{tag} = {zero}", *(f"{slot} = {rng.choice(body.pool)}" for slot in slots)]
    types = [I, *([V] * vectors)]
    if stacks:
        carried.append(f"%rows{tag} = {zeros}")
        types.append(stacked)
    inside = _Block(rng, body.names, [*body.pool, *slots], rows)
    for _ in range(rng.randint(1, 5)):
        inside.statement(f"%i{tag}")
    if depth and rng.random() < 0.8:
        _loop(inside, depth - 1)
    ends = [rng.choice(inside.pool[-4:] + slots) for _ in slots]
    ends = [inside.line(f"add {slot}, {end}", V) if rng.random() < 0.5 else end for slot, end in zip(slots, ends, strict=True)]
    if stacks:
        row = inside.line(f"reshape {rng.choice(inside.pool)}", f"({V}) -> tensor<1x8xf32>")
        at = _index(inside, f"%i{tag}", one)
        ends.append(inside.line(f"dynamic_update_slice %rows{tag}, {row}, {at}, {zero}",
                                f"({stacked}, tensor<1x8xf32>, {I}, {I}) -> {stacked}"))
    after = inside.line(f"add %i{tag}, {one}", I)
    body.lines.append(f"%o{tag}:{len(types)} = stablehlo.while({', '.join(carried)}) : {', '.join(types)}\ncond {{\n"
                      f"%more{tag} = stablehlo.compare LT, %i{tag}, {bound} : ({I}, {I}) -> tensor<i1>\n"
                      f"stablehlo.return %more{tag} : tensor<i1>\n}} do {{\n" + "\n".join(inside.lines) +
                      f"\nstablehlo.return {', '.join([after, *ends])} : {', '.join(types)}\n}}")
    body.pool += [f"%o{tag}#{number + 1}" for number in range(vectors)]
    if stacks:
        _behind(body, f"%o{tag}#{vectors + 1}", stacked, zero)


def _index(inside: _Block, counter: str, one: str) -> str:
    """Where a row is written: forwards, backwards, or one row again and again."""
    last = inside.line(f"constant dense<{inside.rows - 1}>", I)
    return inside.rng.choice((counter, inside.line(f"subtract {last}, {counter}", I),
                              inside.line(f"minimum {counter}, {one}", I)))


def _behind(body: _Block, rows: str, stacked: str, zero: str) -> None:
    """What is done with stacked rows: scaled, added to another tensor, reduced; one of them joins the pool."""
    if body.rng.random() < 0.5:
        rows = body.line(f"multiply {rows}, {body.line('constant dense<0.5>', stacked)}", stacked)
    if body.rng.random() < 0.5:
        wide = body.line(f"broadcast_in_dim {body.rng.choice(body.pool)}, dims = [1]", f"({V}) -> {stacked}")
        rows = body.line(f"add {wide}, {rows}", stacked)
    rows = body.reduced(rows, stacked)
    one = body.line(f"dynamic_slice {rows}, {zero}, {zero}, sizes = [1, 8]", f"({stacked}, {I}, {I}) -> tensor<1x8xf32>")
    flat = body.line(f"reshape {one}", f"(tensor<1x8xf32>) -> {V}")
    body.pool.append(body.line(f"tanh {flat}", V))


def random_layers(rng: random.Random, *, at_run_time: bool = False) -> str:
    """The text of a module over four partitions.

    Args:
      rng: decides.
      at_run_time: whether the outermost loops run as often as an argument says.
    """
    body = _Block(rng, count(), ["%x", "%y"], rng.randint(2, 4))
    for _ in range(rng.randint(1, 2)):
        _loop(body, rng.randint(0, 2), "%n" if at_run_time else "")
    total = body.pool[2]
    for value in body.pool[3:]:
        total = body.line(f"add {total}, {value}", V)
    more = f", %n: {I}" if at_run_time else ""
    result = body.reduced(total) if rng.random() < 0.5 else total
    return ("module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            f"func.func public @main(%x: {V}, %y: {V}, %w: tensor<4x2xf32>{more}) -> {V} {{\n" + "\n".join(body.lines) +
            f"\nreturn {result} : {V}\n}}\n}}\n")
