"""docs/python.md: its examples are run, and print what it shows."""

import doctest
import os
import re
import tempfile
import unittest

import gar._words
from support import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


class Documents(unittest.TestCase):
    def test_examples(self):
        """The blocks of a document are one program, which runs where `data` leads to the project's data."""
        document = ROOT / "docs/python.md"
        blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.M | re.S)
        examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, document.name, str(document), 0)
        self.assertGreater(len(examples.examples), 20)
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                os.symlink(ROOT / "data", "data")
                said = []
                result = doctest.DocTestRunner(optionflags=FLAGS).run(examples, out=said.append)
            finally:
                os.chdir(here)
        self.assertEqual(result.failed, 0, "".join(said))

    def test_examples_in_the_code(self):
        result = doctest.testmod(gar._words, optionflags=FLAGS)
        self.assertEqual((result.failed, result.attempted > 0), (0, True))
        result = doctest.testmod(gar, optionflags=FLAGS)
        self.assertEqual((result.failed, result.attempted > 0), (0, True))
