"""Writes the StableHLO text of a resharding program."""

import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hlorewrite.ir.collectives import ALL_GATHER, COLLECTIVE_BROADCAST, COLLECTIVE_PERMUTE, CollectiveOp


class RoundEmitter:
    """Builds one SPMD program: runs of rounds on a source and a destination buffer.

    Args:
      element_type: MLIR element type of the tensor.
      devices: number of partitions.
      source: shape of a device's source buffer.
      destination: shape of its destination buffer.
    """

    def __init__(self, element_type: str, devices: int, source: tuple[int, ...], destination: tuple[int, ...]) -> None:
        self.element_type = element_type
        self.devices = devices
        self.source = source
        self.destination = destination
        self._lines: list[str] = []
        self._names = 0
        self._channel = 0
        self._out = "%empty"

    def _type(self, shape: Iterable[int], element: str | None = None) -> str:
        return f"tensor<{''.join(f'{size}x' for size in shape)}{element or self.element_type}>"

    def _name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def _op(self, text: str) -> str:
        name = self._name()
        self._lines.append(f"{name} = {text}")
        return name

    def run(self, table: np.ndarray, message: tuple[int, ...], pairs: Sequence[tuple[int, int]] | None,
            groups: Sequence[tuple[int, ...]] | None, read: tuple[bool, bool]) -> None:
        """Adds a run of rounds.

        Args:
          table: i32 by (round, device): where to read the chunk to send (rank numbers), where to write the
            chunk received (rank numbers), 1 to read from the destination, 1 to write; shape
            ``[rounds, devices, 2·rank + 2]``.
          message: shape of a chunk.
          pairs: sender and receiver of each message; with neither pairs nor groups a device receives its own.
          groups: sender and receivers of each multicast.
          read: whether any device reads the source, and the destination.
        """
        self._loop(table, functools.partial(self._round, message=message, pairs=pairs, groups=groups, read=read))

    def gather(self, table: np.ndarray, message: tuple[int, ...], groups: Sequence[tuple[int, ...]]) -> None:
        """Adds a run of rounds in which devices gather a chunk of each member of their group.

        Args:
          table: i32 by (round, device): where to read the chunk to send (rank numbers, in the destination), for each
            member where to write its chunk (rank numbers each), for each member 1 to write; shape
            ``[rounds, devices, rank + members·(rank + 1)]``.
          message: shape of a chunk.
          groups: all devices, in groups of one size.
        """
        self._loop(table, functools.partial(self._gathered, message=message, groups=groups))

    def _loop(self, table: np.ndarray, body: Callable[[list[str], str], str]) -> None:
        """A loop over the rows of a table; the body is given a device's numbers and the destination, and returns it."""
        rounds, columns = table.shape[0], table.shape[2]
        if rounds == 1:  # with a single row the chunk would not depend on the round, and be sliced before the loop
            table = np.concatenate([table, table])
        kind = self._type(table.shape, "i32")
        constant = self._op(f'stablehlo.constant dense<"0x{table.astype("<i4").tobytes().hex().upper()}"> : {kind}'
                            if len(set(table.ravel().tolist())) > 1 else
                            f"stablehlo.constant dense<{int(table.flat[0])}> : {kind}")
        out = self._type(self.destination)
        limit = self._op(f"stablehlo.constant dense<{rounds}> : tensor<i32>")
        if rounds == 1:
            limit = self._hidden(limit)
        name = self._name()
        round_, held = f"{name}_round", f"{name}_held"
        self._lines.append(f"{name}:2 = stablehlo.while({round_} = %zero, {held} = {self._out}) : tensor<i32>, {out}")
        test = self._name()
        self._lines += ["cond {", f"{test} = stablehlo.compare LT, {round_}, {limit} : (tensor<i32>, tensor<i32>) -> "
                        "tensor<i1>", f"stablehlo.return {test} : tensor<i1>", "} do {"]
        row = self._op(f"stablehlo.dynamic_slice {constant}, {round_}, %device, %zero, sizes = [1, 1, {columns}] : "
                       f"({kind}, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x{columns}xi32>")
        written = body([self._scalar(row, columns, column) for column in range(columns)], held)
        following = self._op(f"stablehlo.add {round_}, %one : tensor<i32>")
        self._lines += [f"stablehlo.return {following}, {written} : tensor<i32>, {out}", "}"]
        self._out = f"{name}#1"

    def _hidden(self, limit: str) -> str:
        """The same number in a form that depends on the device's data: clamp(n, x, n) = n for every x.

        XLA unrolls a loop of one round. The chunks of many rounds would then be sliced before the first is sent, and
        all be held in memory. In a loop body, a chunk lives for one iteration only.
        """
        one, corner = self._type((1,) * len(self.destination)), ", ".join(["0:1"] * len(self.destination))
        cut = self._op(f"stablehlo.slice {self._out} [{corner}] : ({self._type(self.destination)}) -> {one}")
        value = self._op(f"stablehlo.reshape {cut} : ({one}) -> {self._type(())}")
        element = self.element_type
        if element.startswith("complex"):
            element = element[len("complex<"):-1]
            value = self._op(f"stablehlo.real {value} : ({self._type(())}) -> tensor<{element}>")
        if element != "i32":
            value = self._op(f"stablehlo.convert {value} : (tensor<{element}>) -> tensor<i32>")
        return self._op(f"stablehlo.clamp {limit}, {value}, {limit} : tensor<i32>")

    def _round(self, value: list[str], held: str, message: tuple[int, ...], pairs: Sequence[tuple[int, int]] | None,
               groups: Sequence[tuple[int, ...]] | None, read: tuple[bool, bool]) -> str:
        """One round; returns the name of the destination buffer after it."""
        rank, chunk = len(message), self._type(message)
        sent = self._sent(value, held, message, read)
        if pairs is not None:
            sent = self._permute(sent, chunk, pairs)
        elif groups is not None:
            sent = self._broadcast(sent, chunk, groups)
        return self._written(held, sent, value[rank:2 * rank], value[-1], message)

    def _gathered(self, value: list[str], held: str, message: tuple[int, ...],
                  groups: Sequence[tuple[int, ...]]) -> str:
        """One round in which members gather; returns the name of the destination buffer after it."""
        rank, members = len(message), len(groups[0])
        sent = self._slice(held, self.destination, value[:rank], message)
        every = (members * message[0], *message[1:])
        joined = self._all_gather(sent, self._type(message), self._type(every), groups)
        for member in range(members):
            limits = ", ".join([f"{member * message[0]}:{(member + 1) * message[0]}", *(f"0:{m}" for m in message[1:])])
            part = self._op(f"stablehlo.slice {joined} [{limits}] : ({self._type(every)}) -> {self._type(message)}")
            held = self._written(held, part, value[rank * (member + 1):rank * (member + 2)],
                                 value[rank * (members + 1) + member], message)
        return held

    def _written(self, held: str, part: str, to: Sequence[str], flag: str, message: tuple[int, ...]) -> str:
        """The destination, with a chunk written to it if the flag says so."""
        chunk, out = self._type(message), self._type(self.destination)
        old = self._slice(held, self.destination, to, message)
        new = self._op(f"stablehlo.select {self._nonzero(flag)}, {part}, {old} : tensor<i1>, {chunk}")
        scalars = ", ".join(["tensor<i32>"] * len(message))
        return self._op(f"stablehlo.dynamic_update_slice {held}, {new}, {', '.join(to)} : "
                        f"({out}, {chunk}, {scalars}) -> {out}")

    def _sent(self, value: list[str], held: str, message: tuple[int, ...], read: tuple[bool, bool]) -> str:
        """The chunk a device sends: from its source, its destination, or the one its table row names."""
        rank = len(message)
        where = value[:rank]
        first = self._slice("%source", self.source, where, message) if read[0] else ""
        second = self._slice(held, self.destination, where, message) if read[1] else ""
        if not (first and second):
            return first or second
        forwards = self._nonzero(value[2 * rank])
        return self._op(f"stablehlo.select {forwards}, {second}, {first} : tensor<i1>, {self._type(message)}")

    def _slice(self, buffer: str, shape: tuple[int, ...], where: Sequence[str], message: tuple[int, ...]) -> str:
        """A chunk of a buffer. A buffer smaller than the chunk is never the selected one, so padding it with copies of
        itself is harmless.
        """
        fits = tuple(min(m, s) for m, s in zip(message, shape, strict=True))
        scalars = ", ".join(["tensor<i32>"] * len(shape))
        sizes = ", ".join(map(str, fits))
        sliced = self._op(f"stablehlo.dynamic_slice {buffer}, {', '.join(where)}, sizes = [{sizes}] : "
                          f"({self._type(shape)}, {scalars}) -> {self._type(fits)}")
        if fits == tuple(message):
            return sliced
        zero = self._op(f"stablehlo.constant dense<{_zero(self.element_type)}> : {self._type(())}")
        high = ", ".join(str(m - f) for m, f in zip(message, fits, strict=True))
        none = ", ".join(["0"] * len(shape))
        return self._op(f"stablehlo.pad {sliced}, {zero}, low = [{none}], high = [{high}], interior = [{none}] : "
                        f"({self._type(fits)}, {self._type(())}) -> {self._type(message)}")

    def _nonzero(self, value: str) -> str:
        return self._op(f"stablehlo.compare NE, {value}, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>")

    def _scalar(self, row: str, columns: int, column: int) -> str:
        cut = self._op(f"stablehlo.slice {row} [0:1, 0:1, {column}:{column + 1}] : (tensor<1x1x{columns}xi32>) -> "
                       "tensor<1x1x1xi32>")
        return self._op(f"stablehlo.reshape {cut} : (tensor<1x1x1xi32>) -> tensor<i32>")

    def _permute(self, sent: str, chunk: str, pairs: Sequence[tuple[int, int]]) -> str:
        return self._collective(COLLECTIVE_PERMUTE, sent, chunk, pairs, 2)

    def _broadcast(self, sent: str, chunk: str, groups: Sequence[tuple[int, ...]]) -> str:
        width = max(len(group) for group in groups)
        rows = [(*group, *[-1] * (width - len(group))) for group in groups]
        return self._collective(COLLECTIVE_BROADCAST, sent, chunk, rows, width)

    def _collective(self, kind: CollectiveOp, sent: str, chunk: str, rows: Sequence[tuple[int, ...]],
                    width: int) -> str:
        return self._op(f'"{kind.op}"({sent}) <{{{self._over(kind, rows, width)}}}> : ({chunk}) -> {chunk}')

    def _all_gather(self, sent: str, chunk: str, result: str, groups: Sequence[tuple[int, ...]]) -> str:
        over = self._over(ALL_GATHER, groups, len(groups[0]))
        return self._op(f'"{ALL_GATHER.op}"({sent}) <{{all_gather_dim = 0 : i64, {over}, use_global_device_ids}}> : '
                        f"({chunk}) -> {result}")

    def _over(self, kind: CollectiveOp, rows: Sequence[tuple[int, ...]], width: int) -> str:
        """The attributes that say which devices exchange data, on a separate channel."""
        self._channel += 1
        listed = ", ".join(str(list(row)) for row in rows)
        return (f"channel_handle = #stablehlo.channel_handle<handle = {self._channel}, type = 1>, {kind.groups} = "
                f"dense<[{listed}]> : tensor<{len(rows)}x{width}xi64>")

    def module(self) -> str:
        """The module's text."""
        source, out = self._type(self.source), self._type(self.destination)
        stacked = self._type((self.devices * self.source[0], *self.source[1:]))
        result = self._type((self.devices * self.destination[0], *self.destination[1:]))
        rows = ", ".join(['{"d"}'] + ["{}"] * (len(self.source) - 1))
        sharding = f"<@devices, [{rows}]>"
        of_value = f"{{sdy.sharding = #sdy.sharding{sharding}}}"
        counts = f"mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = 1 : i32"
        return "\n".join([
            f"module @reshard attributes {{{counts}}} {{",
            f'sdy.mesh @devices = <["d"={self.devices}]>',
            f"func.func public @main(%stacked: {stacked} {of_value}) -> ({result} {of_value}) {{",
            f"%result = sdy.manual_computation(%stacked) in_shardings=[{sharding}] out_shardings=[{sharding}] "
            f'manual_axes={{"d"}} (%source: {source}) {{',
            "%zero = stablehlo.constant dense<0> : tensor<i32>",
            "%one = stablehlo.constant dense<1> : tensor<i32>",
            "%partition = stablehlo.partition_id : tensor<ui32>",
            "%device = stablehlo.convert %partition : (tensor<ui32>) -> tensor<i32>",
            f"%empty = stablehlo.constant dense<{_zero(self.element_type)}> : {out}", *self._lines,
            f"sdy.return {self._out} : {out}",
            f"}} : ({stacked}) -> {result}", f"return %result : {result}", "}", "}"]) + "\n"


def _zero(element_type: str) -> str:
    if element_type.startswith("complex"):
        return "(0.0, 0.0)"
    if element_type == "i1":
        return "false"
    return "0.0" if element_type.startswith(("f", "bf")) else "0"
