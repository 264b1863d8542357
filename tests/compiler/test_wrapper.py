"""Functions that Python calls without Numba: arguments, results, and what is refused."""

import gc
import sys
import threading
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pytest

from kernling.compiler import by_address
from kernling.compiler.decorators import COMPILED, Compiled, entry_point, jit
from kernling.compiler.kinds import Fields, kind_of, text_of

pytestmark = pytest.mark.skipif(not COMPILED, reason="there is no compiled code")


class Pair(NamedTuple):
    weight: float
    values: np.ndarray


class Record(NamedTuple):
    count: int
    inside: Pair


@jit
def summed(array, factor, count, flag):
    total = 0.0
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            total += array[i, j] * (i + 2 * j)
    return total * factor + count if flag else total


@jit
def weighted(pair, more=2.0):
    total = 0.0
    for i in range(pair.values.size):
        total += pair.weight * pair.values[i]
    return total + more


@jit
def of_record(record):
    return record.count + record.inside.weight * record.inside.values[1]


@jit
def nothing(array):
    array[0] += 1.0


@jit
def is_positive(number):
    return number > 0.0


@jit
def several(count):
    return count, 0.5 * count


@jit
def counted(count):
    return count + 1


ARRAY = np.arange(12.0).reshape(3, 4)
LAYOUTS = {
    "rows": ARRAY,
    "columns": np.asfortranarray(ARRAY),
    "view": np.arange(48.0).reshape(6, 8)[::2, 1::2],
    "backwards": ARRAY[::-1, ::-1],
    "float32": ARRAY.astype(np.float32),
    "integers": ARRAY.astype(np.int64),
    "read only": np.frombuffer(ARRAY.tobytes()).reshape(3, 4),
    "empty": ARRAY[:0],
    "one row": ARRAY[:1],
    "memory map": ARRAY.view(np.memmap),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_are_read_as_they_are(layout):
    array = LAYOUTS[layout]
    assert summed(array, 2.5, 7, True) == summed.py_func(array, 2.5, 7, True)
    assert summed(array, -1.0, -1, False) == summed.py_func(array, -1.0, -1, False)


def test_no_more_is_compiled_for_a_single_row_than_for_several():
    assert kind_of(ARRAY[:1]) == kind_of(ARRAY)
    assert kind_of(ARRAY[:, :1]) == kind_of(ARRAY[:, 1:2])


def test_numbers_of_other_types():
    assert summed(ARRAY, np.float64(2.0), np.int64(3), np.bool_(True)) == summed.py_func(ARRAY, 2.0, 3, True)
    assert summed(ARRAY, 2, True, 1) == summed.py_func(ARRAY, 2, 1, 1)


def test_records_by_value_and_by_address():
    pair = Pair(0.5, np.arange(5.0))
    assert weighted(pair) == 7.0
    assert weighted(pair, 3.0) == 8.0
    handle = by_address(Record(4, pair))
    assert of_record(handle) == 4.5
    assert entry_point(of_record, handle)(handle.address) == 4.5


def test_results():
    array = np.zeros(2)
    assert nothing(array) is None
    assert array[0] == 1.0
    assert is_positive(1.0) is True
    assert is_positive(-1.0) is False
    assert several(3) == (3, 1.5)
    assert type(counted(1)) is int
    assert counted(2**62) == 2**62 + 1


def test_what_is_no_argument_is_refused():
    summing, counting = entry_point(summed, ARRAY, 1.0, 1, True), entry_point(counted, 1)
    for wrong in ([[1.0]], None, 1.0, "text", np.float64(1.0)):
        with pytest.raises(TypeError, match="an array of 2 dimensions is required"):
            summing(wrong, 1.0, 1, True)
    with pytest.raises(TypeError, match="an array of 2 dimensions is required"):
        summing(ARRAY[0], 1.0, 1, True)
    with pytest.raises(TypeError, match="must be real number"):
        summing(ARRAY, "1", 1, True)
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError, match="integer"):
            counting(wrong)
    with pytest.raises(OverflowError):
        counting(2**63)
    with pytest.raises(TypeError, match="takes 1 arguments"):
        counting(1, 2)
    with pytest.raises(TypeError, match="takes 4 arguments"):
        summing(ARRAY, 1.0, 1)
    assert counting(-2) == -1  # -1 is not taken for an error


