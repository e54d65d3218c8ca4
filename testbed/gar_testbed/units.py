"""Rates, sizes and times as tc writes them: 25mbit, 32kb (1024 bytes each), 10ms."""
import re

from .errors import UsageError

_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_SIZES = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def _parse(text, units, what, example):
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", text.strip().lower())
    if not match or match.group(2) not in units:
        names = " ".join(unit for unit in units if unit)
        raise UsageError("'%s' is no %s; expected a number and one of %s, such as %s" % (text, what, names, example))
    value = float(match.group(1)) * units[match.group(2)]
    if value <= 0:
        raise UsageError("'%s' is no %s; it must be above 0" % (text, what))
    return value


def parse_rate(text):
    """Bits per second."""
    return round(_parse(text, _RATES, "rate", "25mbit"))


def parse_size(text):
    """Bytes."""
    return round(_parse(text, _SIZES, "size", "32kb"))


def parse_time(text):
    """Seconds."""
    return _parse(text, _TIMES, "time", "10ms")


def format_rate(bits_per_s):
    for unit in ("gbit", "mbit", "kbit"):
        if bits_per_s >= _RATES[unit]:
            return "%g%s" % (bits_per_s / _RATES[unit], unit)
    return "%dbit" % bits_per_s


def format_size(num_bytes):
    return "%gkb" % (num_bytes / 1024) if num_bytes % 512 == 0 else "%db" % num_bytes
