"""Collectives of mpi4py, from 1 B to 64 MB, against numpy. It knows nothing of gar.

mpirun -n 4 /usr/bin/python3 mpi4py_client.py [--small]
"""

import sys

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
ARITHMETIC = ((MPI.SUM, np.add), (MPI.PROD, np.multiply), (MPI.MIN, np.minimum), (MPI.MAX, np.maximum))
BITS = ((MPI.BAND, np.bitwise_and), (MPI.BOR, np.bitwise_or), (MPI.BXOR, np.bitwise_xor))
LOGICAL = ((MPI.LAND, np.logical_and), (MPI.LOR, np.logical_or), (MPI.LXOR, np.logical_xor))
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (np.float32, np.float64)
PERIOD = 420

failures = 0
calls = 0


def pattern(rank, dtype):
    """One period of a rank's values: small, so that results are exact."""
    values = (np.arange(PERIOD) * 7 + rank * 11) % 6 + 1
    return (values * 0.5 if np.issubdtype(dtype, np.floating) else values).astype(dtype)


def vector(rank, dtype, count):
    return np.resize(pattern(rank, dtype), count)


def reduced(dtype, ufunc, count):
    result = pattern(0, dtype)
    for rank in range(1, SIZE):
        result = ufunc(result, pattern(rank, dtype)).astype(dtype)
    return np.resize(result, count)


def expect(actual, expected, what):
    global failures
    if not np.array_equal(actual, expected):
        failures += 1
        index = int(np.flatnonzero(actual != expected)[0])
        print(f"FAILED on rank {RANK}: {what}: element {index} is {actual[index]}, not {expected[index]}", flush=True)


def note(count, dtype=np.float64, ufunc=np.add):
    """Counts a call that must be taken over. MPI libraries are left their own way with NaN, and some with short integers."""
    global calls
    is_order_of_floats = dtype in FLOATS and ufunc in (np.minimum, np.maximum)
    calls += SIZE > 1 and count > 0 and np.dtype(dtype).itemsize > 2 and not is_order_of_floats


def check_allreduce(dtype, op, ufunc, count):
    what = f"{np.dtype(dtype).name} x {count}, {ufunc.__name__}"
    expected = reduced(dtype, ufunc, count)
    result = np.empty(count, dtype)
    COMM.Allreduce(vector(RANK, dtype, count), result, op)
    expect(result, expected, "Allreduce " + what)
    result = vector(RANK, dtype, count)
    COMM.Iallreduce(MPI.IN_PLACE, result, op).Wait()
    expect(result, expected, "Iallreduce in place " + what)
    note(count, dtype, ufunc)
    note(count, dtype, ufunc)


def check_blocks(dtype, count):
    whole = SIZE * count
    result = np.empty(count, dtype)
    COMM.Reduce_scatter_block(vector(RANK, dtype, whole), result, MPI.SUM)
    expect(result, reduced(dtype, np.add, whole)[RANK * count:(RANK + 1) * count], f"Reduce_scatter_block {count}")
    gathered = np.empty(whole, dtype)
    COMM.Allgather(vector(RANK, dtype, count), gathered)
    expect(gathered, np.concatenate([vector(r, dtype, count) for r in range(SIZE)]), f"Allgather {count}")
    note(count, dtype)
    note(count)


def check_sizes(sizes):
    for size in sizes:
        for dtype in INTEGERS + FLOATS:
            count = size // np.dtype(dtype).itemsize
            if count == 0:
                continue
            for op, ufunc in ARITHMETIC if dtype in FLOATS else ARITHMETIC + BITS + LOGICAL:
                check_allreduce(dtype, op, ufunc, count)
            check_blocks(dtype, count)


def check_under_way():
    """Several at once, completed backwards, while numpy computes."""
    results = [vector(RANK, np.float64, 1000 * (i + 1)) for i in range(6)]
    requests = [COMM.Iallreduce(MPI.IN_PLACE, result, MPI.SUM) for result in results]
    busy = np.sum(np.sqrt(np.arange(200000.0)))
    for request in reversed(requests):
        request.Wait()
    for result in results:
        expect(result, reduced(np.float64, np.add, len(result)), "Iallreduce under way")
        note(1)
    assert busy > 0


def check_objects():
    """Lower-case functions pickle: Python's own operators are left to the MPI library."""
    total = COMM.allreduce(RANK + 1)
    if total != SIZE * (SIZE + 1) // 2:
        print(f"FAILED on rank {RANK}: allreduce of a Python object", flush=True)
        sys.exit(1)


def main():
    is_small = "--small" in sys.argv
    check_objects()
    check_sizes([1, 8, 1000] if is_small else [1, 8, 64, 1000, 16384])
    check_under_way()
    if not is_small:
        check_allreduce(np.float32, MPI.SUM, np.add, 10**6 // 4)
        check_allreduce(np.int64, MPI.MAX, np.maximum, 4 * 10**6 // 8)
        check_blocks(np.float64, 4 * 10**6 // 8 // SIZE)
        check_allreduce(np.float64, MPI.PROD, np.multiply, 16 * 10**6 // 8)
        result = vector(RANK, np.float32, 64 * 10**6 // 4)
        COMM.Allreduce(MPI.IN_PLACE, result, MPI.SUM)
        expect(result, reduced(np.float32, np.add, len(result)), "Allreduce of 64 MB")
        note(1)
    if RANK == 0:
        print(f"calls {calls * SIZE}", flush=True)
    sys.exit(1 if failures else 0)


main()
