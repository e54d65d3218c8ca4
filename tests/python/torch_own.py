#!/usr/bin/env python3
"""PyTorch's own tests of process groups (torch.testing._internal.distributed.distributed_test), with the backend gar:

    PYTHONPATH=build/release/python /usr/bin/python3 -W ignore tests/python/torch_own.py [--ranks 3] [-v] [TEST...]

Many of these tests ask for a backend that they know. So groups of gar stand in for those of Gloo, under its name; with --gloo they are Gloo's own, for
comparison. Prints the tests that fail, with PyTorch's own skips counted by reason. What needs GPUs is not asked for.
"""

import argparse
import collections
import dataclasses
import importlib
import logging
import os
import sys
import tempfile
import types
import unittest


def stand_in_for_expecttest():
    """PyTorch's test utilities derive their test case from that of a package which Debian does not have; none of these tests
    uses what it adds."""
    module = types.ModuleType("expecttest")
    module.TestCase, module.ACCEPT = unittest.TestCase, False
    sys.modules["expecttest"] = module


def import_shards():
    """A part of torch 1.13 that DistributedDataParallel's tests need, and that Python 3.11 refuses: defaults without a hash."""
    plain = dataclasses.dataclass

    def with_hash(cls=None, **options):
        def made(cls):
            more = {} if "__hash__" in vars(cls) else {"unsafe_hash": True}
            return plain(cls, **{**more, **options})

        return made if cls is None else made(cls)

    dataclasses.dataclass = with_hash
    try:
        importlib.import_module("torch.distributed._shard")
        importlib.import_module("torch.nn.parallel._replicated_tensor_ddp_utils")
        importlib.import_module("torch.nn.parallel._replicated_tensor_ddp_interop")
    finally:
        dataclasses.dataclass = plain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--gloo", action="store_true", help="with Gloo itself")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    folder = tempfile.TemporaryDirectory()
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(arguments.ranks), TEMP_DIR=folder.name, OMP_NUM_THREADS="1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    for name in ("barrier", "test_dir", "init_dir"):
        os.makedirs(os.path.join(folder.name, name), exist_ok=True)
    stand_in_for_expecttest()
    sys.argv = sys.argv[:1]  # which PyTorch's tests read, too

    import torch

    if torch.__version__.startswith("1."):
        import_shards()
    from torch.distributed import distributed_c10d
    from torch.testing._internal.distributed import distributed_test

    import gar.torch

    logging.getLogger().setLevel(logging.WARNING)
    if not arguments.gloo:
        distributed_c10d.ProcessGroupGloo = gar.torch.Group
        # They look for ranges with Gloo's name, which gar's do not have.
        for backends in (distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
            backends.clear()

    class OwnTests(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    names = [name for name in dir(OwnTests) if name.startswith("test_")]
    names = arguments.tests or [name for name in names if "cuda" not in name and "nccl" not in name]
    skipped = collections.Counter()
    failed = []
    for number, name in enumerate(names):
        result = unittest.TestResult()
        unittest.TestSuite([OwnTests(name)]).run(result)
        for _, reason in result.skipped:
            skipped[reason.split("\n")[0]] += 1
        outcome = "ok"
        if result.failures or result.errors:
            outcome = "FAILED"
            failed.append(name)
            print((result.failures + result.errors)[0][1], file=sys.stderr)
        elif result.skipped:
            outcome = f"skipped ({result.skipped[0][1].splitlines()[0]})"
        if arguments.verbose:
            print(f"{number + 1}/{len(names)} {name}: {outcome}", flush=True)
    done = len(names) - sum(skipped.values()) - len(failed)
    print(f"{'gloo' if arguments.gloo else 'gar'}, {arguments.ranks} ranks: {done} passed, {len(failed)} failed, {sum(skipped.values())} skipped")
    for reason, count in skipped.most_common():
        print(f"  skipped {count}: {reason}")
    for name in failed:
        print(f"  failed: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
