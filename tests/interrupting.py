"""Interrupts at every instruction: exceptions that arrive where Python would raise those of signals and of other threads."""

import ctypes
import signal
import sys
import threading
from functools import partial
from pathlib import Path

import kernling

HOME = str(Path(kernling.__file__).parent)
HOW = ("keyboard", "handler", "thread")  # Ctrl-C, a signal whose handler raises, an exception set by another thread
_api, _object = ctypes.pythonapi, ctypes.py_object
_signal = ctypes.PYFUNCTYPE(None, _object)(("PyErr_SetInterrupt", _api))
_raise = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, _object, _object)(("PyThreadState_SetAsyncExc", _api))


class Stop(Exception):
    """What signal handlers and other threads raise."""


class _Due:
    """Attributes that make an exception due in the main thread.

    Python raises what is due when a call ends, not when an attribute has been read: so the function that traces instructions is
    not interrupted itself, and the exception comes where it would have come if a signal had arrived at that instruction.
    """

    signal = property(_signal)
    thread = property(partial(_raise, threading.main_thread().ident, Stop))


def _handle(_number, _frame):
    raise Stop


class Interrupt:
    """Makes an exception due before an instruction, when that is reached for the first time.

    ``at`` is a member of ``seen``, the instructions of kernling's own functions that a call has executed; None: only look.
    """

    def __init__(self, at=None, how="handler"):
        self._at, self._how, self.seen = at, how, {}
        self.rows = None  # that a call of several compiled calls has learned when Ctrl-C stopped it between two of them

    def __call__(self, act):
        """Call a function; return whether it was interrupted."""
        usual = signal.signal(signal.SIGINT, _handle if self._how == "handler" else signal.default_int_handler)
        sys.settrace(self._enter)
        try:
            act()
            (lambda: None)()  # raises what is still due
        except (Stop, KeyboardInterrupt) as stop:
            self.rows = getattr(stop, "rows", None)
            return True
        finally:
            sys.settrace(None)
            self._check_handler(signal.signal(signal.SIGINT, usual))
        return False

    def _check_handler(self, left):
        """Ctrl-C works afterwards: a handler that was left behind by another exception raises, too."""
        if left not in (signal.default_int_handler, _handle):
            try:
                left(signal.SIGINT, sys._getframe())
            except KeyboardInterrupt:
                return
            raise AssertionError(f"Ctrl-C is lost after {self._at}")

    def _enter(self, frame, _event, _argument):
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, _argument):
        if event == "opcode":
            if self._at is None:
                self.seen[frame.f_code, frame.f_lasti] = None
            elif frame.f_lasti == self._at[1] and frame.f_code is self._at[0]:
                sys.settrace(None)  # the next call of this function would be interrupted itself
                if self._how == "thread":
                    _DUE.thread  # noqa: B018
                else:
                    _DUE.signal  # noqa: B018
        return self._step


_DUE = _Due()
