"""Seconds that PyTorch takes to add 2, 3, ... vectors on a GPU, as one line of JSON for bench_cuda_reduce.

add: x - 1 calls of torch.add(..., out=...), no allocation. sum: Python's sum of a list, which allocates every partial sum.
"""
import argparse
import json
import statistics
import sys

NUM_WARM_UPS = 5
NUM_RUNS = 21


def measure(torch, work):
    seconds = []
    for run in range(-NUM_WARM_UPS, NUM_RUNS):
        start = torch.cuda.Event(enable_timing=True)
        stop = torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        stop.synchronize()
        if run >= 0:
            seconds.append(start.elapsed_time(stop) / 1e3)
    return statistics.median(seconds)


def chain(torch, vectors, out):
    torch.add(vectors[0], vectors[1], out=out)
    for vector in vectors[2:]:
        torch.add(out, vector, out=out)


def random_vector(torch, count, dtype):
    if dtype.is_floating_point:
        return (torch.rand(count, device="cuda") * 2 - 1).to(dtype)
    return torch.randint(0, 100, (count,), device="cuda", dtype=dtype)


def run(arguments):
    try:
        import torch
    except ImportError as error:
        return {"error": f"no PyTorch in {sys.executable}: {error}"}
    if not torch.cuda.is_available():
        return {"error": f"PyTorch {torch.__version__} sees no GPU"}
    dtype = getattr(torch, arguments.dtype, None)
    try:
        vectors = [random_vector(torch, arguments.count, dtype) for _ in range(arguments.max)]
        out = torch.empty_like(vectors[0])
        result = {"torch": torch.__version__, "add": {}, "sum": {}}
        for x in range(2, arguments.max + 1):
            part = vectors[:x]
            result["add"][str(x)] = measure(torch, lambda: chain(torch, part, out))
            result["sum"][str(x)] = measure(torch, lambda: sum(part[1:], part[0]))
        return result
    except (RuntimeError, TypeError, AttributeError) as error:
        return {"error": f"PyTorch {torch.__version__} failed: {str(error).splitlines()[0]}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=150_000_000)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--max", type=int, default=16, help="vectors")
    print(json.dumps(run(parser.parse_args())))


if __name__ == "__main__":
    main()
