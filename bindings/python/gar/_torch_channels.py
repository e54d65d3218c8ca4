"""send and recv of the backend `gar`: a communicator of two ranks for each direction, made when it is first used.

A message is two transfers: its tag and length, then its bytes. A receiver that waits for another tag keeps what comes.
"""

import collections
import queue
import threading
from typing import Any, Callable, Deque, Dict, NamedTuple, Optional, Tuple

import torch

from . import _core

_TRANSFER = 8  # as gar._core.Collectives counts
_INT64, _UINT8 = 6, 1


class Message(NamedTuple):
    tensor: torch.Tensor
    tag: int
    pending: Any


class Channel:
    """From one rank to another one, as one of the two sees it: a thread that runs the messages in their order."""

    def __init__(self, channels: "Channels", source: int, destination: int, receives: bool) -> None:
        self._channels = channels
        self._source, self._destination = source, destination
        self._receives = receives
        self._root = 0  # who sends
        self._core: Optional[_core.Collectives] = None
        self._kept: Dict[int, Deque[torch.Tensor]] = collections.defaultdict(collections.deque)
        self._messages: "queue.SimpleQueue[Optional[Message]]" = queue.SimpleQueue()
        self._failure: Optional[Exception] = None
        self._thread = threading.Thread(target=self._work, name=f"gar {source}->{destination}", daemon=True)
        self._thread.start()

    def send(self, tensor: torch.Tensor, tag: int) -> Any:
        return self._put(tensor, tag)

    def receive(self, tensor: torch.Tensor, tag: int) -> Any:
        return self._put(tensor, tag)

    def close(self) -> None:
        """What was started is completed first, which may never happen: nobody waits for that."""
        self._messages.put(None)

    def abandon(self) -> None:
        if self._core is not None:
            self._core.abandon()

    def _put(self, tensor: torch.Tensor, tag: int) -> Any:
        pending = self._channels.pending([tensor])
        self._messages.put(Message(tensor, tag, pending))
        return self._channels.work(pending)

    def _work(self) -> None:
        while True:
            message = self._messages.get()
            if message is None:
                if self._core is not None:
                    self._core.close()
                return
            # Python's end waits for what calls PyTorch, and does not wait for messages.
            _core.enter_python()
            self._deal_with(message)
            del message
            _core.leave_python()

    def _deal_with(self, message: Message) -> None:
        try:
            if self._failure is not None:
                raise self._failure
            if self._core is None:
                self._core = self._outside(lambda: self._channels.join(self._source, self._destination, self._receives))
            if self._receives:
                self._take(message)
            else:
                self._give(message)
        except Exception as error:
            self._failure = self._failure or error
            message.pending.complete((type(error).__name__ if isinstance(error, _core.Error) else "Error", str(error)))
        else:
            message.pending.complete(None)

    def _outside(self, waits: Callable[[], Any]) -> Any:
        _core.leave_python()
        try:
            return waits()
        finally:
            _core.enter_python()

    def _transfer(self, memory: torch.Tensor, count: int, dtype: int) -> None:
        assert self._core is not None
        place = memory.data_ptr()
        given, got = (0, place) if self._receives else (place, 0)
        core = self._core
        self._outside(lambda: core.run(_TRANSFER, given, got, count, dtype, 0, self._root))

    def _give(self, message: Message) -> None:
        memory = message.tensor.contiguous()
        length = memory.numel() * memory.element_size()
        self._transfer(torch.tensor([message.tag, length]), 2, _INT64)
        self._transfer(memory, length, _UINT8)

    def _take(self, message: Message) -> None:
        memory = message.tensor if message.tensor.is_contiguous() else torch.empty_like(message.tensor).contiguous()
        length = memory.numel() * memory.element_size()
        kept = self._kept[message.tag]
        came = kept.popleft() if kept else self._await(message.tag, memory, length)
        if came is not None:
            self._compare(message, came.numel(), length)
            memory.view(-1).view(torch.uint8).copy_(came)
        if memory is not message.tensor:
            message.tensor.copy_(memory)

    def _await(self, tag: int, memory: torch.Tensor, length: int) -> Optional[torch.Tensor]:
        """None: it is in `memory`."""
        head = torch.zeros(2, dtype=torch.int64)
        while True:
            self._transfer(head, 2, _INT64)
            came_tag, came_length = int(head[0]), int(head[1])
            if came_tag == tag and came_length == length:
                self._transfer(memory, length, _UINT8)
                return None
            came = torch.empty(came_length, dtype=torch.uint8)
            self._transfer(came, came_length, _UINT8)
            if came_tag == tag:
                return came
            self._kept[came_tag].append(came)

    def _compare(self, message: Message, came: int, length: int) -> None:
        if came != length:
            raise _core.TransportError(
                f"recv: rank {self._source} has sent {came} bytes with tag {message.tag}, but rank {self._destination} "
                f"has room for {length}; expected equal numbers"
            )


class Channels:
    """Of one rank of a process group."""

    def __init__(self, meeting: Any, name: str, rank: int, timeout: float, pending: Any, work: Any) -> None:
        self.pending, self.work = pending, work  # classes of the group
        self._meeting = meeting
        self._name = name
        self._rank = rank
        self._timeout = timeout
        self._lock = threading.Lock()
        self._all: Dict[Tuple[int, int], Channel] = {}

    def of(self, peer: int, receives: bool) -> Channel:
        ends = (peer, self._rank) if receives else (self._rank, peer)
        with self._lock:
            if ends not in self._all:
                self._all[ends] = Channel(self, *ends, receives)
            return self._all[ends]

    def join(self, source: int, destination: int, receives: bool) -> _core.Collectives:
        name = f"{self._name}-{source}-{destination}"
        made: _core.Collectives = self._meeting.join(name, 1 if receives else 0, 2, self._timeout)
        return made

    def close(self) -> None:
        for channel in self._all.values():
            channel.close()

    def abandon(self) -> None:
        for channel in self._all.values():
            channel.abandon()
