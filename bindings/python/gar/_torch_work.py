"""How the backend `gar` meets through PyTorch's store, and what its calls give: works and futures."""

import datetime
import enum
import os
import socket
import sys
import time
from typing import Any, Callable, List, Optional, Tuple

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from . import _core

_C10D = vars(c10d)


class Meeting:
    """torch's store, as communicators use it. No call waits inside the store, which serves one thread at a time."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)
        self._store.add(key + "/set", 1)

    def look(self, key: str) -> Optional[bytes]:
        """None while nobody has set it."""
        return bytes(self._store.get(key)) if self._store.add(key + "/set", 0) else None

    def server(self) -> str:
        """An address that leads to the other hosts: MASTER_ADDR is where all can reach rank 0."""
        host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
        if not host or not port.isdigit():
            return ""
        try:
            family, _, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        except OSError:
            return ""
        return f"[{address[0]}]:{port}" if family == socket.AF_INET6 else f"{address[0]}:{port}"

    def count_up(self, key: str) -> int:
        return int(self._store.add(key, 1))

    def count(self, key: str) -> int:
        return int(self._store.add(key, 0))

    def announce(self, box: str, rank: int) -> None:
        """A rank says in this box that it is there."""
        self.set(f"{box}/{self.count_up(box)}", str(rank).encode())

    def announced(self, box: str, known: int) -> List[int]:
        """Who has said so after the first `known`, in the order in which they did."""
        out: List[int] = []
        for number in range(known + 1, self.count(box) + 1):
            rank = self.look(f"{box}/{number}")
            if rank is None:  # it is just saying so
                break
            out.append(int(rank))
        return out

    def join(self, name: str, rank: int, size: int, timeout: float) -> _core.Collectives:
        options = _core.CommunicatorOptions("", None, None, False, timeout, None)
        return _core.Collectives.meet(self, name, rank, size, options)


def _fails(future: "torch.futures.Future[Any]") -> Any:
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


def failure_of(words: Tuple[str, str]) -> Exception:
    """The exception that the extension describes."""
    return getattr(_core, words[0])(words[1])  # type: ignore[no-any-return]


class Pending:
    """Calls that are under way, and a future that gets `result`, or the exception that they failed with, as its value."""

    def __init__(self, result: Any, after: Optional[Callable[[], None]] = None) -> None:
        self._result = result
        self._after = after
        self._told: "torch.futures.Future[Any]" = torch.futures.Future()
        self.future: Any = self._told

    def in_span(self, span: Any) -> None:
        """Whoever waits also waits for the end of this range of PyTorch's profiler."""
        self.future = span._call_end_callbacks_on_future(self._told)

    def complete(self, failure: Optional[Tuple[str, str]]) -> None:
        """Called once, by whatever thread has completed the last of its calls."""
        value: Any = self._result if failure is None else failure_of(failure)
        if failure is None and self._after is not None:
            try:
                self._after()
            except Exception as error:
                value = error
        self._told.set_result(value)

    def throwing(self) -> "torch.futures.Future[Any]":
        """A Future of Python takes no exceptions; one that follows another has what that one's function raises."""
        return self.future.then(_fails)


class Work(dist.Work):  # type: ignore[misc]
    """What a call from Python with async_op=True gives."""

    def __init__(self, pending: Pending) -> None:
        super().__init__()
        self._pending = pending

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """Returns when the call is complete, and raises what it failed with, also when this takes longer than `timeout`."""
        future = self._pending.future
        if timeout is not None and timeout.total_seconds() > 0:
            end = time.monotonic() + timeout.total_seconds()
            while not future.done():
                if time.monotonic() > end:
                    raise _core.TransportError(f"the call is not complete after {timeout.total_seconds()} s")
                time.sleep(0.0005)
        value = future.wait()
        if isinstance(value, Exception):
            raise value
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        return self._pending.future.done()

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[Exception]:
        value = self._pending.future.value() if self.is_completed() else None
        return value if isinstance(value, Exception) else None

    def result(self) -> Any:
        self.wait()
        return self._pending.future.value()

    def get_future(self) -> "torch.futures.Future[Any]":
        return self._pending.throwing()


class Finished(dist.Work):  # type: ignore[misc]
    """What a call from Python that has waited gives, which is always the same."""

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> None:
        return None

    def get_future(self) -> "torch.futures.Future[Any]":
        done: "torch.futures.Future[Any]" = torch.futures.Future()
        done.set_result(None)
        return done


FINISHED = Finished()


class Caller(enum.Enum):
    """Who calls a group's method."""

    WAITS = 1  # a function of torch.distributed that waits for the work right away
    GOES_ON = 2  # one that hands the work to its caller
    OTHER = 3  # torch's C++, such as DistributedDataParallel, or a program's own code


def caller_of_method() -> Caller:
    try:
        frame = sys._getframe(2)
    except ValueError:  # a thread of C++
        return Caller.OTHER
    if frame.f_globals is not _C10D:
        return Caller.OTHER
    return Caller.GOES_ON if frame.f_locals.get("async_op", True) else Caller.WAITS
