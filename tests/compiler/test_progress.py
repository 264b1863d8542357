"""Compilation is counted, and told to those who show it."""

import pytest

from kernling.compiler.progress import Compiling


def test_nested_functions_are_counted_once_in_time_and_each_in_number():
    compiling, heard = Compiling(), []
    with compiling.heard_by(heard.append), compiling.function():
        with compiling.function():
            pass
        assert compiling.seconds == 0.0  # the outermost function counts the time of all
    assert compiling.functions == len(heard) == 2
    assert compiling.seconds > 0.0
    with compiling.function():
        pass
    assert len(heard) == 2  # nobody listens any more


def test_a_function_that_cannot_be_compiled_leaves_the_clock_right():
    compiling = Compiling()
    with pytest.raises(TypeError), compiling.function():
        raise TypeError
    before = compiling.seconds
    with compiling.function():
        pass
    assert before < compiling.seconds < before + 1.0
