"""Compilation without Numba's repeated work.

Numba optimises every function on its own, turns it into machine code, and does both again in every function that calls it,
since it links all code that a function may need into the library of that function.  Here a function is of one of two kinds.
A unit is compiled once; its callers find it by its symbol, as in any other compiled language.  A fragment becomes part of
its callers, and is never optimised nor turned into machine code by itself.

This relies on private classes of Numba for libraries and pipelines; jit.py does without them if they are not as expected.
"""

from __future__ import annotations

import gc
from types import SimpleNamespace

from numba.core import types
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import Compiler

from .compiling import compiling

_EXPECTED = {
    JITCodeLibrary: ("_optimize_functions", "_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"),
    CPUCodegen: ("_module_pass_manager",),
    Compiler: ("_compile_core", "define_pipelines"),
}
for _owner, _names in _EXPECTED.items():
    for _name in _names:
        if not hasattr(_owner, _name):
            raise ImportError(f"this version of Numba has no {_owner.__name__}.{_name}")


class _Unit(JITCodeLibrary):
    """A library that is optimised once, in one run over the whole module."""

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Fragment(_Unit):
    """A library that is only linked into others."""

    codegen = SimpleNamespace(set_env=lambda name, environment: None)  # there is no code that could use it

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


class _Lean(Compiler):
    library: type

    def define_pipelines(self):
        codegen, identity = self.state.targetctx.codegen(), self.state.func_id
        if hasattr(identity.func, "symbol_number"):  # instead of Numba's, which counts the functions of this process
            identity.unique_id = identity.func.symbol_number(self.state.args, codegen)
            identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        self.state.library = self.library(codegen, identity.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()

    def _compile_core(self):
        """Compile without garbage collection: there are many new objects, and few of them are garbage."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            with compiling.function():
                return super()._compile_core()
        finally:
            if collecting:
                gc.enable()


class UnitCompiler(_Lean):
    """Compiles a function that is called by its symbol, or from Python."""

    library = _Unit


class InnerCompiler(_Lean):
    """Compiles a function that is called only by compiled code: a unit, unless a call would cost more than the function."""

    def define_pipelines(self):
        self.library = _Fragment if takes_arrays_by_value(self.state.args) else _Unit
        return super().define_pipelines()


def takes_arrays_by_value(arguments):
    """Return whether a NamedTuple of arrays is among the types: a call would have to pass on hundreds of numbers."""
    return any(
        isinstance(kind, types.NamedTuple) and (_holds_array(kind) or takes_arrays_by_value(kind.types)) for kind in arguments
    )


def _holds_array(kind):
    return any(isinstance(one, types.Array) for one in kind.types)


class FragmentCompiler(_Lean):
    """Compiles a function that becomes part of its callers."""

    library = _Fragment
