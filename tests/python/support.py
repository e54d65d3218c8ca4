"""What the tests share."""

import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: the command line program
program = ""


def gar(*arguments, code=0):
    """What `gar ... --json` prints, as Python reads it."""
    done = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"gar {arguments} ended with {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def complaint(*arguments):
    """What `gar` says when it refuses something; long messages go on below themselves."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode != 0, f"gar {arguments} was expected to fail"
    return re.sub(r"\n +", " ", done.stderr)


def unique_name(words):
    return f"python-{words}-{os.getpid()}"
