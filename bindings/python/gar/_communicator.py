"""Collectives between threads, and between the processes of a host, on memory of Python objects."""

from __future__ import annotations

from types import TracebackType
from typing import Any, List, Optional, Type, Union

from . import _core
from ._answers import Record
from ._values import Path, Plan, Profile, Topology, topology_of

Network = Union[Path, Topology, Profile]


def own_block(whole: Any, rank: int, size: int) -> Any:
    """The block of a rank as a view: NumPy arrays and tensors know how to give one, everything else is looked at as memory."""
    if hasattr(whole, "reshape") and hasattr(whole, "ndim"):
        flat = whole.reshape(-1)
    elif hasattr(whole, "__dlpack__"):
        flat = whole
    else:
        flat = memoryview(whole)
        if flat.ndim != 1:
            flat = flat.cast("B").cast(flat.format)
    length = len(flat) // size
    return flat[rank * length : (rank + 1) * length]


class Request:
    """A collective that goes on while the program does something else. What it works on must not be touched until it is complete."""

    def __init__(self, core: _core.Request, result: Any) -> None:
        self._core = core
        self._result = result

    def wait(self) -> Any:
        """Returns the result when the operation is complete. Throws what it failed with."""
        self._core.wait()
        return self._result

    def test(self) -> bool:
        """Is the operation complete? Throws what it failed with."""
        return self._core.test()


class Communicator:
    """One rank's end of a group of processes of this host that meet under the same `name`; `threads` makes those of threads.

    Every rank makes the same calls in the same order. What is passed is used where it lies: NumPy arrays, anything with the buffer
    protocol (`array.array`, `bytearray`, `memoryview`), CPU tensors with DLPack; never copied. Other threads of Python go on.
    """

    def __init__(
        self,
        name: str,
        rank: int,
        size: int,
        *,
        algorithm: str = "",
        plan: Optional[Plan] = None,
        topology: Optional[Network] = None,
        reproducible: bool = False,
        timeout: float = 30.0,
        explores: Optional[bool] = None,
    ) -> None:
        options = _options(algorithm, plan, topology, reproducible, timeout, explores)
        self._core = _core.Communicator.shared_memory(name, rank, size, options)

    @classmethod
    def threads(
        cls,
        size: int,
        *,
        algorithm: str = "",
        plan: Optional[Plan] = None,
        topology: Optional[Network] = None,
        reproducible: bool = False,
        timeout: float = 30.0,
        explores: Optional[bool] = None,
    ) -> "List[Communicator]":
        """One communicator for each of `size` threads of this process."""
        options = _options(algorithm, plan, topology, reproducible, timeout, explores)
        return [cls._of(core) for core in _core.Communicator.threads(size, options)]

    @classmethod
    def _of(cls, core: _core.Communicator) -> "Communicator":
        out = cls.__new__(cls)
        out._core = core
        return out

    @property
    def rank(self) -> int:
        return self._core.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._core.size

    def all_reduce(self, values: Any, out: Any = None, *, op: str = "sum", dtype: Optional[str] = None) -> Any:
        """The values of all ranks combined, in `out`, or in place; returns where they are."""
        self._core.run("allreduce", _core.Operands(values, out, op, dtype))
        return values if out is None else out

    def reduce_scatter(self, values: Any, out: Any = None, *, op: str = "sum", dtype: Optional[str] = None) -> Any:
        """Block `rank` of the combined values. In place it is this rank's block of `values`, and a view of that is returned."""
        self._core.run("reduce-scatter", _core.Operands(values, out, op, dtype))
        return own_block(values, self.rank, self.size) if out is None else out

    def all_gather(self, values: Any, out: Any = None, *, dtype: Optional[str] = None) -> Any:
        """The values of all ranks one after the other, in `out`. In place `values` is the whole vector, and this rank's block in it
        is what it gives."""
        self._core.run("allgather", _core.Operands(values, out, "sum", dtype))
        return values if out is None else out

    def start_all_reduce(self, values: Any, out: Any = None, *, op: str = "sum", dtype: Optional[str] = None) -> Request:
        """all_reduce in the background."""
        core = self._core.start("allreduce", _core.Operands(values, out, op, dtype))
        return Request(core, values if out is None else out)

    def start_reduce_scatter(self, values: Any, out: Any = None, *, op: str = "sum", dtype: Optional[str] = None) -> Request:
        """reduce_scatter in the background."""
        core = self._core.start("reduce-scatter", _core.Operands(values, out, op, dtype))
        return Request(core, own_block(values, self.rank, self.size) if out is None else out)

    def start_all_gather(self, values: Any, out: Any = None, *, dtype: Optional[str] = None) -> Request:
        """all_gather in the background."""
        core = self._core.start("allgather", _core.Operands(values, out, "sum", dtype))
        return Request(core, values if out is None else out)

    def barrier(self) -> None:
        """No rank returns before every rank has called it."""
        self._core.barrier()

    def report(self, count: int, dtype: str = "float32", collective: str = "allreduce") -> Record:
        """What an operation of this size does: `algorithm`, `transport`, `reason`, `chunks`, `predicted_seconds`."""
        return Record(self._core.report(collective, count, dtype))

    def close(self) -> None:
        """Ends this rank's part; operations that are under way are completed first."""
        self._core.close()

    @property
    def closed(self) -> bool:
        return self._core.closed

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gar.Communicator: rank {self.rank} of {self.size}>"


def _options(
    algorithm: str,
    plan: Optional[Plan],
    topology: Optional[Network],
    reproducible: bool,
    timeout: float,
    explores: Optional[bool],
) -> _core.CommunicatorOptions:
    network = None if topology is None else topology_of(topology)._core
    return _core.CommunicatorOptions(
        algorithm, network, None if plan is None else plan._core, reproducible, timeout, explores
    )
