"""Our choice at every size against the MPI library's own, within a time limit: what bench/network/sizes and bench/host share.

A place is where ranks run: a function that runs one `gar bench` and returns its rows. The time is shared out beforehand; how often
each size is run follows from how long it took in the run before.
"""
import glob
import json
import math
import os
import statistics
import sys
import time

FORCED = {1: "linear", 2: "nonoverlapping", 3: "recursive-doubling", 4: "ring", 5: "segmented-ring", 6: "rabenseifner"}
SLOW_FORCED = (1, 2)  # everything through one rank: of no use beyond SLOW_BYTES
SLOW_BYTES = 64 << 10
OURS, MODEL, NATIVE = "auto", "model", "native"  # the model's choice is "auto" in a job that does not explore
LEAST = 0.97  # aims: of a cell against the library's default, of all cells' mean, of a cell against the best forced algorithm
MEAN = 1.5
LEAST_FORCED = 0.95
LAUNCH_S = 1.5  # starting a job, roughly
MOST_WARM_UPS = 2000


def quartered(first, last):
    """8, 32, ..., and the last one."""
    sizes = []
    while first < last:
        sizes.append(first)
        first *= 4
    return sizes + [last]


def size_text(size):
    for unit, word in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {word}"
    return f"{size} B"


def sizes_text(sizes):
    return size_text(sizes[0]) + (f" to {size_text(sizes[-1])}" if len(sizes) > 1 else "")


def time_text(seconds):
    if seconds is None:
        return "-"
    micro = seconds * 1e6
    return f"{micro:.2f}" if micro < 10 else f"{micro:.1f}" if micro < 100 else f"{micro:.0f}"


def batch_of(size):
    """Operations in one iteration of gar bench."""
    return min(max((256 << 10) // size, 1), 32)


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)] if values else None


class Clock:
    """The time that is left of a limit."""

    def __init__(self, limit_s):
        self.start = time.monotonic()
        self.limit_s = limit_s

    def spent(self):
        return time.monotonic() - self.start

    def left(self):
        return self.limit_s - self.spent()


def groups_of(sizes, costs, budget_s, least, most):
    """[(iterations, sizes)]: each size gets the same share of the time; neighbours that need nearly equally many share a job, but
    none takes more than a third of the budget. `costs`: seconds of an iteration, by size."""
    share = budget_s / max(len(sizes), 1)
    out = []
    in_job_s = 0.0
    for size in sizes:
        wanted = int(min(max(share / costs[size], least), most))
        here_s = wanted * costs[size]
        if out and max(out[-1][0], wanted) <= 3 * min(out[-1][0], wanted) and in_job_s + here_s <= budget_s / 3:
            out[-1] = (min(out[-1][0], wanted), out[-1][1] + [size])
            in_job_s += here_s
        else:
            out.append((wanted, [size]))
            in_job_s = here_s
    return out


