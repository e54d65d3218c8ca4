#!/usr/bin/env python3
"""Random command lines to two builds of gar, whose answers must be the same, byte for byte.

    scripts/same_answers.py OLD_GAR NEW_GAR [NUMBER=2000] [SEED=1]

For changes that make the planner faster and must not change what it finds: `gar predict`, `gar plan` and `gar simulate` on
named and random networks, up to some 1,000 servers. Prints what differs and how many of them; the exit code is 1 if any does.
An answer where there was too much work for one before (GAR_LIMIT) is counted by itself.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FLAT = ["cps", "hcps", "ring", "rhd", "reduce-broadcast", "recursive-doubling", "hring", "binomial", "gather"]
TREE = ["gentree", "gentree-norearrange", "gentree+"]
NAMES = ["ss24", "ss32", "sym384", "asy384", "cdc384", "mixed-fleet", "one-slow-link", "seven-servers", "small-buffers", "six-servers"]
SECONDS = 300  # after which both are taken to be too slow to compare


class Draw:
    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        self.folder = folder
        self.num_files = 0

    def pick(self, values):
        return self.random.choice(values)

    def whole(self, low, high):
        return self.random.randint(low, high)

    def logarithmic(self, low, high):
        return float(f"{low * (high / low) ** self.random.random():.3g}")

    def maybe(self, share, words):
        return words if self.random.random() < share else []

    def node(self, depth, number):
        out = {"name": f"n{number}", "repeat": self.pick([1, 1, 2, 3, 5, 8]), "alpha": self.logarithmic(1e-7, 1e-2),
               "beta": self.logarithmic(1e-11, 1e-7), "epsilon": self.pick([0, self.logarithmic(1e-14, 1e-9)]),
               "incast_threshold": self.whole(1, 12)}
        if depth > 0 and self.random.random() < 0.7:
            out["children"] = [self.node(depth - 1, i) for i in range(self.whole(1, 3))]
            return out
        out.update(gamma=self.logarithmic(1e-12, 1e-9), delta=self.logarithmic(1e-12, 1e-9))
        if self.random.random() < 0.5:
            out["mu"] = self.logarithmic(1e-8, 1e-4)
        return out

    def network_file(self):
        tree = {"name": "root", "alpha": self.logarithmic(1e-7, 1e-2),
                "children": [self.node(self.whole(0, 2), i) for i in range(self.whole(1, 3))]}
        self.num_files += 1
        path = os.path.join(self.folder, f"{self.num_files}.json")
        with open(path, "w") as file:
            json.dump({"schema": "gar.topology/1", "name": "net", "tree": tree}, file)
        return path

    def speeds(self, levels):
        if self.random.random() < 0.4:
            return ""
        speeds = "+".join(f"{self.pick([1, 10, 25, 100, 400])}Gbit/s" for _ in range(levels))
        return f"@{speeds}" + ("" if levels > 1 else f",{self.whole(1, 20)}us")

    def network(self):
        which = self.random.random()
        if which < 0.35:
            return self.network_file()
        if which < 0.6:
            return self.pick(NAMES)
        if which < 0.75:
            return f"star:{self.pick([self.whole(2, 60), self.whole(60, 1024)])}{self.speeds(1)}"
        if which < 0.92:
            return f"tree:{self.whole(2, 40)}x{self.whole(2, 30)}{self.speeds(2)}"
        if which < 0.97:
            return f"tree:{self.whole(2, 6)}x{self.whole(2, 8)}x{self.whole(2, 16)}"
        return f"leafspine:{self.whole(1, 4)}x{self.whole(2, 8)}x{self.whole(2, 16)}"

    def command(self):
        words = [self.pick(["predict", "predict", "plan", "plan", "simulate"])]
        words += ["-t", self.network()]
        if words[0] == "predict" and self.random.random() < 0.2:
            words += ["--size", "1kB..1GB", "-f", "100"]
        else:
            words += ["--count", str(int(self.logarithmic(1, 1e9)))]
        words += self.maybe(0.25, ["--model", self.pick(["genmodel", "paper", "abc"])])
        words += self.maybe(0.25, ["--collective", self.pick(["reduce-scatter", "allgather", "allreduce"])])
        if words[0] == "simulate":
            words += ["--algo", self.pick(FLAT + TREE)]
        elif words[0] == "plan":
            words += self.maybe(0.4, ["--algo", self.pick(FLAT + TREE)]) + self.maybe(0.3, ["--explain"])
            words += self.maybe(0.3, ["--policy", "runtime"])
        else:
            words += self.maybe(0.4, ["--algo", ",".join(dict.fromkeys([self.pick(FLAT), self.pick(FLAT + TREE)]))])
        return words + self.maybe(0.6, ["--json"])


def answer(program, words):
    try:
        done = subprocess.run([program, *words], capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    old, new = sys.argv[1:3]
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    different = failed = late = now = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as two:
        draw = Draw(seed, folder)
        for _ in range(number):
            words = draw.command()
            before, after = two.map(answer, (old, new), (words, words))
            if before is None or after is None:
                late += before is None and after is None
                different += (before is None) != (after is None)
                continue
            failed += before[0] != 0
            if before[0] != 0 and after[0] == 0 and b"GAR_LIMIT" in before[2]:
                now += 1
            elif before != after:
                different += 1
                if os.path.isfile(words[2]):
                    print(open(words[2]).read())
                print("differs: gar " + " ".join(words))
    print(f"{number} command lines: {different} answers differ, {failed} are errors, {now} of them not any more, "
          f"{late} took too long")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
