#!/usr/bin/env python3
"""Trains a small model with DistributedDataParallel on CPUs, and prints its losses.

    torchrun --nproc-per-node 4 examples/pytorch/train.py --backend gar
    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 examples/pytorch/train.py &
    RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 examples/pytorch/train.py

The only lines that a program needs for gar are `import gar.torch` and the name of the backend.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gar.torch  # noqa: F401: makes the backend known

WORDS, LENGTH, BATCH = 50, 16, 8


class Transformer(nn.Module):
    """Guesses the next word of a sentence."""

    def __init__(self, width=64):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.guess = nn.Linear(width, WORDS)
        self.register_buffer("mask", torch.triu(torch.full((LENGTH, LENGTH), float("-inf")), 1))

    def forward(self, sentences):
        return self.guess(self.layers(self.words(sentences) + self.places, self.mask)).transpose(1, 2)


class Convolutional(nn.Sequential):
    """Guesses the kind of a picture. Its BatchNorm has buffers that rank 0 tells the others."""

    def __init__(self, width=16):
        super().__init__(
            nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(2 * width * 16, 10),
        )  # fmt: skip


MODELS = {"transformer": Transformer, "convolutional": Convolutional}


def batch_of(name, generator):
    """Inputs and what a model should make of them."""
    if name == "transformer":
        first = torch.randint(0, WORDS, (BATCH, 1), generator=generator)
        sentences = (first + 3 * torch.arange(LENGTH + 1)) % WORDS
        return sentences[:, :-1], sentences[:, 1:]
    kinds = torch.randint(0, 10, (BATCH,), generator=generator)
    patterns = torch.randn(10, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    return patterns[kinds] + 0.5 * torch.randn(BATCH, 3, 16, 16, generator=generator), kinds


def train(name, steps, group=None, width=None):
    """The mean loss over all ranks of every step. Each rank has batches of its own."""
    torch.manual_seed(7)
    model = MODELS[name]() if width is None else MODELS[name](width)
    model = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    generator = torch.Generator().manual_seed(100 + dist.get_rank())
    losses = []
    for _ in range(steps):
        inputs, wanted = batch_of(name, generator)
        loss = nn.functional.cross_entropy(model(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, group=group)
        losses.append(mean.item() / dist.get_world_size())
    return losses, model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="gar")
    parser.add_argument("--model", choices=MODELS, default="transformer")
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(arguments.backend)
    losses, _ = train(arguments.model, arguments.steps)
    if dist.get_rank() == 0:
        print(f"{arguments.model}, {dist.get_world_size()} ranks, {dist.get_backend()}")
        for step in range(0, len(losses), max(1, len(losses) // 5)):
            print(f"step {step:3}  loss {losses[step]:.5f}")
        print(f"step {len(losses) - 1:3}  loss {losses[-1]:.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
