"""What a measurements file must hold, whatever the times are: fit_check.py FILE RANKS [validated] [messages]"""
import json
import sys

document = json.load(open(sys.argv[1]))
ranks = int(sys.argv[2])
words = sys.argv[3:]
assert document["schema"] == "gar.measurements/2" and document["gar_version"]
provenance = document["provenance"]
for field in ("date", "command", "gar_version", "hosts", "kernel", "cpu", "transport"):
    assert provenance[field], field
assert provenance["ranks"] == ranks and provenance["seconds"] > 0
assert " fit " in provenance["command"]


def servers_of(observation):
    servers = observation["servers"]
    return list(range(servers)) if isinstance(servers, int) else servers


cells = document["observations"]
total = 0
kinds = set()
for cell in cells:
    servers = servers_of(cell)
    assert servers == sorted(set(servers)) and 0 <= servers[0] and servers[-1] < ranks, cell
    assert len(cell["seconds"]) >= 2 and all(s > 0 for s in cell["seconds"]), cell
    assert cell["size_floats"] > 0
    total += len(cell["seconds"])
    if cell["kind"] == "collective":
        kinds.add((cell["collective"], cell.get("algorithm", "").split(":")[0], len(servers)))
    if cell["kind"] == "reduction":
        assert 2 <= cell["fan_in"] <= 16
assert total == provenance["measurements"], (total, provenance)
assert {c["fan_in"] for c in cells if c["kind"] == "reduction"} == {2, 3, 4, 6, 8, 12, 16}
for n in range(2, ranks + 1):
    assert ("allreduce", "cps", n) in kinds and ("allgather", "cps", n) in kinds, (n, kinds)
    assert n == 2 or ("allgather", "ring", n) in kinds, (n, kinds)
pairs = {c["size_floats"] for c in cells if c.get("collective") == "allgather" and servers_of(c) == [0, 1]}
assert len(pairs) >= 4, pairs
held_out = [c for c in cells if not c.get("is_fitted", c.get("fitted", True))]
assert bool(held_out) == ("validated" in words), len(held_out)
gathers = [c for c in cells if c["kind"] == "gather"]
assert bool(gathers) == ("messages" in words), len(gathers)
if "validated" in words:
    assert {c.get("algorithm") for c in held_out} >= {"ring", "rhd", "cps"}, held_out
