"""Rows as NumPy arrays, pandas frames and HTML. Both libraries are optional."""

from __future__ import annotations

import html
from typing import Any, Dict, List, Sequence


def escaped(value: Any) -> str:
    return html.escape(str(value), quote=True)


def to_pandas(rows: Sequence[Dict[str, Any]]) -> Any:
    try:
        import pandas  # type: ignore[import]
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas (Debian: python3-pandas); to_rows() needs nothing") from error
    return pandas.DataFrame(list(rows))


def to_numpy(rows: Sequence[Dict[str, Any]]) -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("to_numpy() needs NumPy (Debian: python3-numpy); to_rows() needs nothing") from error
    names = list(rows[0]) if rows else []
    columns = [numpy.asarray([row[name] for row in rows]) for name in names]
    out = numpy.empty(len(rows), dtype=[(name, column.dtype) for name, column in zip(names, columns)])
    for name, column in zip(names, columns):
        out[name] = column
    return out


def seconds(value: float) -> str:
    """"12.3 ms", with three digits."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns" if value else "0 s"


def count(value: float) -> str:
    """"1e8", "262144"."""
    text = f"{value:.15g}"
    short = f"{value:.6g}".replace("e+0", "e").replace("e+", "e")
    return short if float(short) == value and len(short) < len(text) else text


def is_time(name: str) -> bool:
    return name.endswith("seconds") or name in ("alpha", "beta", "gamma", "delta", "epsilon", "mu")


def cell(name: str, value: Any) -> str:
    if isinstance(value, float):
        return seconds(value) if is_time(name) else f"{value:.4g}"
    return "" if value is None else escaped(value)


def to_html(rows: Sequence[Dict[str, Any]], most: int = 60) -> str:
    """A table of at most so many rows; columns that are nothing everywhere are left out."""
    if not rows:
        return "<p>no rows</p>"
    names: List[str] = [name for name in rows[0] if any(row[name] not in (0, 0.0, None) for row in rows)]
    head = "".join(f"<th>{escaped(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(name, row[name])}</td>" for name in names) + "</tr>" for row in rows[:most]
    )
    more = f"<p>{len(rows) - most} more rows</p>" if len(rows) > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
