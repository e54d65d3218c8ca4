"""Communicators: right results in place and out of place, on every kind of memory, without copies and without the interpreter's lock."""

import array
import ctypes
import subprocess
import sys
import threading
import unittest

from support import unique_name

import gar

try:
    import numpy
except ImportError:
    numpy = None

SIZE = 3


def on_threads(work, **options):
    """Runs work(communicator) on SIZE threads, and gives what they returned. Were the interpreter locked in a collective, the others
    could never join it."""
    communicators = gar.Communicator.threads(SIZE, **options)
    results, errors = [None] * SIZE, []

    def run(communicator):
        try:
            results[communicator.rank] = work(communicator)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[communicator]) for communicator in communicators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


class Tensor:
    """What a framework's tensor shows of itself: DLPack, and no buffer."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return Tensor(self.values[index])


@unittest.skipUnless(numpy, "NumPy is not installed")
class Results(unittest.TestCase):
    def test_all_reduce_of_every_type(self):
        types = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]

        def work(communicator):
            for name in types:
                values = numpy.arange(1, 8, dtype=name) + numpy.dtype(name).type(communicator.rank)
                kept = values.copy()
                out = numpy.zeros_like(values)
                expected = 3 * numpy.arange(1, 8) + 3
                self.assertIs(communicator.all_reduce(values, out), out)
                self.assertEqual(out.tolist(), expected.tolist(), name)
                self.assertEqual(values.tolist(), kept.tolist())
                self.assertIs(communicator.all_reduce(values, op="max"), values)
                self.assertEqual(values.tolist(), (numpy.arange(1, 8) + 2).tolist(), name)

        on_threads(work)

    def test_shapes_and_operators(self):
        def work(communicator):
            values = numpy.full((4, 5), 2.0 + communicator.rank)
            communicator.all_reduce(values, op="prod")
            self.assertEqual(values.tolist(), numpy.full((4, 5), 24.0).tolist())
            flags = numpy.array([communicator.rank == 1, False, True])
            communicator.all_reduce(flags, op="lor")
            self.assertEqual(flags.tolist(), [True, False, True])
            number = numpy.array(1.0)
            communicator.all_reduce(number)
            self.assertEqual(number, 3.0)
            nothing = numpy.zeros(0)
            communicator.all_reduce(nothing)

        on_threads(work)

    def test_bfloat16(self):
        def work(communicator):
            ones = numpy.full(5, 0x3F80, dtype=numpy.uint16)
            communicator.all_reduce(ones, dtype="bfloat16")
            self.assertEqual(ones.tolist(), [0x4040] * 5)

        on_threads(work)

    def test_reduce_scatter(self):
        def work(communicator):
            rank = communicator.rank
            values = numpy.arange(4.0 * SIZE) * (rank + 1)
            own = 6 * numpy.arange(4.0 * SIZE)[4 * rank : 4 * rank + 4]
            out = numpy.zeros(4)
            self.assertIs(communicator.reduce_scatter(values, out), out)
            self.assertEqual(out.tolist(), own.tolist())
            block = communicator.reduce_scatter(values)
            self.assertTrue(numpy.shares_memory(block, values))
            self.assertEqual(block.tolist(), own.tolist())

        on_threads(work)

    def test_all_gather(self):
        def work(communicator):
            rank = communicator.rank
            expected = [0, 0, 1, 1, 2, 2]
            out = numpy.zeros(2 * SIZE, dtype=numpy.int64)
            self.assertIs(communicator.all_gather(numpy.full(2, rank), out), out)
            self.assertEqual(out.tolist(), expected)
            whole = numpy.full(2 * SIZE, -1)
            whole[2 * rank : 2 * rank + 2] = rank
            communicator.all_gather(whole)
            self.assertEqual(whole.tolist(), expected)

        on_threads(work)

    def test_tensors(self):
        def work(communicator):
            values = numpy.arange(6, dtype=numpy.float32)
            tensor = Tensor(values)
            self.assertIs(communicator.all_reduce(tensor), tensor)
            self.assertEqual(values.tolist(), (3 * numpy.arange(6)).tolist())
            block = communicator.reduce_scatter(tensor)
            self.assertTrue(numpy.shares_memory(block.values, values))
            with self.assertRaisesRegex(gar.InvalidArgument, "not contiguous"):
                communicator.all_reduce(Tensor(numpy.zeros((4, 4))[:, 1]))
            with self.assertRaisesRegex(gar.InvalidArgument, "code 5"):
                communicator.all_reduce(Tensor(numpy.zeros(4, dtype=complex)))

        on_threads(work)

    def test_in_the_background(self):
        def work(communicator):
            values = numpy.ones(1000)
            out = numpy.zeros(1000 * SIZE)
            first = communicator.start_all_reduce(values)
            self.assertIs(first.wait(), values)
            second = communicator.start_all_gather(values, out)
            while not second.test():
                pass
            self.assertEqual(out.tolist(), [3.0] * (1000 * SIZE))
            block = communicator.start_reduce_scatter(out).wait()
            self.assertEqual(block.tolist(), [9.0] * 1000)
            # Nobody waits for this one: it ends with the communicator.
            communicator.start_all_reduce(numpy.ones(10))

        on_threads(work)

    def test_a_plan_and_a_network(self):
        plan = gar.plan("star:3", count=1000, algorithms="ring")

        def work(communicator):
            self.assertEqual(communicator.report(1000).algorithm, "ring")
            values = numpy.ones(1000)
            communicator.all_reduce(values)
            self.assertEqual(values.tolist(), [3.0] * 1000)

        on_threads(work, plan=plan)
        on_threads(lambda c: c.all_reduce(numpy.ones(10)), topology="star:3", reproducible=True)


class Memory(unittest.TestCase):
    def test_whatever_has_a_buffer(self):
        def work(communicator):
            rank = communicator.rank
            floats = array.array("f", [1, 2, 3])
            communicator.all_reduce(floats)
            self.assertEqual(floats.tolist(), [3, 6, 9])
            block = communicator.reduce_scatter(floats)
            self.assertEqual(block.tolist(), [9 * (rank + 1)])
            block[0] = 5.0  # a view
            self.assertEqual(floats[rank], 5.0)
            data = bytearray([1, 2, 4])
            communicator.all_reduce(memoryview(data), op="bor")
            self.assertEqual(list(data), [1, 2, 4])
            numbers = (ctypes.c_int32 * 2)(rank, 1)
            communicator.all_reduce(numbers)
            self.assertEqual(list(numbers), [3, 3])
            out = bytearray(SIZE)
            communicator.all_gather(bytes([rank]), out)
            self.assertEqual(list(out), [0, 1, 2])

        on_threads(work)

    def test_refusals(self):
        [communicator] = gar.Communicator.threads(1)

        def refused(words, *arguments, **options):
            with self.assertRaisesRegex(gar.InvalidArgument, words):
                communicator.all_reduce(*arguments, **options)

        refused("type list; expected a NumPy array", [1, 2])
        refused("cannot be written", b"abc")
        refused("not contiguous", memoryview(bytearray(8))[::2])
        refused("expected the same type", array.array("f", [1]), array.array("i", [1]))
        refused("expected as many elements", array.array("f", [1]), array.array("f", [1, 2]))
        refused("mean|average|accepted|sum", array.array("f", [1]), op="mean")
        refused("band|integer", array.array("f", [1]), op="band")
        refused("another size than bfloat16", array.array("f", [1]), dtype="bfloat16")
        if numpy is not None:
            refused("format 'Zd'", numpy.zeros(2, dtype=complex))
            refused("sum of bool", numpy.zeros(2, dtype=bool))
            refused("values", numpy.zeros(2, dtype="datetime64[s]"))
            refused("format '>f'", numpy.zeros(2, dtype=">f4"))
        with self.assertRaisesRegex(gar.InvalidArgument, "expected size times as many"):
            communicator.all_gather(bytearray(2), bytearray(3))
        communicator.close()
        self.assertTrue(communicator.closed)
        refused("is closed", array.array("f", [1]))

    def test_blocks_must_fit(self):
        communicators = gar.Communicator.threads(2)
        with self.assertRaisesRegex(gar.InvalidArgument, "3 elements; expected a multiple of the 2 ranks"):
            communicators[0].reduce_scatter(bytearray(3))


class Threads(unittest.TestCase):
    def test_others_go_on_while_one_waits(self):
        first, second = gar.Communicator.threads(2)
        is_back = threading.Event()

        def wait():
            first.barrier()
            is_back.set()

        thread = threading.Thread(target=wait)
        thread.start()
        for _ in range(100000):  # of this thread, while the other one is in the barrier
            pass
        self.assertFalse(is_back.is_set())
        second.barrier()
        thread.join()

    def test_two_threads_in_one_communicator_are_told(self):
        first, second = gar.Communicator.threads(2)

        def enter():
            while True:  # it may be this one that is told
                try:
                    return first.barrier()
                except gar.InvalidArgument:
                    pass

        thread = threading.Thread(target=enter)
        thread.start()
        said = None
        while said is None:
            try:
                first.report(1)
            except gar.InvalidArgument as error:
                said = str(error)
        second.barrier()
        thread.join()
        self.assertIn("in use by another thread", said)


def run_python(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


class Processes(unittest.TestCase):
    def test_by_name_rank_and_size(self):
        code = """
