"""Builds the wheel of `import gar`: CMake's target gar_python, packed with the Python files (PEP 517 and 660).

It needs CMake, a C++ compiler, pybind11 and Python's headers, and nothing of Python beyond the standard library, so `pip install .`
works without a network. `--config-settings build-dir=build/release` takes a folder that CMake has configured with this Python;
otherwise build/pip is used, and used again. CMAKE_ARGS has further arguments for CMake.
"""

import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "genallreduce"


def version():
    """The project's, from CMakeLists.txt."""
    found = re.search(r"^  VERSION (\S+)$", (ROOT / "CMakeLists.txt").read_text(), re.M)
    assert found, "CMakeLists.txt does not say the version"
    return found.group(1)


def tag():
    """"cp311-cp311-linux_x86_64"."""
    assert sys.implementation.name == "cpython", "expected CPython"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{platform}"


def metadata():
    return f"""Metadata-Version: 2.1
Name: {NAME}
Version: {version()}
Summary: Predicts, plans, proves, simulates and runs the fastest AllReduce for a network
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: tables
Requires-Dist: numpy; extra == "tables"
Requires-Dist: pandas; extra == "tables"
Description-Content-Type: text/markdown

{(ROOT / "docs" / "python.md").read_text()}"""


def run(*command):
    print("+", shlex.join(map(str, command)), flush=True)
    subprocess.run(command, check=True)


def build(settings):
    """Builds the target, and returns the folder that holds the package."""
    given = (settings or {}).get("build-dir")
    folder = Path(given) if given else ROOT / "build" / "pip"
    folder = folder if folder.is_absolute() else ROOT / folder
    if given:
        assert (folder / "CMakeCache.txt").exists(), f"build-dir: {folder} is no build folder of CMake"
    else:
        off = ["APPS", "TESTS", "BENCH", "EXAMPLES"]
        without = ["OPENMPI", "MPICH", "CUDA"]
        generator = ["-G", "Ninja"] if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists() else []
        run("cmake", "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DGAR_UNITY=ON",
            "-DGAR_BUILD_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}",
            *[f"-DGAR_BUILD_{part}=OFF" for part in off], *[f"-DGAR_WITH_{part}=OFF" for part in without],
            *shlex.split(os.environ.get("CMAKE_ARGS", "")))  # fmt: skip
    run("cmake", "--build", folder, "--target", "gar_python", "-j", os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1)))
    package = folder / "python" / "gar"
    assert (package / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}").exists(), (
        f"{package} has no extension for this Python ({sys.executable}); expected a folder that was configured with it"
    )
    return package.parent


class Wheel:
    """A wheel that is being written."""

    def __init__(self, folder):
        self.name = f"{NAME}-{version()}-{tag()}.whl"
        self.info = f"{NAME}-{version()}.dist-info"
        self.file = zipfile.ZipFile(Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, content, mode=0o644):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")
        # Always the same time: equal files make equal wheels.
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.file.writestr(entry, content)

    def close(self):
        for name, text in info_files().items():
            self.add(f"{self.info}/{name}", text.encode())
        self.record.append(f"{self.info}/RECORD,,")
        self.file.writestr(zipfile.ZipInfo(f"{self.info}/RECORD", (1980, 1, 1, 0, 0, 0)), "\n".join(self.record) + "\n")
        self.file.close()
        return self.name


def info_files():
    wheel = f"Wheel-Version: 1.0\nGenerator: gar_build\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    return {"METADATA": metadata(), "WHEEL": wheel, "LICENSE": (ROOT / "LICENSE").read_text()}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = build(config_settings) / "gar"
    wheel = Wheel(wheel_directory)
    extension = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    for path in sorted(package.iterdir()):
        if path.suffix in (".py", ".pyi") or path.name in ("py.typed", extension):
            wheel.add(f"gar/{path.name}", path.read_bytes(), 0o755 if path.name == extension else 0o644)
    return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    folder = build(config_settings)
    wheel = Wheel(wheel_directory)
    wheel.add(f"{NAME}.pth", f"{folder}\n".encode())
    return wheel.close()


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = Path(metadata_directory) / f"{NAME}-{version()}.dist-info"
    info.mkdir()
    for name, text in info_files().items():
        (info / name).write_text(text)
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory, config_settings=None):
    """All files that git knows."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True).stdout
    base = f"{NAME}-{version()}"
    info = ROOT / "build" / "PKG-INFO"
    info.parent.mkdir(exist_ok=True)
    info.write_text(metadata())
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as out:
        for name in filter(None, listed.decode().split("\0")):
            out.add(ROOT / name, f"{base}/{name}", recursive=False)
        out.add(info, f"{base}/PKG-INFO")
    return f"{base}.tar.gz"
