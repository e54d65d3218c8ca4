#!/usr/bin/env python3
"""The package as a user meets it: `pip install .` into a fresh virtual environment, without a network: pip_test.py BUILD_FOLDER

The extension comes from the build folder, so that nothing is compiled twice.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77


def run(*command, **options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    environment["PIP_NO_INDEX"] = "1"
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    return subprocess.run([str(word) for word in command], env=environment, check=True, **options)


def main():
    build = Path(sys.argv[1]).resolve()
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: this Python has no {module} (Debian: python3-venv)")
            return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv/bin/python"
        run(sys.executable, "-m", "venv", "--system-site-packages", Path(folder) / "venv")
        run(python, "-m", "pip", "install", "--quiet", "--config-settings", f"build-dir={build}", ROOT)
        code = "import gar; print(gar.__file__); print(gar.__version__, gar.predict('ss24', size='1MB').best)"
        said = run(python, "-c", code, cwd=folder, capture_output=True, text=True).stdout.split("\n")
        assert said[0].startswith(folder), f"imported from elsewhere: {said[0]}"
        package = Path(said[0]).parent
        for name in ("py.typed", "_core.pyi"):
            assert (package / name).exists(), f"{name} is not installed"
        listed = run(python, "-m", "pip", "show", "--files", "genallreduce", capture_output=True, text=True).stdout
        assert f"Version: {said[1].split()[0]}" in listed and "gar/py.typed" in listed, listed
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "genallreduce")
        assert not package.exists(), "something was left behind"
    print("installed:", said[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
