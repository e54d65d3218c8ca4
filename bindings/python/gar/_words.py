"""What people write, as the extension takes it: sizes, names, what-ifs."""

from __future__ import annotations

import dataclasses
import operator
import os
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _core

Number = Union[int, float, str]


def text_of(value: Any) -> str:
    """A number as it would be typed; text stays as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(float(value))
    try:
        return str(operator.index(value))  # NumPy's integers, too
    except TypeError:
        return text_of(float(value)) if hasattr(value, "__float__") else str(value)


def size_of(count: Any, size: Any, dtype: str) -> _core.SizeText:
    """The vector's length: one of the two is given."""
    if (count is None) == (size is None):
        raise _core.UsageError(
            "only one of count and size is accepted" if size is not None else "count or size is needed, such as size='64MB'"
        )
    name, value = ("count", count) if size is None else ("size", size)
    return _core.SizeText(name, text_of(value), dtype)


def path_of(value: Any) -> str:
    return os.fsdecode(value)


def list_of(value: Any) -> List[Any]:
    """One of something, or several."""
    if value is None:
        return []
    if isinstance(value, (str, os.PathLike, Mapping)) or not isinstance(value, Iterable):
        return [value]
    return list(value)


def names_of(algorithms: Union[str, Sequence[str]]) -> List[str]:
    """"ring,cps", or a list of names."""
    return [name.strip() for entry in list_of(algorithms) for name in str(entry).split(",")]


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """What is wrong with a network, in the words of `gar simulate`.

    >>> str(WhatIf(degrade="rack3.uplink=0.5", slow=["rack0/server1=3"]))
    'slow rack0/server1=3, degrade rack3.uplink=0.5'
    """

    #: "NAME=FACTOR": calculation takes that many times as long
    slow: Union[str, Sequence[str]] = ()
    #: "NAME.uplink=CAPACITY": what is left of a link, from 0 to 1; ".up" and ".down" are one direction
    degrade: Union[str, Sequence[str]] = ()
    #: "NAME.uplink": a link carries nothing any more
    fail: Union[str, Sequence[str]] = ()
    #: "NAME.uplink=SHARE": what other traffic takes of a link
    background: Union[str, Sequence[str]] = ()
    #: mean random extra share of every latency and calculation
    jitter: Number = 0
    #: of the jitter
    seed: Number = 1

    def conditions(self) -> List[Tuple[str, str]]:
        """All conditions: kind and text."""
        kinds = ("slow", "degrade", "fail", "background")
        return [(kind, text) for kind in kinds for text in list_of(getattr(self, kind))]

    def __str__(self) -> str:
        words = [f"{kind} {text}" for kind, text in self.conditions()]
        if text_of(self.jitter) != "0":
            words.append(f"jitter {text_of(self.jitter)} (seed {text_of(self.seed)})")
        return ", ".join(words) or "nothing"


def what_if_of(value: Union[None, WhatIf, Mapping[str, Any]]) -> WhatIf:
    if value is None:
        return WhatIf()
    if isinstance(value, WhatIf):
        return value
    if not isinstance(value, Mapping):
        raise _core.InvalidArgument(
            f"what_if is of type {type(value).__name__}; expected a gar.WhatIf, or a dictionary such as "
            "{'degrade': 'rack3.uplink=0.5'}"
        )
    known = {field.name for field in dataclasses.fields(WhatIf)}
    for name in value:
        if name not in known:
            raise _core.UsageError(f"what_if '{name}': expected slow, degrade, fail, background, jitter or seed")
    return WhatIf(**value)


def what_if_text(value: WhatIf) -> _core.WhatIfText:
    return _core.WhatIfText(value.conditions(), text_of(value.jitter), text_of(value.seed))


def optional_text(value: Optional[Any]) -> Optional[str]:
    return None if value is None else str(value)
