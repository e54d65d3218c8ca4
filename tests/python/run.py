#!/usr/bin/env python3
"""All tests of the Python package in one process: run.py GAR [UNITTEST_ARGUMENTS...]"""

import importlib.util
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import support  # noqa: E402

#: Tests that have a process of their own: what they start is forked, or takes long.
APART = ("pip_test", "torch_backend_test")

if __name__ == "__main__":
    support.program = sys.argv.pop(1)
    for library in ("numpy", "pandas", "torch"):
        if importlib.util.find_spec(library) is None:
            print(f"left out: what needs {library}, which is not installed", file=sys.stderr)
    names = sys.argv[1:] or [path.stem for path in sorted(HERE.glob("*_test.py")) if path.stem not in APART]
    if "torch_backend_test" in names and importlib.util.find_spec("torch") is None:
        sys.exit(77)
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    if not result.testsRun:
        sys.exit("run.py: there are no tests")
    sys.exit(not result.wasSuccessful())
