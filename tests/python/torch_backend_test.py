"""The backend `gar` of torch.distributed beside Gloo, which is the judge wherever it knows the operation; where it does not, what is
expected is computed. What the ranks do is in torch_scenarios.py."""

import os
import subprocess
import sys
import tempfile
import unittest

import torch
import torch_ranks
import torch_scenarios as scenarios

#: Groups of all kinds are there when it ends, and a call that nobody answers.
ENDS = """
import sys, torch, torch.distributed as dist, gar.torch
rank = int(sys.argv[1])
dist.init_process_group("gar", init_method="file://" + sys.argv[2] + "/store", rank=rank, world_size=2)
other = dist.new_group()
dist.all_reduce(torch.ones(1))
tensor = torch.zeros(3)
dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0)
waits = dist.irecv(tensor, 1 - rank, tag=9)
dist.barrier()
if rank == 0:
    waits_too = dist.all_reduce(torch.ones(5), group=other, async_op=True)
print(f"rank {rank} ends", flush=True)
"""


class Backend(unittest.TestCase):
    def test_reductions_are_those_of_gloo(self):
        self.assertEqual(torch_ranks.said(scenarios.every_reduction, 4), [(4 * 7 + 4 * 4) * len(scenarios.SIZES) * 3] * 4)

    def test_moves(self):
        self.assertEqual(torch_ranks.said(scenarios.every_move, 3), [9 * len(scenarios.SIZES) * 9] * 3)

    def test_average_bool_and_what_is_refused(self):
        for refused in torch_ranks.said(scenarios.special_operators, 4):
            words = ("AVG of torch.int32", "BXOR of torch.float32", "a tensor on meta", "a tensor of torch.sparse_coo")
            self.assertEqual(len(refused), len(words), refused)
            for text, word in zip(refused, words):
                self.assertIn(word, text)
                self.assertIn("xpected", text)

    def test_strided_tensors(self):
        torch_ranks.said(scenarios.strided, 3)

    def test_works_and_groups(self):
        said = torch_ranks.said(scenarios.asynchronous, 4)
        self.assertEqual(said, [(4.0, 3, 3, "gar", rank // 2) for rank in range(4)])

    def test_send_and_receive(self):
        said = torch_ranks.said(scenarios.between_two, 3)
        self.assertIn("rank 0 has sent 12 bytes with tag 0, but rank 1 has room for 8", said[1])

    def test_nothing_is_copied(self):
        # A copy is noticed.
        self.assertEqual(torch_ranks.said(scenarios.without_copies, 2), [(True, True, 8_000_000)] * 2)

    def test_environment_variables(self):
        self.assertEqual(torch_ranks.said(scenarios.by_environment, 2), [2.0, 2.0])

    def test_hosts(self):
        os.environ["GAR_FAKE_HOSTS"] = "2"
        try:
            said = torch_ranks.said(scenarios.asynchronous, 4)
            torch_ranks.said(scenarios.between_two, 3)
        finally:
            del os.environ["GAR_FAKE_HOSTS"]
        self.assertEqual(said, [(4.0, 3, 3, "gar", rank // 2) for rank in range(4)])

    def test_programs_may_end_without_destroying_groups(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = [
                subprocess.Popen([sys.executable, "-c", ENDS, str(rank), folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(2)
            ]  # fmt: skip
            for rank, process in enumerate(ranks):
                out, err = process.communicate(timeout=300)
                self.assertEqual((process.returncode, out), (0, f"rank {rank} ends\n"), err)

    def test_a_silent_rank_is_an_exception_after_the_limit(self):
        said = torch_ranks.said(scenarios.silent, 3)
        for rank in (0, 2):
            self.assertIn("rank 1 has been silent for 12 s in all_reduce of 1000 float32", said[rank])

    def test_different_calls_are_told(self):
        for text in torch_ranks.said(scenarios.different_calls, 3):
            self.assertIn("TransportError", text)
            self.assertIn("all_reduce of 100 float32", text)
            self.assertIn("broadcast of 100 float32 from rank 0", text)

    def test_training_is_that_of_gloo(self):
        self.assertEqual(torch_ranks.said(scenarios.training, 4), [[True, True]] * 4)

    def test_unused_parameters(self):
        self.assertEqual(torch_ranks.said(scenarios.finds_unused, 2), [4, 4])

    def test_shards(self):
        torch_ranks.said(scenarios.sharded, 2)

    def test_torchrun(self):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--monitor_interval", "0.2", "--master_port", str(torch_ranks.free_port())]
        if sys.version_info >= (3, 11) and torch.__version__.startswith("1."):
            # Its default, no redirection, is a flag of value 0, which this Python's enumerations leave out.
            command += ["--redirects", "1", "--tee", "1"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command, str(scenarios.EXAMPLE / "train.py"), "--steps", "6", "--model", "convolutional"],
            env=environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"convolutional, 2 ranks, gar\n.*step   0  loss \d")

    def test_a_killed_rank_is_an_exception_on_all_others(self):
        results = torch_ranks.run(scenarios.killed_in_training, 4)
        self.assertEqual(results[2], (None, "it ended with -9"))
        for rank in (0, 1, 3):
            self.assertIn("rank 2 has died", results[rank][0])


if __name__ == "__main__":
    unittest.main()
