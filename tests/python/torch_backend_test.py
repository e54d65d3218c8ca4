"""The backend `gar` of torch.distributed beside Gloo, which is the judge wherever it knows the operation; where it does not, what is
expected is computed. What the ranks do is in torch_scenarios.py, torch_messages.py and torch_training.py."""

import os
import subprocess
import sys
import tempfile
import unittest

import torch
import torch_messages as messages
import torch_ranks
import torch_scenarios as scenarios
import torch_training as trainings

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

#: It ends while threads of C++ and that of the hook are in functions of Python that wait; and its end takes long.
ENDS_MEANWHILE = """
import sys, threading, time, torch, torch.distributed as dist, gar.torch

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1.5)

def told(future):
    begun.release()
    time.sleep(0.5)
    sys.stdout.write(f"rank {rank} was told\\n")
    sys.stdout.flush()
    return future.value()

rank = int(sys.argv[1])
dist.init_process_group("gar", init_method="file://" + sys.argv[2] + "/store", rank=rank, world_size=2)
begun, _slow, store = threading.Semaphore(0), Slow(), dist.distributed_c10d._get_default_store()
state = gar.torch.communicator()

def message():
    (dist.isend(torch.zeros(3), 1) if rank == 0 else dist.irecv(torch.zeros(3), 0)).get_future().then(told)

def collectives():
    dist.all_reduce(torch.zeros(3), async_op=True).get_future().then(told)
    state.average(torch.zeros(3)).then(told)

# Who asks first is told by another thread.
first, second = (collectives, message) if rank == 0 else (message, collectives)
first()
store.set(f"asked {rank}", "1")
store.wait([f"asked {1 - rank}"])
second()
for _ in range(3):
    begun.acquire()
"""