import array, sys, gar
with gar.Communicator(sys.argv[1], int(sys.argv[2]), 3) as communicator:
    values = array.array("d", [1.0, communicator.rank])
    communicator.all_reduce(values)
    print(communicator.rank, communicator.size, values.tolist())
"""
        name = unique_name("meet")
        done = [finish(process) for process in [run_python(code, name, rank) for rank in range(3)]]
        self.assertEqual(done, [(0, f"{rank} 3 [3.0, 3.0]\n", "") for rank in range(3)])

    def test_a_death_is_an_exception(self):
        code = """
import array, os, sys, gar
rank = int(sys.argv[2])
communicator = gar.Communicator(sys.argv[1], rank, 2)
communicator.barrier()
if rank == 1:
    os._exit(0)
try:
    communicator.all_reduce(array.array("f", [0.0] * 100000))
except gar.TransportError as error:
    print("TransportError:", error)
"""
        name = unique_name("death")
        first, second = [run_python(code, name, rank) for rank in range(2)]
        finish(second)
        _, out, err = finish(first)
        self.assertIn("TransportError:", out, err)
        self.assertIn("rank 1", out)

    def test_nobody_comes(self):
        with self.assertRaises(gar.TransportError):
            gar.Communicator(unique_name("alone"), 0, 2, timeout=0.2)

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_nothing_as_long_as_the_vector_is_allocated(self):
        # After the first call, the process may grow by a quarter of the vector, and no more: a copy is refused, and collectives are not.
        code = """
import resource, sys, threading, numpy, gar

BYTES = 64 << 20
def vector(value, parts=1):
    return numpy.full(BYTES // 4 // parts, value, dtype=numpy.float32)

def work(communicator, limited, done):
    whole, out, part = vector(1.0), vector(0.0), vector(0.0, parts=2)
    def collectives():
        communicator.all_reduce(whole, out)
        communicator.all_reduce(whole)
        communicator.reduce_scatter(whole, part)
        communicator.reduce_scatter(whole)
        communicator.all_gather(part, out)
        communicator.all_gather(whole)
    collectives()
    limited.wait()
    limited.wait()
    collectives()
    done.append(float(out[0]) == float(out[-1]))

limited, done = threading.Barrier(3), []
threads = [threading.Thread(target=work, args=[c, limited, done]) for c in gar.Communicator.threads(2)]
for thread in threads:
    thread.start()
limited.wait()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + BYTES // 4, resource.RLIM_INFINITY))
try:
    vector(0.0)
    print("the limit does not hold")
except MemoryError:
    pass
limited.wait()
for thread in threads:
    thread.join()
print("right", done)
"""
        code_, out, err = finish(run_python(code))
        self.assertEqual((code_, out, err), (0, "right [True, True]\n", ""))
