"""The notebooks of examples/notebooks: their cells run one after the other, and print what the notebook shows. Written anew by

    PYTHONPATH=build/release/python /usr/bin/python3 tests/python/notebooks_test.py --update

Pictures are not kept in the files; that there is one is tested."""

import ast
import contextlib
import io
import json
import os
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def run_cell(source, names):
    """What a notebook would show: printed text, and the value of the last line, as text; and whether that has a picture."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    picture = next((getattr(value, name)() for name in ("_repr_svg_", "_repr_html_") if hasattr(value, name)), "")
    return printed.getvalue(), value, picture


def outputs_of(printed, value):
    out = []
    if printed:
        out.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)})
    if value is not None:
        text = repr(value).split(" cases in ")[0]  # of a sweep: how long it took comes next
        data = {"text/plain": text.splitlines(keepends=True)}
        out.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return out


def run_notebook(path):
    """The notebook with new outputs, and the pictures of its cells."""
    notebook = json.loads(path.read_text())
    names = {"__name__": "__main__"}
    pictures = []
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            printed, value, picture = run_cell("".join(cell["source"]), names)
            cell["outputs"] = outputs_of(printed, value)
            pictures.append((value, picture))
    finally:
        os.chdir(before)
    return notebook, pictures


class Notebooks(unittest.TestCase):
    def test_they_show_what_they_print(self):
        self.assertGreaterEqual(len(NOTEBOOKS), 5)
        for path in NOTEBOOKS:
            with self.subTest(path.name):
                notebook, pictures = run_notebook(path)
                self.assertEqual(notebook, json.loads(path.read_text()))
                for value, picture in pictures:
                    if value is not None:
                        self.assertIn("<svg", picture)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        for path in NOTEBOOKS:
            path.write_text(json.dumps(run_notebook(path)[0], indent=1) + "\n")
    else:
        unittest.main()
