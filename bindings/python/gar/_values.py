"""Networks, plans and profiles."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _core, _pictures, _tables
from ._answers import Answer, Record, wrapped
from ._words import path_of

Path = Union[str, "os.PathLike[str]"]


class Topology:
    """A network: a file, a built-in name ("ss24", "sym384"), or a generator ("tree:16x24", "star:12@100Gbit/s,2us").

    With a profile, which `gar.fit` or `gar fit` made, the network has the parameters that were measured.
    """

    def __init__(self, spec: Path, *, profile: Union[None, Path, "Profile"] = None) -> None:
        #: what the profile does not know of the network; one sentence each
        self.notes: List[str] = []
        self._profile: Optional[_core.Profile] = None
        if isinstance(profile, Profile):
            self._core, unknown = profile._core.lay_over(_core.Topology.load(path_of(spec), "")[0])
            self._profile = profile._core
            self.notes = [f"level {level} keeps its own parameters: the profile does not know it" for level in unknown]
        else:
            path = "" if profile is None else path_of(profile)
            self._core, self._profile, self.notes = _core.Topology.load(path_of(spec), path)

    @classmethod
    def _of(cls, core: _core.Topology, profile: Optional[_core.Profile] = None) -> "Topology":
        out = cls.__new__(cls)
        out._core, out._profile, out.notes = core, profile, []
        return out

    @classmethod
    def from_json(cls, text: str, source: str = "the topology") -> "Topology":
        """The text of a topology file (docs/formats-topology.md); `source` stands for its name in messages."""
        return cls._of(_core.Topology.parse(text, source))

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Topology":
        """The content of a topology file."""
        return cls.from_json(json.dumps(data))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def num_servers(self) -> int:
        """And so the number of ranks."""
        return self._core.num_servers

    @property
    def num_switches(self) -> int:
        return self._core.num_switches

    @property
    def remarks(self) -> List[str]:
        """What is valid, but unlikely to be meant."""
        return self._core.remarks()

    def __len__(self) -> int:
        return self.num_servers

    def __repr__(self) -> str:
        return f"<gar.Topology {self.name!r}: {self._core.totals()}>"

    def __reduce__(self) -> Any:
        return _unpickled_topology, (self.to_json(), None if self._profile is None else self._profile.text())

    def to_dict(self) -> Dict[str, Any]:
        """The document of `gar topo show --json` (gar.topo/1): totals, and one entry for each distinct subtree."""
        return json.loads(self._core.document())  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The topology file."""
        return self._core.text()

    def to_dot(self) -> str:
        """The network for Graphviz."""
        return self._core.dot()

    def save(self, path: Path) -> None:
        """Writes the topology file. Throws OSError."""
        _core.save_text(path_of(path), self.to_json())

    def svg(self) -> str:
        """The tree; equal subtrees are drawn once."""
        return _pictures.tree(self.to_dict())

    _repr_svg_ = svg


def _unpickled_topology(text: str, profile: Optional[str]) -> Topology:
    known = None if profile is None else _core.Profile.parse(profile, "the profile")
    return Topology._of(_core.Topology.parse(text, "the topology"), known)


def topology_of(value: Union[Path, Topology, "Profile"]) -> Topology:
    """What functions take for a network."""
    if isinstance(value, Topology):
        return value
    if isinstance(value, Profile):
        return value.topology
    if isinstance(value, (str, os.PathLike)):
        return Topology(value)
    raise _core.InvalidArgument(
        f"the network is of type {type(value).__name__}; expected a name such as 'tree:16x24', a file, a gar.Topology or a gar.Profile"
    )


