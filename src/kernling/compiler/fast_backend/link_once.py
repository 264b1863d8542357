"""Compilation without Numba's repeated work.

Numba optimises every function on its own, turns it into machine code, and does both again in every function that calls it,
since it links all code that a function may need into the library of that function.  Here a function is of one of two kinds.
A unit is compiled once; its callers find it by its symbol, as in any other compiled language.  A fragment becomes part of
its callers, and is never optimised nor turned into machine code by itself.

This relies on private classes of Numba for libraries and pipelines; numba_backend.py does without them if they are missing.
"""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace
from typing import Any

from llvmlite import binding, ir
from llvmlite.ir.values import FunctionAttributes
from numba import config as numba_config
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..loader import cannot_fail, wrappers
from ..private_parts import check
from ..progress import compiling

settings: Any = numba_config  # declared without its attributes
# By default LLVM uses half of each AVX-512 register of Intel's processors, since whole ones reduced the frequency of the first
# generation.  BLAS uses whole ones at every block anyway.  No effect on processors without AVX-512.
WIDEST = '"prefer-vector-width"="512"'
check("fast_backend")
if not issubclass(FunctionAttributes, set):
    raise ImportError("attributes of functions are not a set in this version of llvmlite")


class _Unit(JITCodeLibrary):
    """A library that is optimised once, in one run over the whole module."""

    def add_ir_module(self, ir_module):
        for function in ir_module.functions:
            if function.blocks:
                set.add(function.attributes, WIDEST)  # the class itself only accepts attributes without values
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        options = binding.create_pipeline_tuning_options(int(settings.OPT))
        options.loop_vectorization = bool(settings.LOOP_VECTORIZE)
        options.loop_unrolling = False  # loops on vectors are interleaved anyway; others would only be longer to compile
        builder = binding.create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)


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

    def _name(self):
        identity = self.state.func_id
        if hasattr(identity.func, "symbol_number"):  # instead of Numba's, which counts the functions of this process
            identity.unique_id = identity.func.symbol_number(self.state.args)
            identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        self.state.library = self._new_library()

    def _new_library(self):
        library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        library.enable_object_caching()
        return library

    def _compile_core(self):
        """Compile without garbage collection: there are many new objects, and few of them are garbage."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            with compiling.function():
                self._name()
                try:
                    return self._compile_directly()
                except Exception as error:  # not part of its language, or Numba is not as expected
                    compiling.fall_back(self.state.func_id.func_qualname, error)
                    self.state.library = self._new_library()
                    return super()._compile_core()
        finally:
            if collecting:
                gc.enable()

    def _compile_directly(self):
        """Compile without Numba's front end."""
        from numba.core.funcdesc import PythonFunctionDescriptor  # only compiling needs all this
        from numba.core.lowering import Environment

        from .ast_to_llvm import Front

        state = self.state
        context, flags, identity = state.targetctx, state.flags, state.func_id
        front = Front(identity.func, state.args, flags.fastmath.flags, context, is_part_of_callers)
        described = SimpleNamespace(func_id=identity, arg_names=identity.arg_names)
        kinds = {f"arg.{name}": kind for name, kind in zip(identity.arg_names, state.args, strict=True)}
        done = False
        while not done:
            description = PythonFunctionDescriptor.from_specialized_function(
                described, kinds, types.none, {}, context.mangler, flags.forceinline, False, [flags.get_mangle_string()]
            )
            module = state.library.create_ir_module(description.unique_name)
            context.declare_env_global(module, context.get_env_name(description))
            done = front.emit(context.declare_function(module, description))
        description.restype = front.result
        library = state.library
        for callee in front.libraries:
            library.add_linking_library(callee)
        library.add_ir_module(module)
        environment = Environment.from_fndesc(description)
        if not front.may_fail:
            cannot_fail.add(description.mangled_name)
        with context.push_code_library(library):
            if not flags.no_cpython_wrapper:
                self._wrap(description, environment)
            if not flags.no_cfunc_wrapper:
                self._wrap_for_c(description, environment)
        return self._compiled(description, environment)

    def _compiled(self, description, environment):
        """Let other functions call this one; return what a compiler of Numba returns."""
        from numba.core.compiler import compile_result
        from numba.core.typing import signature

        context, library = self.state.targetctx, self.state.library
        entry = context.get_executable(library, description, environment)
        context.insert_user_function(entry, description, [library])
        return compile_result(
            typing_context=self.state.typingctx,
            target_context=context,
            entry_point=entry,
            typing_error=None,
            type_annotation=None,
            library=library,
            call_helper=None,
            signature=signature(description.restype, *self.state.args),
            objectmode=False,
            lifted=(),
            fndesc=description,
            environment=environment,
            metadata={},
            reload_init=[],
        )

    def _wrap(self, description, environment):
        """Let Numba write the function that Python calls, unless ours is enough: it is written when Python calls it."""
        from numba.core.runtime import rtsys

        from .wrapper import can_wrap, name_of

        state, library = self.state, self.state.library
        if description.mangled_name in cannot_fail and can_wrap(description):
            wrappers[description.mangled_name] = name_of(description)
            return
        library.add_linking_library(rtsys.library)
        state.targetctx.create_cpython_wrapper(library, description, environment, None, release_gil=state.flags.release_gil)

    def _wrap_for_c(self, description, environment):
        """Write the function that is called by its address: Numba's would need Numba's runtime to print errors."""
        context, library = self.state.targetctx, self.state.library
        if description.mangled_name not in cannot_fail:
            context.create_cfunc_wrapper(library, description, environment, None)
            return
        module = context.create_module("c_wrapper")
        kinds, result = description.argtypes, description.restype
        callee = ir.Function(module, context.call_conv.get_function_type(result, kinds), description.llvm_func_name)
        outside = ir.FunctionType(context.get_value_type(result), [context.get_value_type(kind) for kind in kinds])
        function = ir.Function(module, outside, description.llvm_cfunc_wrapper_name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        _, value = context.call_conv.call_function(builder, callee, result, kinds, function.args, attrs=("noinline",))
        builder.ret(value)
        library.add_ir_module(module)
        wrappers[description.mangled_name] = function.name


class UnitCompiler(_Lean):
    """Compiles a function that is called by its symbol, or from Python."""

    library = _Unit


class InnerCompiler(_Lean):
    """Compiles a function that is called only by compiled code: a unit, unless a call would cost more than the function."""

    def _new_library(self):
        self.library = _Fragment if takes_arrays_by_value(self.state.args) else _Unit
        return super()._new_library()


def is_part_of_callers(compiled, arguments):
    """Return whether a function becomes part of those that call it with arguments of these types."""
    return compiled.kind == "fragment" or (compiled.kind == "unit" and takes_arrays_by_value(arguments))


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


COMPILERS = {"entry": UnitCompiler, "unit": InnerCompiler, "fragment": FragmentCompiler}


def wrapper_library(result):
    """Return the library of the function that Python calls instead of a compiled one."""
    from .wrapper import Wrapper

    context = cpu_target.target_context
    wrapper = Wrapper(context, result.fndesc)
    library = _Unit(context.codegen(), wrapper.module.name)
    library.enable_object_caching()
    library.add_linking_library(result.library)
    library.add_ir_module(wrapper.module)
    library.finalize()
    return library


@global_compiler_lock
def run_canary(function, values, n):
    """Compile a function of an array and an integer, without all that a lasting one needs; return what it returns."""
    from .ast_to_llvm import Front

    context, kinds, result, name = cpu_target.target_context, (types.float64[::1], types.int64), types.int64, "kernling_canary"
    cpu_target.typing_context.refresh()
    front = Front(function, kinds, set(), context, is_part_of_callers)
    module = context.create_module(name)
    if not front.emit(ir.Function(module, context.call_conv.get_function_type(result, kinds), name)):
        raise ValueError("a small program has other types than expected")
    library = _Unit(context.codegen(), name)
    library.add_ir_module(module)
    word, address = ctypes.c_int64, ctypes.c_void_p
    code = ctypes.CFUNCTYPE(ctypes.c_int32, address, address, address, address, word, word, address, word, word, word)
    returned, (length,), strides = word(), values.shape, values.strides
    data = values.__array_interface__["data"][0]
    code(library.get_pointer_to_function(name))(
        ctypes.addressof(returned), None, None, None, length, values.itemsize, data, length, *strides, n
    )
    return returned.value
