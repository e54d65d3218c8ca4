"""The questions: the documents are those of the program, the errors have its words, the pictures show them."""

import ast
import pickle
import signal
import tempfile
import threading
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

import support
from support import ROOT

import gar
from gar import _core, _pictures

MEASUREMENTS = ROOT / "data/measurements/3x4-bbr.json"
PROFILE = ROOT / "data/profiles/june.json"
OSU = "# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n16384 1447.70\n"

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None


class Documents(unittest.TestCase):
    """Everything that `to_dict` gives is what `gar --json` prints."""

    maxDiff = 2000

    def test_predict(self):
        answer = gar.predict("mixed-fleet", size="1MB", algorithms="ring,cps,hcps,gentree+")
        expected = support.gar("predict", "-t", "mixed-fleet", "--size", "1MB", "--algo", "ring,cps,hcps,gentree+")
        self.assertEqual(answer.to_dict(), expected)

    def test_predict_with_a_profile_corrects(self):
        answer = gar.predict(gar.Profile(PROFILE), size="1MB", algorithms=["ring", "cps"])
        expected = support.gar("predict", "-p", PROFILE, "--size", "1MB", "--algo", "ring,cps")
        self.assertEqual(answer.to_dict(), expected)

    def test_other_models_and_types(self):
        answer = gar.predict("ss24", count=10**6, dtype="float64", model="abc", algorithms="ring,hcps:8x3")
        expected = support.gar(
            "predict", "-t", "ss24", "--count", "1e6", "--dtype", "float64", "--model", "abc", "--algo", "ring,hcps:8x3"
        )
        self.assertEqual(answer.to_dict(), expected)

    def test_plan(self):
        made = gar.plan("tree:4x6", count=1e6)
        self.assertEqual(made.to_dict(), support.gar("plan", "-t", "tree:4x6", "--count", "1e6"))
        explained = gar.plan("tree:4x6", count=1e6, collective="reduce-scatter", policy="runtime", explain=True)
        expected = support.gar(
            "plan", "-t", "tree:4x6", "--count", "1e6", "--collective", "reduce-scatter", "--policy", "runtime", "--explain"
        )
        self.assertEqual(explained.to_dict(), expected)

    def test_what_if(self):
        words = ["--slow", "rack0=3", "--degrade", "rack1.uplink=0.5"]
        what_if = {"slow": "rack0=3", "degrade": "rack1.uplink=0.5"}
        network, common = "tree:2x4", ["-t", "tree:2x4", "--size", "1MB"]
        answer = gar.predict(network, size="1MB", algorithms="ring,gentree+", what_if=what_if, collective="reduce-scatter")
        expected = support.gar("predict", *common, "--algo", "ring,gentree+", "--collective", "reduce-scatter", *words)
        self.assertEqual(answer.to_dict(), expected)
        self.assertGreater(answer.seconds, gar.predict(network, size="1MB", collective="reduce-scatter").seconds)
        made = gar.plan(network, size="1MB", what_if=gar.WhatIf(**what_if))
        self.assertEqual(made.to_dict(), support.gar("plan", *common, *words))
        self.assertEqual(gar.plan(network, size="1MB", what_if={}).to_dict(), support.gar("plan", *common))
        bound = gar.lower_bound(network, size="1MB", what_if=what_if)
        self.assertEqual(bound.seconds, made.lower_bound_seconds)

    def test_verify(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.json"
            gar.plan("ss24", size="1MB").save(path)
            self.assertEqual(gar.verify(path).to_dict(), support.gar("verify", path))
            seeded = gar.verify(path, seed="abc").to_dict()
            self.assertEqual(seeded, support.gar("verify", path, "--seed", "abc"))

    def test_simulate(self):
        answer = gar.simulate("tree:2x4", "ring,cps", size="1MB", what_if={"degrade": "rack1.uplink=0.5", "slow": "0=2"})
        expected = support.gar(
            "simulate", "-t", "tree:2x4", "--algo", "ring,cps", "--size", "1MB", "--degrade", "rack1.uplink=0.5", "--slow", "0=2"
        )
        self.assertEqual(answer.to_dict(), expected)

    def test_compare(self):
        what_if = gar.WhatIf(background=["rack0.uplink=0.25"])
        answer = gar.compare("tree:2x4", count=[1e5, 1e6], algorithms="ring,cps", what_if=what_if)
        expected = support.gar(
            "compare", "-t", "tree:2x4", "--counts", "1e5,1e6", "--algo", "ring,cps", "--background", "rack0.uplink=0.25"
        )
        self.assertEqual(answer.to_dict(), expected)

    def test_compare_halves(self):
        answer = gar.compare("tree:2x4", size="1MB", algorithms="ring,cps", collective="allgather")
        expected = support.gar("compare", "-t", "tree:2x4", "--size", "1MB", "--algo", "ring,cps", "--collective", "allgather")
        self.assertEqual(answer.to_dict(), expected)

    def test_topology(self):
        for spec in ("cdc384", "star:12@100Gbit/s,2us", "one-slow-link"):
            self.assertEqual(gar.Topology(spec).to_dict(), support.gar("topo", "show", spec), spec)

    def test_fit_and_profile(self):
        found = gar.fit(MEASUREMENTS)
        self.assertEqual(found.to_dict(), support.gar("fit", "--from", MEASUREMENTS))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "profile.json"
            found.profile.save(path)
            self.assertEqual(gar.Profile(path).to_dict(), support.gar("profile", "show", path))
            changes = gar.Profile(path).diff(gar.Profile(PROFILE)).to_dict()
            self.assertEqual(changes, support.gar("profile", "diff", path, PROFILE))

    def test_diagnose(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "osu.txt"
            path.write_text(OSU)
            answer = gar.diagnose(PROFILE, path)
            code = 0 if answer.is_normal else 1
            self.assertEqual(answer.to_dict(), support.gar("diagnose", "-p", PROFILE, "--results", path, code=code))
            of_text = gar.diagnose(gar.Profile(PROFILE), OSU).to_dict()
            self.assertEqual({**of_text, "results": str(path)}, answer.to_dict())

    def test_lower_bound(self):
        bound = gar.lower_bound("tree:16x24", count=1e8)
        asked = gar.predict("tree:16x24", count=1e8, algorithms="ring")
        self.assertEqual(bound.seconds, asked.lower_bound_seconds)
        self.assertEqual(bound.sequential_seconds, asked.lower_bound_sequential_seconds)
        self.assertIn("link time", bound.binding)


class Values(unittest.TestCase):
    def test_attributes(self):
        answer = gar.predict("ss24", size="1MB", algorithms="ring,cps")
        self.assertEqual(answer.best, answer.results[0].algorithm)
        self.assertEqual(answer.seconds, answer.results[0].seconds)
        terms = answer.results[0].terms
        self.assertIsInstance(terms, gar.Terms)
        self.assertAlmostEqual(terms.total, answer.seconds, delta=1e-12 * answer.seconds)
        self.assertEqual(terms.mu, 0)
        self.assertEqual(answer["best"], answer.best)
        self.assertIn("flips", answer)
        with self.assertRaisesRegex(AttributeError, "expected one of gar_version"):
            answer.nothing  # noqa: B018

    def test_rows(self):
        answer = gar.predict("ss24", size="1MB", algorithms="ring,cps")
        rows = answer.to_rows()
        self.assertEqual([row["algorithm"] for row in rows], [result.algorithm for result in answer.results])
        self.assertEqual(set(rows[0]), {"algorithm", "seconds", "chunks", *_core.terms})
        self.assertTrue(gar.plan("tree:2x4", count=1000).to_rows())
        self.assertTrue(gar.diagnose(PROFILE, OSU).to_rows())

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_numpy(self):
        answer = gar.predict("ss24", size="1MB", algorithms="ring,cps")
        table = answer.to_numpy()
        self.assertEqual(table["seconds"].tolist(), [row["seconds"] for row in answer.to_rows()])
        self.assertEqual(table["algorithm"].tolist(), [row["algorithm"] for row in answer.to_rows()])

    @unittest.skipUnless(pandas, "pandas is not installed")
    def test_pandas(self):
        answer = gar.predict("ss24", size="1MB", algorithms="ring,cps")
        self.assertEqual(answer.to_pandas().seconds.tolist(), [row["seconds"] for row in answer.to_rows()])

    def test_topology_files(self):
        network = gar.Topology("tree:2x3")
        again = gar.Topology.from_json(network.to_json())
        self.assertEqual(again.to_dict(), network.to_dict())
        self.assertEqual((len(again), again.num_switches, again.remarks), (6, 3, network.remarks))
        self.assertIn("digraph", network.to_dot())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.json"
            network.save(path)
            self.assertEqual(gar.Topology(path).to_dict(), network.to_dict())
            with self.assertRaisesRegex(OSError, "nowhere"):
                network.save(Path(folder) / "nowhere" / "net.json")

    def test_a_profile_is_laid_over_a_network(self):
        laid = gar.Topology("tree:2x4", profile=PROFILE)
        self.assertEqual(laid.to_dict(), gar.Topology("tree:2x4", profile=gar.Profile(PROFILE)).to_dict())
        self.assertNotEqual(laid.to_dict(), gar.Topology("tree:2x4").to_dict())

    def test_pickles(self):
        network = pickle.loads(pickle.dumps(gar.Topology("tree:2x4", profile=PROFILE)))
        self.assertEqual(network.to_dict(), gar.Topology("tree:2x4", profile=PROFILE).to_dict())
        plan = gar.plan("ss24", count=1000)
        self.assertEqual(pickle.loads(pickle.dumps(plan)).to_dict(), plan.to_dict())
        answer = gar.predict(network, count=1000, algorithms="ring")
        self.assertEqual(pickle.loads(pickle.dumps(answer)).to_dict(), answer.to_dict())
        self.assertIsInstance(pickle.loads(pickle.dumps(answer)), gar.Prediction)

    def test_own_plans_are_proved(self):
        def swap(rank):  # with the other one of two: send unit 0, receive unit 0 and add it
            return [[0, [1 - rank, 0, 1], [1 - rank, 0, 1, 1]]]

        data = {"schema": "gar.plan/2", "algorithm": "swap", "num_ranks": 2, "num_units": 1, "count": 10}
        plan = gar.Plan.from_dict({**data, "programs": [swap(0), swap(1)]})
        self.assertTrue(gar.verify(plan))
        self.assertEqual((plan.algorithm, plan.num_ranks, plan.count), ("swap", 2, 10))
        self.assertEqual(gar.simulate("star:2", plan).count, 10)
        wrong = [swap(0), swap(1)]
        wrong[0][0][2][3] = 0  # replace instead of adding
        proof = gar.verify(gar.Plan.from_dict({**data, "programs": wrong}))
        self.assertFalse(proof)
        self.assertTrue(proof.problem)
        with self.assertRaisesRegex(gar.ParseError, "num_ranks"):
            gar.Plan.from_dict({"schema": "gar.plan/2"})


class Errors(unittest.TestCase):
    def test_classes(self):
        for name in ("ParseError", "InvalidArgument", "UsageError", "PlanError", "TransportError", "DeviceError"):
            self.assertTrue(issubclass(getattr(gar, name), gar.Error), name)
            self.assertEqual(getattr(gar, name).__module__, "gar")
        self.assertTrue(issubclass(gar.InvalidArgument, ValueError))

    def test_words_are_those_of_the_program(self):
        def refused(kind, call):
            with self.assertRaises(kind) as caught:
                call()
            return str(caught.exception)

        words = refused(gar.InvalidArgument, lambda: gar.Topology("treee:16x24"))
        self.assertIn(words, support.complaint("topo", "show", "treee:16x24"))
        words = refused(gar.ParseError, lambda: gar.Plan(PROFILE))
        self.assertIn(words, support.complaint("verify", PROFILE))
        words = refused(gar.InvalidArgument, lambda: gar.predict("ss24", count=1, algorithms="rnig"))
        self.assertIn(words, support.complaint("predict", "-t", "ss24", "--count", "1", "--algo", "rnig"))
        words = refused(gar.UsageError, lambda: gar.predict("ss24", size="400MX"))
        self.assertIn(words, support.complaint("predict", "-t", "ss24", "--size", "400MX"))
        words = refused(gar.InvalidArgument, lambda: gar.simulate("ss24", "cps", count=1, what_if={"fail": "rack9.uplink"}))
        self.assertIn("rack9", words)

    def test_refusals(self):
        with self.assertRaisesRegex(gar.PlanError, "24 ranks"):
            gar.simulate("star:4", gar.plan("ss24", count=1000))
        with self.assertRaisesRegex(gar.UsageError, "count or size is needed"):
            gar.predict("ss24")
        with self.assertRaisesRegex(gar.UsageError, "only one of"):
            gar.predict("ss24", count=1, size=4)
        with self.assertRaisesRegex(gar.UsageError, "model 'best'.*genmodel"):
            gar.predict("ss24", count=1, model="best")
        with self.assertRaisesRegex(gar.UsageError, "what_if 'slower'"):
            gar.simulate("ss24", "cps", count=1, what_if={"slower": "0=2"})
        with self.assertRaisesRegex(gar.InvalidArgument, "jitter is random"):
            gar.predict("ss24", count=1, what_if={"jitter": 0.1})
        with self.assertRaisesRegex(gar.InvalidArgument, "rack9"):
            gar.plan("ss24", count=1, what_if={"slow": "rack9=2"})
        with self.assertRaisesRegex(gar.InvalidArgument, "type int; expected a name"):
            gar.predict(24, count=1)
        with self.assertRaisesRegex(gar.ParseError, "no such file|No such file|cannot"):
            gar.fit("/nowhere/measurements.json")
        with self.assertRaisesRegex(gar.InvalidArgument, "there are none"):
            gar.fit([])

    def test_ctrl_c_ends_a_simulation(self):
        # Without the symmetry, and with so many chunks that it takes minutes.
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                while True:
                    gar.simulate("tree:12x24", "ring", count=1e8, engine="flows", what_if={"jitter": 0.05})
        finally:
            timer.join()


class Pictures(unittest.TestCase):
    def parse(self, svg):
        root = ET.fromstring(svg)
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        return root

    def test_bars_are_as_long_as_the_terms(self):
        answer = gar.predict("tree:16x24", count=1e7, algorithms="ring,cps")
        root = self.parse(answer.svg())
        rects = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("height") == "18"]
        terms = [value for row in answer.results for value in row.terms.to_dict().values() if value > 0]
        self.assertEqual(len(rects), len(terms))
        scale = sum(float(r.get("width")) for r in rects) / sum(terms)
        for rect, value in zip(rects, terms):
            self.assertAlmostEqual(float(rect.get("width")), scale * value, delta=0.01)
        self.assertIn("<table>", answer._repr_html_())

    def test_trees(self):
        network = gar.Topology("tree:16x24")
        root = self.parse(network._repr_svg_())
        names = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("16 x rack", names)
        self.assertIn("24 x server", names)
        for spec in ("mixed-fleet", "star:1", "million-servers", "asy384"):
            self.parse(gar.Topology(spec).svg())

    def test_a_large_irregular_tree_is_cut(self):
        children = [{"name": f"server{i}", "alpha": 1e-6 * (i + 1)} for i in range(200)]
        nodes = [{"name": "root", "kind": "switch", "num_servers": 200, "alpha": 0, "children": [{"node": i + 1, "count": 1} for i in range(200)]}]
        nodes += [{"name": child["name"], "kind": "server", "num_servers": 1, "alpha": child["alpha"]} for child in children]
        svg = _pictures.tree({"name": "a<b", "num_servers": 200, "nodes": nodes})
        words = [text.text for text in self.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("a<b: 200 servers", words)
        self.assertIn("and 141 more", words)

    def test_the_others(self):
        self.assertIn("<svg", gar.plan("tree:4x6", count=1e6)._repr_html_())
        self.assertIn("<svg", gar.simulate("tree:2x4", "ring,cps", size="1MB")._repr_html_())
        self.assertIn("<table>", gar.compare("tree:2x4", count=1e5, algorithms="ring,cps")._repr_html_())
        self.assertIn("<p>", gar.diagnose(PROFILE, OSU)._repr_html_())


class Stubs(unittest.TestCase):
    def test_the_stub_has_what_the_extension_has(self):
        tree = ast.parse((ROOT / "bindings/python/gar/_core.pyi").read_text())
        declared = {}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                declared[node.name] = {f.name for f in node.body if isinstance(f, ast.FunctionDef)} - {"__init__"}
            elif isinstance(node, ast.FunctionDef):
                declared[node.name] = None
            elif isinstance(node, ast.AnnAssign):
                declared[node.target.id] = None
        columns = {"Doubles", "Integers", "Indices"}
        there = {name for name in dir(_core) if not name.startswith("_")} - columns
        self.assertEqual(set(declared), there)
        for name, members in declared.items():
            if members:
                self.assertEqual(members, {m for m in dir(getattr(_core, name)) if not m.startswith("_")}, name)

    def test_everything_public_has_a_word(self):
        for name in gar.__all__:
            if name != "__version__":
                self.assertTrue((getattr(gar, name).__doc__ or "").strip(), name)
