"""Sweeps: the numbers of predict() and simulate(), whatever the threads; errors, progress, an end before the end."""

import threading
import unittest

import gar

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None

NETWORKS = ["tree:2x4", "ss24", "star:1"]
ALGORITHMS = ["ring", "cps", "hcps", "gentree", "gentree+"]
COUNTS = [0, 1, 1000, 10**7]


class Numbers(unittest.TestCase):
    def test_prices_are_those_of_predict(self):
        swept = gar.sweep(NETWORKS, ALGORITHMS, COUNTS, threads=2)
        self.assertEqual((len(swept), swept.num_priced, swept.num_simulated), (60, 60, 0))
        self.assertIsNone(swept.simulated_seconds)
        for row in swept:
            asked = gar.predict(row.topology, count=row.count, algorithms=row.algorithm)
            self.assertEqual(row.plan, asked.best)
            self.assertAlmostEqual(row.predicted_seconds, asked.seconds, delta=1e-12 * asked.seconds)
            # A sweep prices plans as they are; gentree+ alone decides on chunks.
            self.assertEqual(row.chunks, asked.to_rows()[0]["chunks"] if row.algorithm == "gentree+" else 1)
            self.assertAlmostEqual(row.terms.total, row.predicted_seconds, delta=1e-12 * asked.seconds)

    def test_simulations_are_those_of_simulate(self):
        what_ifs = [None, gar.WhatIf(degrade="rack1.uplink=0.5"), {"jitter": 0.1, "seed": 3}]
        swept = gar.sweep("tree:2x4", "ring,hcps,gentree+", [1000, 10**6], what_ifs, threads=3)
        self.assertEqual(swept.num_simulated, 18)
        self.assertEqual(swept.what_ifs, ["nothing", "degrade rack1.uplink=0.5", "jitter 0.1 (seed 3)"])
        for row, what_if in [(row, what_ifs[swept.what_ifs.index(row.what_if)]) for row in swept]:
            asked = gar.simulate("tree:2x4", row.algorithm, count=row.count, what_if=what_if)
            self.assertEqual(row.simulated_seconds, asked.seconds, row)

    def test_threads_change_nothing(self):
        def run(threads):
            return gar.sweep(["tree:2x4", "ss24"], ALGORITHMS, COUNTS, simulate=True, threads=threads).to_rows()

        self.assertEqual(run(1), run(5))

    def test_plans_and_barriers(self):
        plan = gar.plan("tree:2x4", count=10**7)
        swept = gar.sweep(gar.Topology("tree:2x4"), [plan, "ring"], "1e3,1e7", simulate=True, barrier=True, threads=1)
        self.assertEqual(swept.counts, [1000, 10**7])
        self.assertEqual(swept.row(0, 0, 0, 1).predicted_seconds, plan.seconds)
        asked = gar.simulate("tree:2x4", plan, count=1000, barrier=True)
        self.assertEqual(swept.row(0, 0, 0, 0).simulated_seconds, asked.seconds)

    def test_best(self):
        swept = gar.sweep("tree:16x24", ["ring", "cps"], [100, 10**8], threads=1)
        self.assertEqual([row.algorithm for row in swept.best()], [gar.predict("tree:16x24", count=c, algorithms="ring,cps").best for c in swept.counts])

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_numpy_has_the_same_rows(self):
        swept = gar.sweep(NETWORKS[:2], ["ring", "cps"], numpy.array(COUNTS[1:]), [{}, {"slow": "1=2"}], threads=2)
        self.assertEqual(swept.predicted_seconds.shape, (2, 2, 3))
        self.assertEqual(swept.simulated_seconds.shape, (2, 2, 2, 3))
        table = swept.to_numpy()
        rows = swept.to_rows()
        self.assertEqual(len(table), len(rows))
        for name in table.dtype.names:
            self.assertEqual(table[name].tolist(), [row[name] for row in rows], name)
        if pandas is not None:
            self.assertEqual(swept.to_pandas().predicted_seconds.tolist(), [row["predicted_seconds"] for row in rows])

    def test_curves(self):
        picture = gar.sweep("ss24", "ring,cps", [0, 1, 1000, 10**6], threads=1).svg()
        self.assertEqual(picture.count("<path d=\"M"), 2 + picture.count("stroke-opacity") + 1)


class Ends(unittest.TestCase):
    def test_errors(self):
        with self.assertRaisesRegex(gar.InvalidArgument, "rnig"):
            gar.sweep("ss24", "rnig", [1])
        with self.assertRaisesRegex(gar.InvalidArgument, "5x5"):
            gar.sweep(["star:25", "ss24"], "hcps:5x5", [1])
        with self.assertRaisesRegex(gar.InvalidArgument, "rack99"):
            gar.sweep("ss24", "ring", [1], {"fail": "rack99.uplink"})
        with self.assertRaisesRegex(gar.UsageError, "counts"):
            gar.sweep("ss24", "ring", [-1])
        with self.assertRaisesRegex(gar.UsageError, "counts"):
            gar.sweep("ss24", "ring", [0.5])
        with self.assertRaisesRegex(gar.InvalidArgument, "nothing to do"):
            gar.sweep("ss24", "ring", [])
        with self.assertRaisesRegex(gar.PlanError, "24 ranks"):
            gar.sweep("star:4", gar.plan("ss24", count=1000), [1])
        # Found by a thread, while it simulates.
        with self.assertRaisesRegex(gar.InvalidArgument, "cannot be reached"):
            gar.sweep("tree:2x4", "ring", [1000], {"fail": "rack1.uplink"}, threads=2)

    def test_another_thread_of_python_goes_on_and_can_end_it(self):
        # It would take minutes. The main thread can set `enough` only while the sweep does not hold the interpreter, and only then
        # does the sweep end.
        class Enough(Exception):
            pass

        calls, enough, outcome = [], threading.Event(), []

        def progress(done, total):
            calls.append((done, total))
            if enough.is_set():
                raise Enough

        def run():
            try:
                gar.sweep("tree:16x32", "gentree+", range(10**6, 10**6 + 20000), threads=1, progress=progress)
            except Enough:
                outcome.append("ended")

        thread = threading.Thread(target=run)
        thread.start()
        steps = 0
        while len(calls) < 2 and thread.is_alive():
            steps += 1
        enough.set()
        thread.join()
        self.assertEqual(outcome, ["ended"])
        self.assertGreater(steps, 0)
        self.assertEqual({total for _, total in calls}, {20000})