class Plan:
    """Who sends what to whom, step by step: from `gar.plan`, a plan file, or your own program (docs/own-algorithm.md)."""

    def __init__(self, path: Path) -> None:
        self._core = _core.Plan.read(path_of(path))
        self._text: Optional[str] = None
        self._document: Optional[Dict[str, Any]] = None
        self._file = path_of(path)

    @classmethod
    def _of(cls, core: _core.Plan, text: Optional[str] = None, file: str = "the plan") -> "Plan":
        out = cls.__new__(cls)
        out._core, out._text, out._document, out._file = core, text, None, file
        return out

    @classmethod
    def from_json(cls, text: str, source: str = "the plan") -> "Plan":
        """The text of a plan file; `source` stands for its name in messages."""
        return cls._of(_core.Plan.parse(text, source), text, source)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Plan":
        """The content of a plan file."""
        return cls.from_json(json.dumps(data))

    @property
    def algorithm(self) -> str:
        return self._core.algorithm

    @property
    def collective(self) -> str:
        return self._core.collective

    @property
    def num_ranks(self) -> int:
        return self._core.num_ranks

    @property
    def num_chunks(self) -> int:
        """Parts of the vector that follow each other."""
        return self._core.num_chunks

    @property
    def count(self) -> int:
        """Elements that it was made for; 0 when that is not said."""
        return self._core.count

    @property
    def seconds(self) -> float:
        """What it is predicted to take, if `gar.plan` made it."""
        return float(self["predicted_seconds"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        data = self._data()
        if name not in data:
            raise AttributeError(f"there is no '{name}' in this plan; expected one of {', '.join(data)}")
        return wrapped(name, data[name])

    def __getitem__(self, name: str) -> Any:
        return wrapped(name, self._data()[name])

    def __repr__(self) -> str:
        return f"<gar.Plan {self.algorithm!r}: {self.collective} on {self.num_ranks} ranks>"

    def __reduce__(self) -> Any:
        return Plan.from_json, (self.to_json(), self._file)

    def _data(self) -> Dict[str, Any]:
        if self._document is None:
            self._document = json.loads(self.to_json())
        return self._document

    def to_dict(self) -> Dict[str, Any]:
        """The document of `gar plan --json`, or the content of the plan file."""
        return json.loads(self.to_json())  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The plan file."""
        if self._text is None:
            self._text = self._core.text()
        return self._text

    def save(self, path: Path) -> None:
        """Writes the plan file. Throws OSError."""
        _core.save_text(path_of(path), self.to_json())

    def to_rows(self) -> List[Dict[str, Any]]:
        """The stages on the critical path."""
        fields = ("half", "what", "steps", "seconds", "busiest_link", "senders", "fan_in")
        return [{name: stage[name] for name in fields} for stage in self._data().get("stages", [])]

    def svg(self) -> str:
        """Stacked bars: where the time of each stage goes."""
        rows = [(f"{stage['half']}, {i + 1}", stage["terms"]) for i, stage in enumerate(self._data().get("stages", []))]
        return _pictures.bars(f"{self.algorithm} on {self.num_ranks} ranks, stage by stage", rows)

    def _repr_html_(self) -> str:
        return _pictures.figure(self.svg(), _tables.to_html(self.to_rows()))


class Profile:
    """What `gar fit` found out about a network; from a file."""

    def __init__(self, path: Path) -> None:
        self._core = _core.Profile.read(path_of(path))
        self._file = path_of(path)

    @classmethod
    def _of(cls, core: _core.Profile, file: str) -> "Profile":
        out = cls.__new__(cls)
        out._core, out._file = core, file
        return out

    @classmethod
    def from_json(cls, text: str, source: str = "the profile") -> "Profile":
        """The text of a profile file; `source` stands for its name in messages."""
        return cls._of(_core.Profile.parse(text, source), source)

    @property
    def topology(self) -> Topology:
        """The network that was measured, with what was found."""
        return Topology._of(self._core.topology, self._core)

    def to_dict(self) -> Dict[str, Any]:
        """The document of `gar profile show --json` (gar.profile-show/1)."""
        return json.loads(self._core.document(self._file))  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(Record(self.to_dict()), name)

    def __repr__(self) -> str:
        return f"<gar.Profile {self._file!r} of {self.topology.name!r}>"

    def __reduce__(self) -> Any:
        return Profile.from_json, (self.to_json(), self._file)

    def diff(self, after: "Profile") -> Answer:
        """What is different in a later profile of the same network (gar.profile-diff/1)."""
        return Answer._from_text(self._core.diff_document(after._core, self._file, after._file))  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The profile file."""
        return self._core.text()

    def save(self, path: Path) -> None:
        """Writes the profile file. Throws OSError."""
        _core.save_text(path_of(path), self.to_json())


class Fit(Answer):
    """What a fit found (gar.fit/1), with the profile in `profile`."""

    profile: Profile

    def __init__(self, data: Dict[str, Any], profile: Optional[Profile] = None) -> None:
        super().__init__(data)
        if profile is not None:
            self.profile = profile

    def __reduce__(self) -> Tuple[Any, ...]:
        return Fit, (self._data, self.profile)
