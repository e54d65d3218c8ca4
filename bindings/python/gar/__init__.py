"""GenAllReduce: predicts, plans, proves, simulates and runs the fastest AllReduce for a network.

    >>> import gar
    >>> gar.predict("tree:16x24", size="400MB").best
    'gentree+'

Questions (`predict`, `plan`, `verify`, `simulate`, `compare`, `lower_bound`, `fit`, `diagnose`, `sweep`) give objects with
attributes; `to_dict()` of an answer is the document that `gar --json` prints. `Communicator` runs collectives on NumPy arrays and
on anything else with the buffer protocol or DLPack. docs/python.md has it all.
"""

from ._answers import (
    Answer,
    Comparison,
    Diagnosis,
    LowerBound,
    Prediction,
    Proof,
    Record,
    Simulation,
    Terms,
)
from ._communicator import Communicator, Request
from ._core import (
    DeviceError,
    Error,
    InvalidArgument,
    ParseError,
    PlanError,
    TransportError,
    UsageError,
)
from ._core import version as __version__
from ._questions import compare, diagnose, fit, lower_bound, plan, predict, simulate, verify
from ._sweep import Sweep, SweepRow, sweep
from ._values import Fit, Plan, Profile, Topology
from ._words import WhatIf

__all__ = [
    "Answer",
    "Communicator",
    "Comparison",
    "DeviceError",
    "Diagnosis",
    "Error",
    "Fit",
    "InvalidArgument",
    "LowerBound",
    "ParseError",
    "Plan",
    "PlanError",
    "Prediction",
    "Profile",
    "Proof",
    "Record",
    "Request",
    "Simulation",
    "Sweep",
    "SweepRow",
    "Terms",
    "Topology",
    "TransportError",
    "UsageError",
    "WhatIf",
    "__version__",
    "compare",
    "diagnose",
    "fit",
    "lower_bound",
    "plan",
    "predict",
    "simulate",
    "sweep",
    "verify",
]