def ends_of(code):
    """(exit code, output, complaints) of two ranks that run it."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen([sys.executable, "-c", code, str(rank), folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(2)
        ]  # fmt: skip
        said = [process.communicate(timeout=300) for process in ranks]
        return [(process.returncode, out, err) for process, (out, err) in zip(ranks, said)]


class Backend(unittest.TestCase):
    def test_reductions_are_those_of_gloo(self):
        self.assertEqual(torch_ranks.said(scenarios.every_reduction, 4), [(4 * 7 + 4 * 4) * len(scenarios.SIZES) * 3] * 4)

    def test_moves(self):
        self.assertEqual(torch_ranks.said(scenarios.every_move, 3), [9 * len(scenarios.SIZES) * 9] * 3)

    def test_average_bool_and_what_is_refused(self):
        for refused in torch_ranks.said(scenarios.special_operators, 4):
            words = ("AVG of torch.int32", "BXOR of torch.float32", "a tensor on meta", "MAX of a sparse tensor")
            self.assertEqual(len(refused), len(words), refused)
            for text, word in zip(refused, words):
                self.assertIn(word, text)
                self.assertIn("xpected", text)

    def test_sparse_tensors(self):
        for compared, refused in torch_ranks.said(trainings.sparse, 3):
            self.assertEqual(compared, 8)
            self.assertIn("rank 1 has a sparse tensor of shape [4] with 1 sparse dimensions, and rank 0 one of shape [3]", refused)

    def test_strided_tensors(self):
        torch_ranks.said(scenarios.strided, 3)

    def test_works_and_groups(self):
        said = torch_ranks.said(scenarios.asynchronous, 4)
        self.assertEqual(said, [(4.0, 3, 3, "gar", rank // 2) for rank in range(4)])

    def test_send_and_receive(self):
        said = torch_ranks.said(messages.between_two, 3)
        self.assertIn("rank 0 has sent 12 bytes with tag 0, but rank 1 has room for 8", said[1])

    def test_receive_from_anyone(self):
        self.assertEqual(torch_ranks.said(messages.from_anyone, 4), [1, 1, 2, 3])

    def test_receive_from_anyone_while_ranks_leave(self):
        sources, failure = torch_ranks.said(messages.others_leave, 3)[0]
        self.assertEqual(sources, [1, 2, 2])
        self.assertIn("has left the communicator", failure)

    def test_a_sender_that_dies(self):
        results = torch_ranks.run(messages.sender_dies, 3)
        self.assertEqual(results[2], (None, "it ended with -9"))
        self.assertEqual(len(results[0][0]), 2, results[0])
        for failure in results[0][0]:
            self.assertIn("recv from rank 2 by rank 0, which are 0 and 1 here: rank 0 has died", failure)

    def test_monitored_barrier(self):
        said = torch_ranks.said(messages.monitored, 3)
        self.assertEqual([one for _, one in said], [3.0] * 3)
        first, all_of_them, at_once = said[0][0]
        self.assertIn("Rank 1 failed to pass monitoredBarrier in 500 ms", first)
        self.assertIn("Ranks 1, 2 failed to pass monitoredBarrier in 500 ms", all_of_them)
        self.assertIn("Rank 0 timed out in monitoredBarrier", at_once)
        self.assertEqual(said[1][0], [])
        self.assertEqual(len(said[2][0]), 1)
        self.assertIn("Rank 2 successfully reached monitoredBarrier, but received errors", said[2][0][0])

    def test_nothing_is_copied(self):
        # A copy is noticed.
        self.assertEqual(torch_ranks.said(scenarios.without_copies, 2), [(True, True, 8_000_000)] * 2)

    def test_environment_variables(self):
        self.assertEqual(torch_ranks.said(scenarios.by_environment, 2), [2.0, 2.0])

    def test_hosts(self):
        os.environ["GAR_FAKE_HOSTS"] = "2"
        try:
            said = torch_ranks.said(scenarios.asynchronous, 4)
            torch_ranks.said(messages.between_two, 3)
            torch_ranks.said(messages.from_anyone, 4)
        finally:
            del os.environ["GAR_FAKE_HOSTS"]
        self.assertEqual(said, [(4.0, 3, 3, "gar", rank // 2) for rank in range(4)])

    def test_programs_may_end_without_destroying_groups(self):
        for rank, (code, out, err) in enumerate(ends_of(ENDS)):
            self.assertEqual((code, out), (0, f"rank {rank} ends\n"), err)

    def test_programs_may_end_while_they_are_told(self):
        for rank, (code, out, err) in enumerate(ends_of(ENDS_MEANWHILE)):
            self.assertEqual((code, out), (0, f"rank {rank} was told\n" * 3), err)

    def test_a_silent_rank_is_an_exception_after_the_limit(self):
        said = torch_ranks.said(scenarios.silent, 3)
        for rank in (0, 2):
            self.assertIn("rank 1 has been silent for 12 s in all_reduce of 1000 float32", said[rank][0])
            self.assertIn("a longer timeout of the process group", said[rank][0])
        for failure, who in zip(said[0][1:], ("no rank has sent", "rank 1 has not sent")):
            self.assertIn(f"recv: {who} anything with tag 0 for 12 s, the timeout of the process group", failure)

    def test_different_calls_are_told(self):
        for text in torch_ranks.said(scenarios.different_calls, 3):
            self.assertIn("TransportError", text)
            self.assertIn("all_reduce of 100 float32", text)
            self.assertIn("broadcast of 100 float32 from rank 0", text)

    def test_training_is_that_of_gloo(self):
        self.assertEqual(torch_ranks.said(trainings.training, 4), [[True, True]] * 4)

    def test_unused_parameters(self):
        self.assertEqual(torch_ranks.said(trainings.finds_unused, 2), [4, 4])

    def test_what_calls_groups(self):
        self.assertEqual(torch_ranks.said(trainings.what_calls_groups, 3), [True] * 3)

    def test_shards(self):
        torch_ranks.said(trainings.sharded, 2)

    def test_torchrun(self):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--monitor_interval", "0.2", "--master_port", str(torch_ranks.free_port())]
        if sys.version_info >= (3, 11) and torch.__version__.startswith("1."):
            # Its default, no redirection, is a flag of value 0, which this Python's enumerations leave out.
            command += ["--redirects", "1", "--tee", "1"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command, str(trainings.EXAMPLE / "train.py"), "--steps", "6", "--model", "convolutional"],
            env=environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"convolutional, 2 ranks, gar\n.*step   0  loss \d")

    def test_a_killed_rank_is_an_exception_on_all_others(self):
        results = torch_ranks.run(trainings.killed_in_training, 4)
        self.assertEqual(results[2], (None, "it ended with -9"))
        for rank in (0, 1, 3):
            self.assertIn("rank 2 has died", results[rank][0])


if __name__ == "__main__":
    unittest.main()
