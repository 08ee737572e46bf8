"""The running state of one DMA channel, and the tasks that the host starts on it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from npusim.engine.loop import Waitable
from npusim.engine.state import Array
from npusim.engine.transfer import Transfer
from npusim.ir import Op
from npusim.machine import DmaChannel
from npusim.report import ChannelUse


class Task(Waitable):
    """A transfer the host started on a shim channel: a chain of descriptors, run ``passes`` times. Waited for until
    ``done_at`` is set."""

    __slots__ = ("awaited", "chain", "channel", "done_at", "name", "op", "passes", "pushed_at", "started_at", "token")

    def __init__(self, channel: DmaChannel, chain: list[Transfer], passes: int, token: bool, name: str, op: Op) -> None:
        super().__init__()
        self.channel, self.chain, self.passes = channel, chain, passes
        self.token, self.name, self.op = token, name, op
        self.awaited = False
        self.pushed_at = self.started_at = 0
        self.done_at: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes it moves in all."""
        return self.passes * sum(transfer.nbytes for transfer in self.chain)


@dataclass(eq=False)
class End:
    """One channel: the current transfer, what it still lacks, and where its next ones come from."""

    channel: DmaChannel
    use: ChannelUse
    program: list[Transfer]
    tasks: deque[Task] = field(default_factory=deque)  # pushed by the host, not yet taken up
    recent: deque[Task] = field(default_factory=deque)  # taken up, perhaps later than the host's present
    arrived: Waitable = field(default_factory=Waitable)
    task: Task | None = None
    transfer: Transfer | None = None
    upcoming: Transfer | None = None  # its locks are not all taken yet
    left: int = 0  # bytes the current transfer still lacks
    moved: int = 0
    passes: int = 0  # of the chain, complete
    staged: Array | None = None
    warm: bool = False  # has run a host task in this run
    finished: bool = False
    finished_at: int = 0  # when its last host task ended

    def __post_init__(self) -> None:
        channel = self.channel
        self.host = not channel.descriptors  # the host sequence drives it
        self.track = str(channel)
        self.key = (1, *channel.tile, channel.index, int(channel.direction == "S2MM"))

    def take_up(self, now: int) -> None:
        """Start the next host task, on a channel that became free at tick ``now``."""
        task = self.task = self.tasks.popleft()
        task.started_at = max(now, task.pushed_at)
        self.transfer, self.passes = None, 0
        self.recent.append(task)

    def waiting(self, now: int) -> int:
        """How many host tasks wait behind the running one at tick ``now`` (the stream may be ahead of it)."""
        while self.recent and self.recent[0].started_at <= now:
            self.recent.popleft()
        return len(self.recent) + len(self.tasks)

    def busy(self, now: int) -> bool:
        """Whether a host task runs at tick ``now``."""
        return self.finished_at > now or (self.task is not None and self.task.started_at <= now)

    def advance(self) -> Transfer | None:
        """The next transfer of the chain, now ``upcoming``; None if the chain is over."""
        chain = self.task.chain if self.task else self.program
        if self.transfer is None:
            self.upcoming = chain[0]
        elif self.transfer.next is not None:
            self.upcoming = chain[self.transfer.next]
        else:
            self.passes += 1
            again = self.passes < (self.task.passes if self.task else self.channel.repeat + 1)
            self.upcoming = chain[0] if again else None
        return self.upcoming

    def begin(self) -> None:
        """Make the upcoming transfer the current one."""
        assert self.upcoming is not None
        self.transfer, self.upcoming = self.upcoming, None
        self.left, self.moved, self.staged = self.transfer.nbytes, 0, None

    @property
    def task_ends(self) -> bool:
        """Whether the current transfer is the last of a host task."""
        return (
            self.task is not None
            and self.transfer is not None
            and self.transfer.next is None
            and self.passes + 1 >= self.task.passes
        )
