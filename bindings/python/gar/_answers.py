"""Answers: the library's JSON documents with attributes, tables and pictures.

Nothing is represented twice: an answer holds the document that C++ wrote, and its attributes are the document's fields
(docs/json.md). The classes below only say which fields there are, and add what Python can do better.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Dict, Iterator, List, Optional

from . import _core, _pictures, _tables


def wrapped(name: str, value: Any) -> Any:
    """A field's value: objects become records, lists lists of them."""
    if isinstance(value, dict):
        return Terms(value) if name.endswith("terms") else Record(value)
    if isinstance(value, list):
        return [wrapped(name, item) for item in value]
    return value


class Record:
    """A JSON object whose fields are attributes."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return wrapped(name, self._data[name])
        except KeyError:
            fields = ", ".join(self._data)
            raise AttributeError(f"there is no '{name}' here; expected one of {fields}") from None

    def __getitem__(self, name: str) -> Any:
        return wrapped(name, self._data[name])

    def __contains__(self, name: str) -> bool:
        return name in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._data]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._data == other._data

    def __reduce__(self) -> Any:
        return type(self), (self._data,)

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value!r}" for name, value in self._data.items())
        return f"{type(self).__name__}({text if len(text) <= 200 else text[:197] + '...'})"

    def to_dict(self) -> Dict[str, Any]:
        """The JSON object itself, as a copy."""
        return copy.deepcopy(self._data)


class Terms(Record):
    """Seconds by term of the model; `mu`, which documents leave out where it is nothing, is 0 then."""

    alpha: float
    beta: float
    gamma: float
    delta: float
    epsilon: float

    @property
    def mu(self) -> float:
        return float(self._data.get("mu", 0.0))

    @property
    def total(self) -> float:
        """The sum of all terms."""
        return float(sum(self._data.values()))


class Answer(Record):
    """An answer of the library: a document with a schema."""

    gar_version: str
    schema: str

    @classmethod
    def _from_text(cls, text: str) -> "Any":
        return cls(json.loads(text))

    def to_json(self) -> str:
        """The document as text, as `gar --json` prints it."""
        return json.dumps(self._data, indent=2, ensure_ascii=False) + "\n"

    # Tables. The classes below say what their rows are.
    def _rows(self) -> List[Dict[str, Any]]:
        raise _core.InvalidArgument(f"a {type(self).__name__} has no table")

    def to_rows(self) -> List[Dict[str, Any]]:
        """The answer's table: one dictionary for each row, terms as columns of their own."""
        return self._rows()

    def to_numpy(self) -> Any:
        """The table as a structured NumPy array."""
        return _tables.to_numpy(self._rows())

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return _tables.to_pandas(self._rows())


def term_columns(terms: Dict[str, float]) -> Dict[str, float]:
    return {name: terms.get(name, 0.0) for name in _core.terms}


class Prediction(Answer):
    """What each algorithm costs on a network (gar.predict/1)."""

    topology: str
    num_ranks: int
    count: int
    dtype: str
    model: str
    results: List[Record]
    best: str
    runner_up: Optional[str]
    margin: Optional[float]
    lower_bound_seconds: float
    lower_bound_sequential_seconds: float

    @property
    def seconds(self) -> float:
        """Of the best algorithm."""
        return float(self._data["results"][0]["seconds"])

    def _rows(self) -> List[Dict[str, Any]]:
        return [
            {
                "algorithm": row["algorithm"],
                "seconds": row["seconds"],
                **term_columns(row["terms"]),
                "chunks": row.get("chunks", 1),
            }
            for row in self._data["results"]
        ]

    def svg(self) -> str:
        """Stacked bars: where each algorithm's time goes."""
        bars = [(row["algorithm"], row["terms"]) for row in self._data["results"]]
        return _pictures.bars(f"{self.topology}: {self.count:g} x {self.dtype}", bars, self.lower_bound_seconds)

    def _repr_html_(self) -> str:
        return _pictures.figure(self.svg(), _tables.to_html(self._rows()))


class Simulation(Answer):
    """What plans do over time (gar.simulate/2); the fields beside `results` are those of the best plan."""

    topology: str
    num_ranks: int
    count: int
    dtype: str
    algorithm: str
    seconds: float
    predicted_seconds: float
    terms: Terms
    links: List[Record]
    stages: List[Record]
    path: List[Record]
    results: List[Record]

    def _rows(self) -> List[Dict[str, Any]]:
        return [
            {
                "algorithm": row["algorithm"],
                "seconds": row["seconds"],
                "predicted_seconds": row["predicted_seconds"],
                **term_columns(row["terms"]),
                "chunks": row["chunks"],
            }
            for row in self._data["results"]
        ]

    def svg(self) -> str:
        """Stacked bars: what each plan's critical path is made of."""
        bars = [(row["algorithm"], row["terms"]) for row in self._data["results"]]
        return _pictures.bars(f"{self.topology}: {self.count:g} x {self.dtype}, simulated", bars)

    def _repr_html_(self) -> str:
        return _pictures.figure(self.svg(), _tables.to_html(self._rows()))


class Comparison(Answer):
    """Predicted and simulated times side by side (gar.compare/1)."""

    topology: str
    num_ranks: int
    results: List[Record]
    choices: List[Record]
    mean_regret: float
    max_regret: float
    mean_difference: float

    def _rows(self) -> List[Dict[str, Any]]:
        fields = ("count", "algorithm", "predicted_seconds", "simulated_seconds", "difference", "why")
        return [{name: row[name] for name in fields} for row in self._data["results"]]

    def _repr_html_(self) -> str:
        return _tables.to_html(self._rows())


class Proof(Answer):
    """Whether a plan is right (gar.verify/1). It is true in an `if` when the plan is proved."""

    ok: bool
    problem: str
    num_steps: int
    num_messages: int
    max_fan_in: int
    buffer_fraction: float

    def __bool__(self) -> bool:
        return bool(self._data["ok"])


class Diagnosis(Answer):
    """Whether measured AllReduces are normal for a network (gar.diagnose/1)."""

    is_normal: bool
    is_judged: bool
    tolerance: float
    culprit: Optional[str]
    factor: Optional[float]
    words: List[str]

    def _rows(self) -> List[Dict[str, Any]]:
        fields = ("bytes", "algorithm", "measured_seconds", "expected_seconds", "ratio", "verdict")
        return [{name: row[name] for name in fields} for row in self._data["rows"]]

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{_tables.escaped(line)}</p>" for line in self._data["words"])
        return _tables.to_html(self._rows()) + words


class LowerBound(Record):
    """What nothing can beat on a network, in seconds."""

    seconds: float
    sequential_seconds: float
    alpha: float
    bandwidth: float
    calculation: float
    binding: str
    cut: str
