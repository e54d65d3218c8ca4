"""gar.torch: the gradients of DistributedDataParallel are those of Gloo, and a death is an exception."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

HAS_TORCH = importlib.util.find_spec("torch") is not None

TRAIN = """
import os, sys, torch, torch.distributed as dist, gar, gar.torch
torch.set_num_threads(1)
rank, size = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)

def train(with_gar):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(40, 300), torch.nn.ReLU(), torch.nn.Linear(300, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1))
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)
    state = gar.torch.communicator() if with_gar else None
    if state:
        model.register_comm_hook(state, gar.torch.ddp_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(100 + rank)
    losses = []
    for _ in range(5):
        inputs = torch.randn(16, 40)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if state:
        state.close()
    return losses, torch.cat([p.detach().reshape(-1) for p in model.parameters()])

ours, theirs = train(True), train(False)
same = [torch.zeros_like(ours[1]) for _ in range(size)]
dist.all_gather(same, ours[1])
print("equal on all ranks:", all(torch.equal(one, ours[1]) for one in same))
print("equal to gloo:", ours[0] == theirs[0] and torch.equal(ours[1], theirs[1]), "close:", torch.allclose(ours[1], theirs[1], rtol=1e-5, atol=1e-7))
"""

DEATH = """
import os, sys, torch, torch.distributed as dist, gar, gar.torch
rank, size = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)
state = gar.torch.communicator()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 100))
model.register_comm_hook(state, gar.torch.ddp_hook)
output = model(torch.randn(4, 1000)).sum()
if rank == 1:
    os._exit(0)
try:
    output.backward()
    print("nothing was noticed")
except Exception as error:
    print("noticed:", error)
sys.stdout.flush()
os._exit(0)
"""


def run(code, size):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", code]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        ranks = [
            subprocess.Popen([*command, str(rank), str(size), os.path.join(folder, "store")], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for rank in range(size)
        ]  # fmt: skip
        return [(*process.communicate(timeout=600), process.returncode) for process in ranks]


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class Ddp(unittest.TestCase):
    def test_two_ranks_train_as_with_gloo(self):
        # Halves are exact, and two numbers have one sum.
        for out, err, code in run(TRAIN, 2):
            self.assertEqual((code, out), (0, "equal on all ranks: True\nequal to gloo: True close: True\n"), err)

    def test_a_death_is_an_exception(self):
        first, _ = run(DEATH, 2)
        self.assertIn("noticed:", first[0], first[1])
        self.assertIn("rank 1", first[0])