def test_an_error_in_the_truth_of_an_argument_is_passed_on():
    class Doubtful:
        def __bool__(self):
            raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        entry_point(summed, ARRAY, 1.0, 1, True)(ARRAY, 1.0, 1, Doubtful())


def test_references_are_given_back():
    pair, number, array = Pair(0.1234, np.arange(5.0)), 1e300, np.zeros(3)
    arguments = [(weighted, (pair, number)), (nothing, (array,)), (several, (10**9,)), (is_positive, (number,))]
    for function, given in arguments:
        function(*given)
        gc.collect()
        before, shared = [sys.getrefcount(one) for one in (*given, pair.values)], [sys.getrefcount(one) for one in (None, True)]
        for _ in range(1000):
            function(*given)
        assert [sys.getrefcount(one) for one in (*given, pair.values)] == before
        for one, count in zip((None, True), shared, strict=True):  # which all threads of this process refer to
            assert abs(sys.getrefcount(one) - count) < 10
        for _ in range(10):
            with pytest.raises(TypeError):
                function.entry(tuple(map(kind_of, given)))()


def test_threads_load_and_call_at_the_same_time():
    functions = [Compiled(summed.py_func, summed.owner, summed.kind, summed.options) for _ in range(4)]
    found = []

    def call(function):
        found.extend(function(ARRAY, 1.0, 0, False) for _ in range(50))

    threads = [threading.Thread(target=call, args=(function,)) for function in functions * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [summed.py_func(ARRAY, 1.0, 0, False)] * 400


def test_threads_that_compile_the_same_function_have_one_dispatcher(monkeypatch):
    """Two of them had overloads of their own, and one thread looked for its code in the other's."""
    from kernling.compiler import decorators, numba_backend

    function = Compiled(summed.py_func, summed.owner, summed.kind, summed.options)
    made, found, hide, both = [], [], numba_backend._hide_from_python, threading.Barrier(2)

    def wait_for_the_other(dispatcher):
        hide(dispatcher)
        made.append(dispatcher)
        with suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.5)

    monkeypatch.setattr(numba_backend, "_hide_from_python", wait_for_the_other)
    monkeypatch.setattr(decorators, "read_entry", lambda *_: None)  # as with an empty cache
    threads = [threading.Thread(target=lambda: found.append(function(ARRAY, 1.0, 0, False))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [summed.py_func(ARRAY, 1.0, 0, False)] * 2
    assert len(made) == 1


def test_kinds_have_different_texts():
    pair = Pair(0.5, np.arange(5.0))
    values = [1, 1.0, True, np.float32(1), ARRAY, ARRAY.T, ARRAY[0], ARRAY[:, 0], ARRAY.astype(np.float32), ARRAY.astype(">f8")]
    kinds = [kind_of(value) for value in [*values, pair, (1,), (1, 2), by_address(pair), by_address(Record(1, pair))]]
    assert len({text_of(kind) for kind in kinds}) == len(set(kinds)) == len(kinds)
    assert isinstance(kinds[-1], Fields)


def test_numbers_in_another_order_of_bytes_are_not_misread():
    with pytest.raises(Exception, match=">f8"):
        nothing(np.zeros(2, ">f8"))


@jit
def first(values, other):
    return values[0] + other[0]


@jit
def exchange_first(values, other):
    values[0], other[0] = other[0], values[0]


def both_kinds():
    """A writable array and an equal read-only one."""
    writable, frozen = np.array([2.0, 3.0]), np.array([2.0, 3.0])
    frozen.flags.writeable = False
    return writable, frozen


def test_code_for_read_only_arrays_accepts_writable_ones():
    writable, frozen = both_kinds()
    of_frozen = first.entry((kind_of(frozen), kind_of(writable)))
    assert first.entry((kind_of(writable), kind_of(writable))) is of_frozen
    assert first.entry((kind_of(frozen), kind_of(frozen))) is not of_frozen
    assert first(writable, writable) == first(frozen, writable) == first(frozen, frozen) == 4.0


def test_code_that_writes_to_an_array_does_not_accept_read_only_ones():
    writable, frozen = both_kinds()
    exchange_first(writable, np.ones(2))
    assert writable.tolist() == [1.0, 3.0]
    with pytest.raises(Exception, match=r"(?i)read.?only"):
        exchange_first(frozen, np.ones(2))
    assert frozen.tolist() == [2.0, 3.0]
