"""All parts of Numba, llvmlite, NumPy and CPython that are used here and that their authors may change without notice.

A test finds any other.  What can be looked up is looked up before it is needed, so a change leads to what is written here
instead of an error in the middle of compiling.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple


class Parts(NamedTuple):
    """Parts that are used for one purpose."""

    why: str
    without: str  # what happens if they change
    names: tuple[str, ...]  # a module and a name in it, which may have attributes
    attributes: tuple[str, ...] = ()  # of objects that exist only while something is compiled


PARTS = {
    "fast_backend": Parts(
        "functions are translated directly to LLVM, compiled once, and called by their symbols",
        "Numba compiles alone, after one warning",
        (
            "llvmlite.ir.values:FunctionAttributes.add",
            "numba.core.codegen:JITCodeLibrary._finalize_dynamic_globals",
            "numba.core.codegen:JITCodeLibrary._finalize_final_module",
            "numba.core.codegen:JITCodeLibrary._optimize_final_module",
            "numba.core.codegen:JITCodeLibrary._optimize_functions",
            "numba.core.codegen:JITCodeLibrary.add_ir_module",
            "numba.core.compiler:Compiler._compile_core",
            "numba.core.compiler:Compiler.define_pipelines",
            "numba.core.compiler:compile_result",
            "numba.core.compiler_lock:global_compiler_lock",
            "numba.core.funcdesc:PythonFunctionDescriptor.from_specialized_function",
            "numba.core.lowering:Environment.from_fndesc",
            "numba.core.registry:cpu_target",
            "numba.core.runtime:rtsys",
            "numba.core.typing:signature",
        ),
        ("_codegen", "_data_layout", "_final_module", "_finalized", "_tm"),
    ),
    "records": Parts(
        "Numba learns about records by address, beyond what numba.extending offers",
        "compiling is an error that names the versions that were tested; code in the cache still runs",
        (
            "numba.core.typeconv:Conversion.safe",
            "numba.core.typing.templates:AttributeTemplate",
            "numba.core:cgutils.unpack_tuple",
            "numba.core:types.Array",
            "numba.np.arrayobj:populate_array",
            "numba.np.numpy_support:from_dtype",
        ),
        ("_getvalue", "_numba_type_"),
    ),
    "cache": Parts(
        "machine code that Numba has finished is saved, and loaded again",
        "every process compiles for itself",
        (
            "numba.core.caching:CompileResultCacheImpl.reduce",
            "numba.core.compiler:CompileResult._rebuild",
            "numba.core.compiler:Compiler.compile_extra",
            "numba.core.serialize:dumps",
        ),
        ("_cache", "_compile_for_args", "_engine", "_ensure_finalized", "_shared_module"),
    ),
}
LAYOUTS = {
    "numpy": """
        An array begins with the head of an object, then its address, dimensions, shape and strides (fast_backend/wrapper.py).
        Checked with an array before the first wrapper is written; otherwise Numba writes them, and is imported at every start.
    """,
    "cpython": """
        id() is the address of an object, whose head ends with the address of its type (fast_backend/wrapper.py, loader.py).
        Checked together with NumPy's.
    """,
}


def check(purpose: str) -> None:
    """Raise ImportError if one of the parts for a purpose is missing."""
    for name in PARTS[purpose].names:
        module, _, path = name.partition(":")
        found = import_module(module)
        for attribute in path.split("."):
            if not hasattr(found, attribute):
                raise ImportError(f"the installed version has no {module}.{path}")
            found = getattr(found, attribute)
