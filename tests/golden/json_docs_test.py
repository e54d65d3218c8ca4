"""docs/json.md says what the documents hold: json_docs_test.py GAR SOURCE_DIRECTORY

Every section with a command: the document has its schema, every field that the section names, and at the top no other.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def values_at(document, path):
    """All values of a field such as "results[].seconds"."""
    values = [document]
    for word in path.split("."):
        is_list = word.endswith("[]")
        name = word.removesuffix("[]")
        values = [value[name] for value in values if isinstance(value, dict) and name in value]
        if is_list:
            values = [entry for value in values for entry in value]
    return values


def check(section, schema, folder):
    command = re.search(r"^`(.*)`$", section, re.MULTILINE).group(1)
    run = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    try:
        document = json.loads(run.stdout)
    except ValueError:
        return [f"{schema} ({command}): prints no document; exit code {run.returncode}: {run.stderr}"]
    fields = [name for line in section.splitlines() if line.startswith("| `")
              for name in re.findall(r"`([^`]+)`", line.split("|")[1])]
    problems = []
    if document["schema"] != schema:
        problems.append(f"the schema is {document['schema']}")
    problems += [f"no field {field}" for field in fields if not values_at(document, field)]
    known = {field.split(".")[0].removesuffix("[]") for field in fields} | {"gar_version", "schema"}
    problems += [f"the field {name} is not described" for name in document if name not in known]
    return [f"{schema} ({command}): {problem}" for problem in problems]


def check_store(gar):
    """gar store prints its document at once, and goes on until it is told to end."""
    with subprocess.Popen([gar, "store", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as store:
        lines = []
        for line in store.stdout:
            lines.append(line)
            if line == "}\n":
                break
        store.terminate()
        _, errors = store.communicate(timeout=300)
    if not lines and "OpenSSL" in errors:
        return []
    document = json.loads("".join(lines))
    names = sorted(document)
    return [] if names == ["address", "gar_version", "schema", "secret"] else [f"gar store: the fields are {names}"]


def main():
    gar, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    sections = re.split(r"^## ", (root / "docs/json.md").read_text(), flags=re.MULTILINE)
    sections = [section for section in sections if section.startswith("gar.")]
    problems = [] if len(sections) > 5 else ["docs/json.md has hardly any sections"]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "data").symlink_to(root / "data")
        (pathlib.Path(folder) / "gar").symlink_to(gar)
        os.environ["PATH"] = folder + ":" + os.environ["PATH"]
        for section in sections:
            problems += check(section, section.split()[0], folder)
    problems += check_store(gar)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