class Contest:
    """One place, measured. `run(algorithms, sizes, iterations, warm_ups, environment, mca, timeout_s)` gives rows, or raises JobFailed."""

    def __init__(self, run, sizes, limit_s, launches, forced, folder):
        self.run_job = run
        self.sizes = sizes
        self.clock = Clock(limit_s)
        self.launches = launches
        self.forced = forced
        self.folder = folder
        self.notes = []
        self.left_out = {}  # job: sizes for which no time was left
        self.rows = {}    # (size, way): a row of each launch
        self.typical = {}  # size: seconds of a call, the mean of the ways that were measured
        self.slow = 1.0    # how much longer jobs take than their calls do
        self.launch_s = LAUNCH_S
        self.shares = {}  # size: (calls, seconds, extra seconds) of exploring
        self.settled = {}

    def say(self, text):
        print(f"# {self.clock.spent():5.0f} s  {text}", file=sys.stderr, flush=True)

    def costs(self, num_ways, seconds=None):
        """Seconds of an iteration, by size."""
        known = seconds or self.typical
        return {s: max(known.get(s, 1e-3), 1e-6) * batch_of(s) * num_ways * self.slow for s in self.sizes}

    def job(self, what, algorithms, sizes, iterations, warm_ups, explores, mca=()):
        """Rows by (size, way); none when the job failed or there is no time for it."""
        costs = self.costs(len(algorithms.split(",")))
        expected_s = sum((iterations + warm_ups + 2) * costs[s] for s in sizes)
        if self.clock.left() < 2 * self.launch_s or (self.typical and self.clock.left() < 0.5 * expected_s):
            self.left_out.setdefault(what, []).append(sizes_text(sizes))
            return {}
        environment = {"GAR_EXPLORE": "1" if explores else "0", "GAR_DECISIONS": self.folder if explores else "0"}
        start = self.clock.spent()
        try:
            rows = self.run_job(algorithms, sizes, iterations, warm_ups, environment, mca, self.clock.left())
        except JobFailed as failed:
            self.notes.append(f"{what}, {sizes_text(sizes)}: {failed}")
            self.say(self.notes[-1])
            return {}
        if self.typical and expected_s > self.launch_s:
            took = (self.clock.spent() - start - self.launch_s) * self.slow / expected_s
            self.slow = min(max((self.slow + took) / 2, 1.0), 4.0)
        return {(row["bytes"], row["algorithm"].split(":")[0].split(" ")[0]): row for row in rows}

    def note_times(self, rows):
        for size in self.sizes:
            here = [row["seconds"] for (bytes_, _), row in rows.items() if bytes_ == size]
            if here:
                self.typical[size] = sum(here) / len(here)

    def probe(self):
        """How long calls take at all."""
        self.say("how long calls take")
        start = self.clock.spent()
        self.note_times(self.job("probe", f"{OURS},{NATIVE}", [s for s in self.sizes if s <= SLOW_BYTES] or self.sizes, 2, 1, False))
        calls_s = sum(2 * (2 + 1 + 2) * t * batch_of(s) for s, t in self.typical.items())
        self.launch_s = min(max(self.clock.spent() - start - calls_s, 0.5), 5)
        long = [size for size in self.sizes if size not in self.typical]
        if long and self.typical:
            self.note_times(self.job("probe", f"{OURS},{NATIVE}", long, 2, 1, False))

    def for_calls(self, budget_s):
        """What is left of it when some jobs have been started."""
        return max(budget_s - 4 * self.launch_s, 0.2 * budget_s)

    def explore(self, budget_s):
        """Calls of ours alone, as a program makes them; what they find is kept for the launches that are measured."""
        for iterations, sizes in groups_of(self.sizes, self.costs(1), self.for_calls(budget_s), 4, MOST_WARM_UPS):
            self.say(f"exploring {sizes_text(sizes)}: {iterations} iterations")
            self.job("exploring", OURS, sizes, 1, iterations, True)
        self.read_decisions()

    def read_decisions(self):
        for path in glob.glob(os.path.join(self.folder, "decisions-*.json")):
            with open(path, encoding="utf-8") as file:
                decisions = json.load(file)["decisions"]
            for decision in decisions:
                for size in self.sizes:
                    if decision["from_bytes"] <= size <= decision["to_bytes"]:
                        calls, seconds, extra = self.shares.get(size, (0, 0.0, 0.0))
                        self.shares[size] = (calls + decision["calls"], seconds + decision["seconds"],
                                             extra + decision["extra_seconds"])
                        self.settled[size] = decision.get("settled", True)

    def measure(self, budget_s):
        end = self.clock.spent() + budget_s
        for launch in range(1, self.launches + 1):
            self.say(f"launch {launch} of {self.launches}: ours and the library's own in turns, then the model's choice alone")
            here_s = (end - self.clock.spent()) / (self.launches - launch + 1)
            # Half of it: the rest is for warming up and checking.
            for iterations, sizes in groups_of(self.sizes, self.costs(3), 0.5 * self.for_calls(max(here_s, 1)), 5, 60):
                warm_ups = max(2, iterations // 4)
                rows = self.job(f"launch {launch}", f"{OURS},{NATIVE}", sizes, iterations, warm_ups, True)
                alone = self.job(f"launch {launch}, the model alone", OURS, sizes, iterations, warm_ups, False)
                rows.update({(size, MODEL): row for (size, _), row in alone.items()})
                self.note_times(rows)
                for (size, way), row in rows.items():
                    self.rows.setdefault((size, way), []).append(row)
            self.read_decisions()

    def force(self, budget_s):
        """Every algorithm once, then those again that were good somewhere."""
        end = self.clock.spent() + budget_s
        slow_last = sorted(self.forced, key=lambda number: number in SLOW_FORCED)
        wanted = {number: self.sizes for number in slow_last}
        for launch in range(1, self.launches + 1):
            for number, of_number in wanted.items():
                sizes = [s for s in of_number if number not in SLOW_FORCED or s <= SLOW_BYTES]
                if not sizes or self.clock.spent() > end and launch > 1:
                    continue
                self.say(f"launch {launch} of {self.launches}: the library forced to {FORCED[number]}")
                mca = (("coll_tuned_use_dynamic_rules", "1"), ("coll_tuned_allreduce_algorithm", str(number)))
                known = {s: self.rows[(s, FORCED[number])][0]["seconds"] if (s, FORCED[number]) in self.rows
                         else self.typical.get(s, 1e-3) for s in sizes}
                jobs = max(1, sum(map(len, wanted.values())) / len(self.sizes)) * (self.launches - launch + 1)
                share = self.for_calls(max(1.0, (end - self.clock.spent()) / jobs))
                for iterations, some in groups_of(sizes, self.costs(1, known), 0.5 * share, 3, 40):
                    rows = self.job(f"forced {FORCED[number]}", NATIVE, some, iterations, 2, False, mca)
                    for (size, _), row in rows.items():
                        self.rows.setdefault((size, FORCED[number]), []).append(row)
            wanted = self.good_forced()

    def good_forced(self):
        out = {}
        for size in self.sizes:
            known = {number: self.rows[(size, FORCED[number])][0]["seconds"] for number in self.forced
                     if (size, FORCED[number]) in self.rows}
            for number, seconds in known.items():
                if seconds <= 1.15 * min(known.values()):
                    out.setdefault(number, []).append(size)
        return out

    def run(self):
        limit = self.clock.limit_s
        self.probe()
        rest = limit - self.clock.spent()
        self.explore(0.25 * rest)
        self.measure((0.55 if self.forced else 0.9) * self.clock.left())
        if self.forced:
            self.force(0.9 * self.clock.left())
        for what, sizes in self.left_out.items():
            self.notes.append(f"{what}: no time was left for {', '.join(sizes)}")
        return self.cells()

    def median(self, size, way):
        rows = self.rows.get((size, way))
        return statistics.median(row["seconds"] for row in rows) if rows else None

    def ratio(self, size, slow, fast):
        """Of two ways of the same launches: the median of their ratios."""
        pairs = zip(self.rows.get((size, slow), []), self.rows.get((size, fast), []))
        ratios = [s["seconds"] / f["seconds"] for s, f in pairs]
        return statistics.median(ratios) if ratios else None

    def cells(self):
        out = []
        for size in self.sizes:
            ours = self.rows.get((size, OURS), [])
            forced = {FORCED[n]: self.median(size, FORCED[n]) for n in self.forced if (size, FORCED[n]) in self.rows}
            best = min(forced, key=forced.get) if forced else None
            ours_s, model_s, native_s = (self.median(size, way) for way in (OURS, MODEL, NATIVE))
            known = [s for s in (ours_s, model_s, native_s, *forced.values()) if s]
            calls, seconds, extra = self.shares.get(size, (0, 0.0, 0.0))
            out.append({
                "bytes": size, "ours_s": ours_s, "plan": ours[-1]["plan"] if ours else None, "model_s": model_s,
                "model_plan": self.rows[(size, MODEL)][-1]["plan"] if model_s else None,
                "model_predicted_s": self.rows[(size, MODEL)][-1]["predicted_seconds"] if model_s else None,
                "native_s": native_s, "forced_s": forced, "best_forced": best,
                "over_native": self.ratio(size, NATIVE, OURS), "model_over_native": self.ratio(size, NATIVE, MODEL),
                "over_forced": forced[best] / ours_s if best and ours_s else None,
                "model_regret": model_s / min(known) - 1 if model_s else None,
                "wrong": sum(r["wrong"] or 0 for (s, _), rows in self.rows.items() if s == size for r in rows),
                "exploring": {"calls": calls, "seconds": seconds, "extra_seconds": extra,
                              "share": extra / seconds if seconds > 0 else None, "settled": self.settled.get(size)},
                "launches": {way: [{k: row[k] for k in ("seconds", "p10", "p90", "plan", "iterations", "batch")}
                                   for row in rows] for (s, way), rows in self.rows.items() if s == size},
            })
        return out


class JobFailed(Exception):
    """In words."""


def summary_of(cells):
    over = {c["bytes"]: c["over_native"] for c in cells if c["over_native"]}
    forced = {c["bytes"]: c["over_forced"] for c in cells if c["over_forced"]}
    regrets = [c["model_regret"] for c in cells if c["model_regret"] is not None]
    seconds = sum(c["exploring"]["seconds"] for c in cells)
    return {"geometric_mean": geometric_mean(over.values()),
            "least_over_native": min(over.values(), default=None), "least_at_bytes": min(over, key=over.get, default=None),
            "least_over_forced": min(forced.values(), default=None),
            "least_over_forced_at_bytes": min(forced, key=forced.get, default=None),
            "model_regret_median": statistics.median(regrets) if regrets else None,
            "model_regret_p95": percentile(regrets, 0.95),
            "exploring_share": sum(c["exploring"]["extra_seconds"] for c in cells) / seconds if seconds > 0 else None,
            "wrong": sum(c["wrong"] for c in cells), "cells": len(over)}


def ratio_text(value):
    return "-" if value is None else f"{value:.2f}"


def percent_text(value):
    return "-" if value is None else f"{value:.1%}"


def looking_text(exploring):
    if exploring["share"] is None:
        return "-"
    star = "" if exploring["settled"] in (None, True) else "*"
    return f"{exploring['share']:.1%} {exploring['extra_seconds'] * 1e3:.1f} ms{star}"


def print_document(document):
    print(f"\n{document['place']}; {document['launches']} launches, us")
    print(f"{'size':>8} {'ours':>9} {'model':>9} {'own':>9} {'forced':>9} {'ours/own':>9} {'model/own':>9} {'ours/best':>9} "
          f"{'regret':>7} {'looking':>17}  what ran (the model's, the best forced)")
    for c in document["cells"]:
        forced = c["forced_s"].get(c["best_forced"]) if c["best_forced"] else None
        looking = looking_text(c["exploring"])
        print(f"{size_text(c['bytes']):>8} {time_text(c['ours_s']):>9} {time_text(c['model_s']):>9} "
              f"{time_text(c['native_s']):>9} {time_text(forced):>9} {ratio_text(c['over_native']):>9} "
              f"{ratio_text(c['model_over_native']):>9} {ratio_text(c['over_forced']):>9} "
              f"{percent_text(c['model_regret']):>7} {looking:>17}  {c['plan']} ({c['model_plan']}, {c['best_forced'] or '-'})")
    for note in document["notes"]:
        print(f"# {note}")
    print_summary(document)


def print_summary(document):
    s = document["summary"]
    if not s["cells"]:
        print("nothing was measured")
        return
    aim = document["aims"]

    def missed(value, least):
        return "" if least is None or value is None or value >= least else f" (aim {least}: missed)"

    words = [f"geometric mean {s['geometric_mean']:.2f} x its own{missed(s['geometric_mean'], aim['mean'])}",
             f"worst cell {s['least_over_native']:.2f} at {size_text(s['least_at_bytes'])}"
             f"{missed(s['least_over_native'], aim['least'])}"]
    if s["least_over_forced"] is not None:
        words.append(f"worst against the best forced {s['least_over_forced']:.2f} at "
                     f"{size_text(s['least_over_forced_at_bytes'])}{missed(s['least_over_forced'], aim['least_forced'])}")
    words.append(f"regret of the model alone: median {percent_text(s['model_regret_median'])}, p95 "
                 f"{percent_text(s['model_regret_p95'])}")
    words.append(f"looking took {percent_text(s['exploring_share'])} of the time in calls")
    print(f"{document['name']}: " + "; ".join(words), flush=True)


def is_met(document):
    s, aim = document["summary"], document["aims"]
    return (s["cells"] > 0 and s["wrong"] == 0 and s["least_over_native"] >= aim["least"]
            and (aim["mean"] is None or s["geometric_mean"] >= aim["mean"])
            and (s["least_over_forced"] is None or s["least_over_forced"] >= aim["least_forced"]))


def conduct(name, place, run, options, sizes, aims):
    """Measures one place, writes NAME.json into the folder, prints the table. Returns the document."""
    folder = os.path.join(options.output, name)
    kept = os.path.join(folder, "decisions")
    os.makedirs(kept, exist_ok=True)
    for old in glob.glob(os.path.join(kept, "decisions-*.json")):
        os.remove(old)
    os.chmod(kept, 0o700)
    contest = Contest(run, sizes, options.limit, options.launches, options.forced, kept)
    cells = contest.run()
    document = {"schema": "gar.every-size/1", "name": name, "place": place, "launches": options.launches, "aims": aims,
                "cells": cells, "summary": summary_of(cells), "notes": contest.notes, "seconds": contest.clock.spent()}
    with open(os.path.join(options.output, f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    print_document(document)
    return document


def show(paths):
    documents = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            documents.append(json.load(file))
    for document in documents:
        print_document(document)
    print()
    for document in documents:
        print_summary(document)
    over = [c["over_native"] for d in documents for c in d["cells"] if c["over_native"]]
    if over:
        print(f"all {len(over)} cells: geometric mean {geometric_mean(over):.2f}, worst {min(over):.2f}")


def add_options(parser, limit_s):
    parser.add_argument("--limit", type=float, default=limit_s, metavar="S", help="seconds for everything (default: %(default)g)")
    parser.add_argument("--launches", type=int, default=3, help="of each job that is measured (default: %(default)s)")
    parser.add_argument("--skip", default="", metavar="N,...",
                        help="numbers of Open MPI's algorithms that are not forced; all: none is forced")
    parser.add_argument("-o", dest="output", metavar="FOLDER", help="where NAME.json and the decisions go (default: a new one)")
    parser.add_argument("--show", nargs="+", metavar="FILE", help="print the tables of such files, measure nothing")


def finish_options(options, parser):
    numbers = options.skip.split(",") if options.skip else []
    if numbers == ["all"]:
        numbers = [str(n) for n in FORCED]
    unknown = [n for n in numbers if n not in {str(k) for k in FORCED}]
    if unknown:
        parser.error(f"--skip {unknown[0]}; accepted: all, or numbers of {', '.join(f'{n} ({w})' for n, w in FORCED.items())}")
    options.forced = [n for n in FORCED if str(n) not in numbers]
