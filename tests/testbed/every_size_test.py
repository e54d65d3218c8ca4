"""The arithmetic of bench/network/sizes and bench/host, with jobs that only pretend to run: every_size_test.py"""
import contextlib
import io
import json
import os
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import every_size  # noqa: E402

SIZES = [8, 1024, 1 << 20]
SECONDS = {"auto": 1.0, "model": 1.25, "native": 1.5}  # the model: "auto" in a job that does not explore
AIMS = {"least": 0.97, "mean": 1.2, "least_forced": 0.95}
DECISION = {"from_bytes": 1024, "to_bytes": 2047, "settled": False, "calls": 90, "seconds": 2.0, "extra_seconds": 0.03}


class Pretended:
    """Jobs whose calls take `seconds(way, size)`; keeps what was asked for."""

    def __init__(self, seconds=lambda way, size: SECONDS[way] * 1e-6 * size, fails=lambda job: False):
        self.seconds = seconds
        self.fails = fails
        self.jobs = []

    def __call__(self, algorithms, sizes, iterations, warm_ups, environment, mca, timeout_s):
        job = types.SimpleNamespace(ways=algorithms.split(","), sizes=sizes, iterations=iterations, warm_ups=warm_ups,
                                    environment=environment, forced=dict(mca).get("coll_tuned_allreduce_algorithm"))
        self.jobs.append(job)
        if self.fails(job):
            raise every_size.JobFailed("exit code 4: it broke")
        if environment["GAR_EXPLORE"] == "1":
            with open(os.path.join(environment["GAR_DECISIONS"], "decisions-0.json"), "w", encoding="utf-8") as file:
                json.dump({"decisions": [DECISION]}, file)
        forced = {"3": 0.9, "4": 2.0}.get(job.forced, 1)
        kind = {} if environment["GAR_EXPLORE"] == "1" else {"auto": "model"}
        return [{"bytes": size, "algorithm": way, "plan": "ring", "seconds": forced * self.seconds(kind.get(way, way), size), "p10": 0, "p90": 0,
                 "iterations": iterations, "batch": 1, "wrong": 0, "predicted_seconds": None} for way in job.ways for size in sizes]


def measure(run, forced=(3, 4), limit=600):
    """(document, what was printed)"""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out, \
            contextlib.redirect_stderr(io.StringIO()):
        options = types.SimpleNamespace(output=folder, limit=limit, launches=3, forced=list(forced))
        document = every_size.conduct("place", "a place", run, options, SIZES, AIMS)
        with open(os.path.join(folder, "place.json"), encoding="utf-8") as file:
            assert json.load(file) == document
    return document, out.getvalue()


class EverySize(unittest.TestCase):
    def test_ratios_and_summary(self):
        run = Pretended()
        document, text = measure(run)
        for cell in document["cells"]:
            self.assertAlmostEqual(cell["over_native"], 1.5)
            self.assertAlmostEqual(cell["model_over_native"], 1.2)
            self.assertEqual(cell["best_forced"], "recursive-doubling")
            self.assertAlmostEqual(cell["over_forced"], 1.35)
            self.assertAlmostEqual(cell["model_regret"], 0.25)
            self.assertEqual(len(cell["launches"]["auto"]), 3)
        summary = document["summary"]
        self.assertAlmostEqual(summary["geometric_mean"], 1.5)
        self.assertEqual(summary["cells"], 3)
        self.assertTrue(every_size.is_met(document))
        self.assertIn("1 MiB", text)
        self.assertIn("geometric mean 1.50 x its own", text)
        self.assertNotIn("missed", text)

    def test_a_missed_cell_is_named(self):
        slow = Pretended(lambda way, size: SECONDS[way] * (2 if way == "auto" and size == 1024 else 1) * 1e-6)
        document, text = measure(slow)
        self.assertFalse(every_size.is_met(document))
        self.assertIn("worst cell 0.75 at 1 KiB (aim 0.97: missed)", text)

    def test_exploring_is_counted_where_it_was_kept(self):
        run = Pretended()
        document, text = measure(run)
        shares = {cell["bytes"]: cell["exploring"] for cell in document["cells"]}
        self.assertIsNone(shares[8]["share"])
        self.assertAlmostEqual(shares[1024]["share"], 0.015)
        self.assertFalse(shares[1024]["settled"])
        self.assertIn("1.5% 120.0 ms*", text)
        explores = [job for job in run.jobs if job.environment["GAR_EXPLORE"] == "1"]
        self.assertTrue(all("auto" in job.ways for job in explores))
        self.assertTrue(all(job.environment["GAR_DECISIONS"] == "0" for job in run.jobs if job not in explores))

    def test_only_good_forced_algorithms_run_again(self):
        run = Pretended()
        measure(run)
        launches = {number: sum(8 in job.sizes for job in run.jobs if job.forced == number) for number in ("3", "4")}
        self.assertEqual(launches, {"3": 3, "4": 1})

    def test_slow_forced_algorithms_get_short_vectors_only(self):
        run = Pretended()
        measure(run, forced=(1,))
        self.assertEqual({size for job in run.jobs if job.forced == "1" for size in job.sizes}, {8, 1024})

    def test_what_fails_is_a_note(self):
        run = Pretended(fails=lambda job: job.environment["GAR_EXPLORE"] == "1" and job.ways == ["auto", "native"] and 1 << 20 in job.sizes)
        document, text = measure(run)
        self.assertIsNone(document["cells"][2]["over_native"])
        self.assertEqual(document["summary"]["cells"], 2)
        self.assertIn("exit code 4: it broke", text)

    def test_no_time_is_a_note(self):
        document, text = measure(Pretended(), limit=0)
        self.assertEqual(document["summary"]["cells"], 0)
        self.assertIn("no time was left", text)
        self.assertFalse(every_size.is_met(document))

    def test_groups(self):
        costs = {8: 1.0, 32: 1.5, 128: 10.0}
        self.assertEqual(every_size.groups_of([8, 32, 128], costs, 90, 1, 100), [(30, [8]), (20, [32]), (3, [128])])
        self.assertEqual(every_size.groups_of([8, 32], {8: 0.01, 32: 0.01}, 90, 1, 100), [(100, [8, 32])])
        self.assertEqual(every_size.groups_of([8], {8: 50.0}, 90, 5, 100), [(5, [8])])

    def test_sizes(self):
        self.assertEqual(every_size.quartered(8, 200), [8, 32, 128, 200])
        self.assertEqual([every_size.size_text(s) for s in (8, 2048, 1 << 20, 1500)], ["8 B", "2 KiB", "1 MiB", "1500 B"])


if __name__ == "__main__":
    unittest.main()
