"""The questions that `gar` answers, one function each. The words are those of the command line."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional, Sequence, Union

from . import _core
from ._answers import Comparison, Diagnosis, LowerBound, Prediction, Proof, Simulation
from ._values import Fit, Path, Plan, Profile, Topology, topology_of
from ._words import Number, WhatIf, list_of, names_of, optional_text, path_of, size_of, text_of, what_if_of, what_if_text

Network = Union[Path, Topology, Profile]
Names = Union[str, Sequence[str]]
Conditions = Union[None, WhatIf, Mapping[str, Any]]

#: what `gar compare` compares unless it is told
COMPARED = "cps,hcps,ring,rhd,reduce-broadcast,gentree,gentree+"


def network_with(network: Topology, what_if: Conditions) -> _core.Topology:
    """The network with its slow servers and degraded links, to plan for."""
    return network._core if what_if is None else _core.with_conditions(network._core, what_if_text(what_if_of(what_if)))


def predict(
    topology: Network,
    *,
    count: Optional[Number] = None,
    size: Optional[Number] = None,
    dtype: str = "float32",
    algorithms: Names = "all",
    collective: str = "allreduce",
    what_if: Conditions = None,
    model: str = "genmodel",
    incast_degree: str = "senders",
) -> Prediction:
    """What each algorithm costs on a network, best first, for a vector of `count` elements or `size` bytes ("64MB"). `what_if`
    has slow servers and degraded links."""
    network = topology_of(topology)
    core = network_with(network, what_if)
    question = _core.Question(core, size_of(count, size, dtype), model, incast_degree)
    answer: Prediction = Prediction._from_text(_core.predict(question, names_of(algorithms), collective, network._profile))
    return answer


def plan(
    topology: Network,
    *,
    count: Optional[Number] = None,
    size: Optional[Number] = None,
    dtype: str = "float32",
    algorithms: Names = "gentree+",
    collective: str = "allreduce",
    what_if: Conditions = None,
    policy: str = "model",
    explain: bool = False,
    model: str = "genmodel",
    incast_degree: str = "senders",
) -> Plan:
    """The best plan that these algorithms have, with what it costs and, with `explain`, why it was chosen. `what_if` has slow
    servers and degraded links, for which it is made."""
    core = network_with(topology_of(topology), what_if)
    question = _core.Question(core, size_of(count, size, dtype), model, incast_degree)
    made, text = _core.plan(question, names_of(algorithms), collective, policy, explain)
    return Plan._of(made, text)


def verify(plan: Union[Plan, Path], *, exact: bool = False, seed: Optional[str] = None) -> Proof:
    """Proves that every rank ends with every contribution exactly once, or says where not. A wrong plan is no error:
    the answer's `ok` is False and `problem` has a counter-example."""
    given = plan if isinstance(plan, Plan) else Plan(plan)
    answer: Proof = Proof._from_text(_core.verify(given._core, exact, optional_text(seed), given._file))
    return answer


def simulate(
    topology: Network,
    what: Union[Plan, Names],
    *,
    count: Optional[Number] = None,
    size: Optional[Number] = None,
    dtype: str = "float32",
    what_if: Conditions = None,
    collective: str = "allreduce",
    barrier: bool = False,
    engine: str = "auto",
    tolerance: float = 0.0,
    all_hops: bool = False,
    model: str = "genmodel",
    incast_degree: str = "senders",
) -> Simulation:
    """What a plan, or the plans of algorithms, do over time, also when something is wrong with the network. Without
    `count` and `size` a plan is simulated for the length that it was made for. Ctrl-C ends a long simulation."""
    network = topology_of(topology)
    given = what if isinstance(what, Plan) else None
    if given is not None and count is None and size is None and given.count > 0:
        count = given.count
    question = _core.Question(network._core, size_of(count, size, dtype), model, incast_degree)
    request = _core.SimulationRequest(
        question,
        [] if given is not None else names_of(what),  # type: ignore[arg-type]
        None if given is None else given._core,
        collective,
        what_if_text(what_if_of(what_if)),
        _core.SimulationText(barrier, engine, tolerance),
    )
    answer: Simulation = Simulation._from_text(_core.simulate(request, all_hops))
    return answer


def compare(
    topology: Network,
    *,
    count: Union[None, Number, Sequence[Number]] = None,
    size: Union[None, Number, Sequence[Number]] = None,
    dtype: str = "float32",
    algorithms: Names = COMPARED,
    what_if: Conditions = None,
    collective: str = "allreduce",
    barrier: bool = False,
    engine: str = "auto",
    tolerance: float = 0.0,
    model: str = "genmodel",
    incast_degree: str = "senders",
) -> Comparison:
    """Predicted and simulated times side by side, at one size or several, why they differ, and what following the model costs."""
    network = topology_of(topology)
    sizes = list_of(size if count is None else count)
    first = sizes[0] if sizes else None
    asked = size_of(None if count is None else first, None if size is None else first, dtype)
    request = _core.SimulationRequest(
        _core.Question(network._core, asked, model, incast_degree),
        names_of(algorithms),
        None,
        collective,
        what_if_text(what_if_of(what_if)),
        _core.SimulationText(barrier, engine, tolerance),
    )
    answer: Comparison = Comparison._from_text(_core.compare(request, [text_of(one) for one in sizes]))
    return answer


def lower_bound(
    topology: Network,
    *,
    count: Optional[Number] = None,
    size: Optional[Number] = None,
    dtype: str = "float32",
    collective: str = "allreduce",
    what_if: Conditions = None,
    model: str = "genmodel",
) -> LowerBound:
    """What nothing can beat on a network, and what binds there."""
    core = network_with(topology_of(topology), what_if)
    question = _core.Question(core, size_of(count, size, dtype), model, "senders")
    return LowerBound(_core.lower_bound(question, collective))


def fit(measurements: Union[Path, Sequence[Path]], *, seed: int = 1, validate: bool = False) -> Fit:
    """The parameters of a network from measurements files, as `gar fit --save` writes them; several are fitted together.
    `validate` also judges the fit by what was measured and held out."""
    paths = [path_of(path) for path in list_of(measurements)]
    core, text = _core.fit(paths, seed, validate)
    return Fit(json.loads(text), Profile._of(core, "the fit of " + ", ".join(paths)))


def diagnose(profile: Union[Path, Profile], results: Path, *, ranks: Optional[int] = None) -> Diagnosis:
    """Whether a benchmark's results are normal for a network, and if not, what is at fault. `results` is a file, or the
    text itself, of gar bench, nccl-tests or OSU; `ranks` are theirs where they do not say."""
    known = profile if isinstance(profile, Profile) else Profile(profile)
    is_text = isinstance(results, str) and "\n" in results
    text = str(results) if is_text else None
    file = "the results" if is_text else path_of(results)
    answer: Diagnosis = Diagnosis._from_text(_core.diagnose(known._core, known._file, text, file, ranks))
    return answer
