"""Many networks, algorithms, sizes and what-ifs at once."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import os
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import _core, _pictures, _tables
from ._answers import Terms
from ._questions import Conditions, Network
from ._values import Plan, Topology, topology_of
from ._words import Number, list_of, names_of, text_of, what_if_of, what_if_text

Progress = Union[None, bool, Callable[[int, int], Any]]


@dataclasses.dataclass(frozen=True)
class SweepRow:
    """One case of a sweep."""

    topology: str
    algorithm: str  #: as it was asked for
    plan: str  #: with its factors
    count: int
    what_if: str
    chunks: int
    predicted_seconds: float  #: by the model, without what-if
    simulated_seconds: Optional[float]  #: None where nothing was simulated
    terms: Terms  #: of the prediction


def array(column: Any) -> Any:
    """The numbers of C++ in place: as a NumPy array where there is NumPy, as a memoryview otherwise."""
    try:
        import numpy
    except ImportError:
        return memoryview(column)
    return numpy.asarray(column)


class Sweep:
    """All cases of a sweep. Arrays have an axis for each of topologies, algorithms, (what_ifs,) counts, in this order."""

    #: names of the networks, of the algorithms, and of the conditions ("nothing": a network as it is)
    topologies: List[str]
    algorithms: List[str]
    what_ifs: List[str]
    counts: List[int]
    #: by the model, [topology, algorithm, count], without what-if; and by term, with one more axis (`term_names`)
    predicted_seconds: Any
    terms: Any
    term_names: Sequence[str]
    #: parts of the vector that follow each other, [topology, algorithm, count]
    chunks: Any
    #: which plan: an index in `plan_names`, [topology, algorithm, count]
    plan_index: Any
    plan_names: List[str]
    #: [topology, algorithm, what_if, count]; None when nothing was simulated
    simulated_seconds: Any
    #: how long the sweep took
    elapsed_seconds: float

    def __init__(
        self, topologies: List[str], algorithms: List[str], what_ifs: List[str], counts: List[int], columns: Dict[str, Any]
    ) -> None:
        self.topologies, self.algorithms, self.what_ifs, self.counts = topologies, algorithms, what_ifs, counts
        self.term_names = _core.terms
        self.predicted_seconds = array(columns["predicted_seconds"])
        self.terms = array(columns["terms"])
        self.chunks = array(columns["chunks"])
        self.plan_index = array(columns["plan"])
        self.plan_names = columns["names"]
        simulated = columns.get("simulated_seconds")
        self.simulated_seconds = None if simulated is None else array(simulated)
        self.elapsed_seconds = 0.0

    @property
    def num_priced(self) -> int:
        return len(self.topologies) * len(self.algorithms) * len(self.counts)

    @property
    def num_simulated(self) -> int:
        return 0 if self.simulated_seconds is None else self.num_priced * len(self.what_ifs)

    def __len__(self) -> int:
        return self.num_priced * len(self.what_ifs)

    def __repr__(self) -> str:
        return (
            f"<gar.Sweep: {self.num_priced} priced and {self.num_simulated} simulated cases "
            f"in {_tables.seconds(self.elapsed_seconds)}>"
        )

    def row(self, topology: int, algorithm: int, what_if: int, count: int) -> SweepRow:
        """One case, by its indices."""
        at = (topology, algorithm, count)
        simulated = self.simulated_seconds
        return SweepRow(
            self.topologies[topology],
            self.algorithms[algorithm],
            self.plan_names[int(self.plan_index[at])],
            self.counts[count],
            self.what_ifs[what_if],
            int(self.chunks[at]),
            float(self.predicted_seconds[at]),
            None if simulated is None else float(simulated[topology, algorithm, what_if, count]),
            Terms({name: float(self.terms[(*at, i)]) for i, name in enumerate(self.term_names)}),
        )

    def __iter__(self) -> Iterator[SweepRow]:
        shape = (len(self.topologies), len(self.algorithms), len(self.what_ifs), len(self.counts))
        return (self.row(*at) for at in itertools.product(*map(range, shape)))

    def best(self) -> List[SweepRow]:
        """The fastest algorithm of every network, what-if and size: simulated where that was done, predicted otherwise."""
        out = []
        for t, w, c in itertools.product(*map(range, (len(self.topologies), len(self.what_ifs), len(self.counts)))):
            rows = (self.row(t, a, w, c) for a in range(len(self.algorithms)))
            out.append(min(rows, key=lambda row: row.predicted_seconds if row.simulated_seconds is None else row.simulated_seconds))
        return out

    def to_rows(self) -> List[Dict[str, Any]]:
        """One dictionary for each case, terms as columns of their own."""
        return [
            {
                **{name: value for name, value in vars(row).items() if name != "terms"},
                **row.terms.to_dict(),
            }
            for row in self
        ]

    def _columns(self) -> Dict[str, Any]:
        import numpy

        shape = (len(self.topologies), len(self.algorithms), len(self.what_ifs), len(self.counts))
        t, a, w, c = (axis.ravel() for axis in numpy.indices(shape, sparse=False))
        out = {
            "topology": numpy.asarray(self.topologies)[t],
            "algorithm": numpy.asarray(self.algorithms)[a],
            "plan": numpy.asarray(self.plan_names)[self.plan_index[t, a, c]],
            "count": numpy.asarray(self.counts)[c],
            "what_if": numpy.asarray(self.what_ifs)[w],
            "chunks": self.chunks[t, a, c],
            "predicted_seconds": self.predicted_seconds[t, a, c],
        }
        if self.simulated_seconds is not None:
            out["simulated_seconds"] = self.simulated_seconds.ravel()
        for i, name in enumerate(self.term_names):
            out[name] = self.terms[t, a, c, i]
        return out

    def to_numpy(self) -> Any:
        """All cases as a structured NumPy array."""
        try:
            import numpy
        except ImportError as error:
            raise ImportError("to_numpy() needs NumPy (Debian: python3-numpy); to_rows() needs nothing") from error
        columns = self._columns()
        out = numpy.empty(len(self), dtype=[(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            out[name] = column
        return out

    def to_pandas(self) -> Any:
        """All cases as a pandas DataFrame."""
        try:
            import pandas  # type: ignore[import]
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas (Debian: python3-pandas); to_rows() needs nothing") from error
        return pandas.DataFrame(self._columns())

    def svg(self, topology: int = 0, what_if: int = 0) -> str:
        """Time against size on one network, a line for each algorithm."""
        series: Dict[str, List[Any]] = {}
        for a, name in enumerate(self.algorithms):
            rows = [self.row(topology, a, what_if, c) for c in range(len(self.counts))]
            series[name] = [
                (row.count, row.predicted_seconds if row.simulated_seconds is None else row.simulated_seconds) for row in rows
            ]
        title = f"{self.topologies[topology]}, {'predicted' if self.simulated_seconds is None else 'simulated'}"
        if self.what_ifs[what_if] != "nothing":
            title += f", {self.what_ifs[what_if]}"
        return _pictures.curves(title, series, "elements")

    _repr_svg_ = svg


class ProgressLine:
    """One line on standard error that says how far it is; gone at the end."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.width = 0

    def __call__(self, done: int, total: int) -> None:
        passed = time.monotonic() - self.begin
        left = f", {_tables.seconds(passed / done * (total - done))} left" if done else ""
        filled = 30 * done // max(total, 1)
        line = f"sweep [{'#' * filled}{'.' * (30 - filled)}] {done:,} of {total:,} cases{left}"
        self.show(line)

    def show(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = len(line)

    def clear(self) -> None:
        if self.width:
            self.show("")
            sys.stderr.write("\r")
            sys.stderr.flush()


def counts_of(value: Any) -> List[int]:
    """Numbers of elements: a list, a NumPy array, or text such as "1e3,1e6" and "1e3..1e9"."""
    if isinstance(value, str):
        return _core.counts_of(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    out = []
    for count in list_of(value):
        try:
            out.append(operator.index(count))
        except TypeError:
            out.extend(_core.counts_of(text_of(count)))
    return out


def sweep(
    topologies: Union[Network, Sequence[Network]],
    algorithms: Union[str, Plan, Sequence[Union[str, Plan]]],
    counts: Union[Number, Sequence[Number], Any],
    what_ifs: Union[Conditions, Sequence[Conditions]] = None,
    *,
    simulate: Optional[bool] = None,
    dtype: str = "float32",
    barrier: bool = False,
    engine: str = "auto",
    tolerance: float = 0.0,
    model: str = "genmodel",
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Sweep:
    """All combinations of networks, algorithms (names or plans), numbers of elements, and what-ifs.

    Every case is priced by the model. With `what_ifs`, or `simulate=True`, every case is also simulated; None among the what-ifs
    is the network as it is. It runs in C++ on `threads` threads (all cores unless it is said) while other threads of Python go
    on; Ctrl-C ends it. `progress` is a function of the cases that are done and of all cases; True draws a line on standard error,
    which also happens where that is a terminal, unless it is False.
    """
    networks: List[Topology] = [topology_of(one) for one in list_of(topologies)]
    contenders: List[Any] = []
    for one in [algorithms] if isinstance(algorithms, Plan) else list_of(algorithms):
        contenders.extend([one] if isinstance(one, Plan) else names_of(one))
    conditions = [what_if_of(one) for one in ([what_ifs] if isinstance(what_ifs, Mapping) or what_ifs is None else list_of(what_ifs))]
    simulates = what_ifs is not None if simulate is None else simulate
    if not simulates and what_ifs is not None:
        raise _core.UsageError("simulate=False: what-ifs are simulated; expected no what_ifs with it")
    numbers = counts_of(counts)
    if threads is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise _core.InvalidArgument(f"threads {threads}: expected a number from 1")
    line = ProgressLine() if progress is True or (progress is None and sys.stderr.isatty()) else None
    on_progress = line if line is not None else progress if callable(progress) else None
    begin = time.monotonic()
    try:
        columns = _core.sweep(
            [network._core for network in networks],
            [one._core if isinstance(one, Plan) else one for one in contenders],
            numbers,
            dtype,
            [what_if_text(one) for one in conditions] if simulates else [],
            _core.SimulationText(barrier, engine, tolerance),
            model,
            threads,
            on_progress,
        )
    finally:
        if line is not None:
            line.clear()
    out = Sweep(
        [network.name for network in networks],
        [one.algorithm if isinstance(one, Plan) else one for one in contenders],
        [str(one) for one in conditions] if simulates else ["nothing"],
        numbers,
        columns,
    )
    out.elapsed_seconds = time.monotonic() - begin
    return out
