"""Who sends which block to whom, round by round, so that every block takes a separate tree.

In a round a port sends at most one block and receives at most one. With one port a host the rounds are those of a
circulant graph, as few as any plan of blocks needs. With several ports, the source sends a new block from each of them.
The newest block, which the fewest hosts have, goes first: each host that has it sends it through all its free ports, so
the number of hosts with the block multiplies until all have it.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BlockSend:
    """One block on one link.

    Attributes:
      sender: the host it comes from, numbered from 1; 0 is the source.
      out: the sending host's port, by number among those used; of the source the stream's.
      receiver: the host it goes to.
      into: the receiving host's port.
      stream: the stream of the block.
      block: its number in the stream.
    """

    sender: int
    out: int
    receiver: int
    into: int
    stream: int
    block: int


@dataclass
class _Spread:
    """A block on its way: the hosts that lack it, and for each host that has it the round from which it can send it and
    the port it came through.
    """

    stream: int
    number: int
    lacking: list[int]
    holders: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class _Ports:
    """Ports that are free in a round, as bits by host."""

    out: list[int]
    into: list[int]

    @staticmethod
    def take(free: list[int], host: int, wanted: int) -> int:
        """A free port of a host; the wanted one if it is free."""
        port = wanted if free[host] >> wanted & 1 else (free[host] & -free[host]).bit_length() - 1
        free[host] &= ~(1 << port)
        return port


@functools.lru_cache(maxsize=64)
def block_sends(hosts: int, blocks: tuple[int, ...], relay: int = 0) -> tuple[tuple[BlockSend, ...], ...]:
    """The rounds of a broadcast to some hosts.

    Args:
      hosts: receiving hosts; they are numbered from 1, and 0 is the source.
      blocks: number of blocks of each stream; there are as many streams as a host has ports, each leaves the source
        through a separate port, and a host passes a block on through any of its ports.
      relay: rounds that a block takes from the port it came by to the other ports of its host.

    Returns:
      The sends of each round.

    Example:
      >>> [[(send.sender, send.receiver, send.block) for send in each] for each in block_sends(3, (2,))]
      [[(0, 2, 0)], [(0, 1, 1), (2, 3, 0)], [(3, 1, 0), (0, 2, 1), (1, 3, 1)]]
    """
    if len(blocks) == 1:
        return tuple(tuple(BlockSend(sender, 0, receiver, 0, 0, block) for sender, receiver, block in each)
                     for each in circulant_sends(hosts + 1, blocks[0]))
    everything = (1 << len(blocks)) - 1
    live: list[_Spread] = []
    rounds: list[tuple[BlockSend, ...]] = []
    # Ends: a round lets new blocks go or, when all are on their way, sends the first of them at least once more.
    while live or len(rounds) < max(blocks):
        number = len(rounds)
        live += [_Spread(stream, number, list(range(1, hosts + 1))) for stream, count in enumerate(blocks)
                 if number < count]
        ports = _Ports([everything] * (hosts + 1), [everything] * (hosts + 1))
        live.sort(key=lambda each: (-len(each.lacking), -each.number, each.stream))
        sends = [send for each in live for send in _spread(each, number, ports, hosts, relay)]
        sends += [send for each in live for send in _again(each, number, ports, relay)]
        rounds.append(tuple(sends))
        live = [each for each in live if each.lacking]
    return tuple(rounds)


def _spread(each: _Spread, number: int, ports: _Ports, hosts: int, relay: int) -> list[BlockSend]:
    """What is sent of a block in a round by those who have it; by the source only if it is new."""
    turn = each.number * 7 + each.stream
    wanting = sorted((host for host in each.lacking if ports.into[host]),
                     key=lambda host: (-ports.into[host].bit_count(), (host - turn) % (hosts + 1)))
    senders = [(0, each.stream)] if not each.holders and ports.out[0] >> each.stream & 1 else []
    # Ends: a pass without a free port of a host that has the block stops it.
    while len(senders) < len(wanting):
        more = [(host, came) for host, came, since in each.holders
                if since <= number and ports.out[host].bit_count() > sum(h == host for h, _ in senders)]
        if not more:
            break
        senders += more
    sends = [_send(each, *sender, receiver, ports) for sender, receiver in zip(senders, wanting, strict=False)]
    _given(each, sends, number, relay)
    return sends


def _again(each: _Spread, number: int, ports: _Ports, relay: int) -> list[BlockSend]:
    """Sends a block again from the source, if its port has nothing new and a host that lacks the block is free."""
    wanting = next((host for host in each.lacking if ports.into[host]), None)
    if wanting is None or not ports.out[0] >> each.stream & 1:
        return []
    sends = [_send(each, 0, each.stream, wanting, ports)]
    _given(each, sends, number, relay)
    return sends


def _send(each: _Spread, sender: int, wanted: int, receiver: int, ports: _Ports) -> BlockSend:
    return BlockSend(sender, ports.take(ports.out, sender, wanted), receiver,
                     ports.take(ports.into, receiver, each.stream), each.stream, each.number)


def _given(each: _Spread, sends: list[BlockSend], number: int, relay: int) -> None:
    """Notes who has a block after a round."""
    for send in sends:
        each.lacking.remove(send.receiver)
        each.holders.append((send.receiver, send.into, number + 1 + relay))


# ---- broadcasts in blocks over a circulant graph, in as few rounds as any broadcast of blocks needs

# The source and n - 1 hosts form a ring. In round i each sends to the one ``skip[i mod q]`` places further on, with q =
# ceil(log2 n). The blocks that it sends repeat every q rounds, with numbers that are larger by q. A new block reaches
# every host within q rounds, so K blocks need K - 1 + q, the least possible where each sends and receives one at a
# time.
#
# Source: J. L. Träff, "Optimal broadcast schedules in logarithmic time with applications to broadcast, all-broadcast,
# reduction and all-reduction" (arXiv:2407.18004), skips and receive schedules.


@functools.lru_cache(maxsize=16)
def skips_of(ring: int) -> tuple[int, ...]:
    """How far each round of a period sends, followed by the size of the ring.

    Args:
      ring: the source and all hosts.

    Returns:
      Each the half of the next, rounded up.

    Example:
      >>> skips_of(9)
      (1, 2, 3, 5, 9)
    """
    skips = [ring]
    # Ends: half of a number above 1, rounded up, is smaller.
    while skips[0] > 1:
        skips.insert(0, -(-skips[0] // 2))
    return tuple(skips)


@functools.lru_cache(maxsize=16)
def receive_schedules(ring: int) -> tuple[tuple[int, ...], ...]:
    """Per place of the ring, the block that it receives in each round of a period.

    A number below 0 is a block of an earlier period: in period j block ``number + j * q`` arrives.

    Args:
      ring: the source, which is place 0, and all hosts.

    Returns:
      A schedule for each place; that of the source is empty.

    Example:
      >>> receive_schedules(5)
      ((), (0, -1, -2), (-3, 1, -1), (-2, -3, 2), (-1, -2, 0))
    """
    return ((), *(_receive_schedule(place, skips_of(ring)) for place in range(1, ring)))


def circulant_sends(ring: int, blocks: int) -> Iterator[list[tuple[int, int, int]]]:
    """The rounds of a broadcast: each is (sending place, receiving place, block), every block once to every host.

    Args:
      ring: the source, which is place 0, and all hosts.
      blocks: how many blocks.

    Yields:
      Round by round what is sent, ``blocks - 1 + ceil(log2(ring))`` rounds.

    Example:
      >>> list(circulant_sends(4, 2))
      [[(0, 2, 0)], [(0, 1, 1), (2, 3, 0)], [(3, 1, 0), (0, 2, 1), (1, 3, 1)]]
    """
    skips, schedules = skips_of(ring), receive_schedules(ring)
    period = len(skips) - 1
    # The last round ends a period: the periods begin some rounds before the first block.
    before = -(blocks - 1 + period) % period
    there: list[set[int]] = [set() for _ in range(ring)]
    for number in range(before, before + blocks - 1 + period):
        turn, sends = number % period, []
        for place in range(1, ring):
            # Past the last block the last one is sent, so that it reaches all in time.
            block = min(schedules[place][turn] + number - turn - before, blocks - 1)
            if block >= 0 and block not in there[place]:
                sends.append(((place - skips[turn]) % ring, place, block))
        for _, place, block in sends:
            there[place].add(block)
        yield sends


def _first_block(place: int, skips: tuple[int, ...]) -> int:
    """The block of the first period that a place gets in it: the least skip on its way from the source."""
    for number in range(len(skips) - 1, -1, -1):
        if skips[number] == place:
            return number
        place -= skips[number] if skips[number] < place else 0
    raise AssertionError("skips begin with 1")


@dataclass
class _ReceiveSearch:
    """The search for one place's receive schedule: each round's block is the first block of some place further back.

    Places are found from the source forwards, by long skips first, and each skip is the last of one way at most.

    Args:
      place: the place, once around the ring from where the search begins.
      skips: the skips.
      unused: the skips that no way found has ended with, long ones first.
      before: the last place found; the next is before it.
      found: the skip that each way found ends with, by round.
    """

    place: int
    skips: tuple[int, ...]
    unused: list[int]
    before: int
    found: list[int] = field(default_factory=list)

    def within(self, reached: int, rounds: int) -> bool:
        """Whether a place is far enough back for the block of the next round, or of one of the rounds after it."""
        number = len(self.found) + rounds
        return number < len(self.skips) and reached <= self.place - self.skips[number]

    def walk(self, at: int, most: int) -> None:
        """Follows the paths from a place, with skips numbered at most ``most``."""
        for skip in [each for each in self.unused if each <= most]:
            reached = at + self.skips[skip]
            if skip not in self.unused or not self.within(reached, 0) or reached >= self.before:
                continue
            if self.within(reached, 1):
                self.walk(reached, skip - 1)
            if not self.within(at, 1):
                return
            self.unused.remove(skip)
            self.found.append(skip)
            self.before = reached


def _receive_schedule(place: int, skips: tuple[int, ...]) -> tuple[int, ...]:
    period, first = len(skips) - 1, _first_block(place, skips)
    # The search goes once around the ring, so that senders before the source are further back too.
    unused = [skip for skip in range(period, -1, -1) if skip != first]
    search = _ReceiveSearch(skips[-1] + place, skips, unused, 2 * skips[-1])
    search.walk(0, period)
    return tuple(first if skip == period else skip - period for skip in search.found)
