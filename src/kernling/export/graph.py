"""ONNX graphs, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 21  # of ai.onnx, the only domain
IR_VERSION = 10  # the version that introduced it


class Graph:
    """Builds a graph: values have names; numbers and arrays among the inputs of a node become constants.

    Floating-point constants have the type ``dtype``, which may be changed between nodes.  What is computed twice is one node.
    """

    def __init__(self, dtype: Any, prefix: str = "v") -> None:
        self._prefix = prefix  # of the names of values
        self.dtype = np.dtype(dtype)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._known: dict[tuple, tuple[str, ...]] = {}  # the outputs of nodes, and the constants
        self._count = 0

    def input(self, name: str, *shape: int | str, dtype: Any = None) -> str:
        """Add an input and return its name; its type is ``self.dtype`` by default."""
        self._inputs[name] = helper.make_tensor_value_info(name, _type(dtype or self.dtype), shape)
        return name

    def output(self, name: str, value: str, *shape: int | str, dtype: Any = None) -> None:
        """Add an output with this name; numbers are converted to its type, ``self.dtype`` by default."""
        if name in self._inputs:
            raise ValueError(f"the column {name!r} has the name of an output of the graph: rename it and train the model again")
        dtype = np.dtype(dtype or self.dtype)
        value = self.cast(value, dtype, given=self.dtype if dtype.kind == "f" else dtype)
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs[name] = helper.make_tensor_value_info(name, _type(dtype), shape)

    def add(self, operator: str, *inputs: str | float | np.ndarray, **attributes: Any) -> str:
        """Add a node, unless an equal one is there; return the name of its output."""
        return self._add(operator, inputs, 1, attributes)[0]

    def top(self, values: str, count: np.ndarray) -> tuple[str, ...]:
        """Return the largest values of each row and their places; of equal values, the first ones."""
        return self._add("TopK", (values, count), 2, {"axis": 1})

    def each_row(self, rows: str, width: int, count: int, compute: Callable[[Graph, str], str]) -> str:
        """Return a table whose rows, (1, count), are computed from rows, (width, 1), by a graph of its own."""
        name = self._new_name()
        inner = Graph(self.dtype, f"{name}_")
        column = inner.input(f"{name}_column", width, 1)
        inner.output(f"{name}_values", compute(inner, column), 1, count)
        columns = self.add("Unsqueeze", rows, np.array([2]))
        self._nodes.append(helper.make_node("Scan", [columns], [name], body=inner.body(name), num_scan_inputs=1))
        return self.add("Squeeze", name, np.array([1]))

    def cast(self, value: str, dtype: Any = None, given: Any = None) -> str:
        """Convert a value to another type, ``self.dtype`` by default; nothing is done if ``given``, its type, is the same."""
        dtype = np.dtype(dtype or self.dtype)
        return value if given is not None and np.dtype(given) == dtype else self.add("Cast", value, to=_type(dtype))

    def total(self, values: list[str]) -> str:
        """Return the sum of values."""
        return self.add("Sum", *values) if len(values) > 1 else values[0]

    def beside(self, values: list[str]) -> str:
        """Concatenate tables horizontally."""
        return self.add("Concat", *values, axis=1) if len(values) > 1 else values[0]

    def columns(self, values: str, chosen: np.ndarray) -> str:
        """Return the columns of a table that a mask chooses."""
        return values if chosen.all() else self.add("Gather", values, np.flatnonzero(chosen), axis=1)

    def sine(self, angles: str) -> str:
        """Return the sine of angles."""
        return self.add("Sin", angles)

    def cosine(self, angles: str) -> str:
        """Return the cosine of angles, as a sine: older versions of onnxruntime have no Cos in double precision."""
        return self.sine(self.add("Add", angles, 0.5 * math.pi))

    def body(self, name: str) -> onnx.GraphProto:
        """Return the graph."""
        return helper.make_graph(
            self._nodes, name, list(self._inputs.values()), list(self._outputs.values()), initializer=self._constants
        )

    def model(self, name: str, producer: str, version: str) -> onnx.ModelProto:
        """Return the model after checking it."""
        model = helper.make_model(
            self.body(name),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name=producer,
            producer_version=version,
        )
        onnx.checker.check_model(model)
        return model

    def _add(self, operator: str, inputs: tuple, outputs: int, attributes: dict[str, Any]) -> tuple[str, ...]:
        names = tuple(each if isinstance(each, str) else self._constant(each) for each in inputs)
        key = (operator, names, tuple(attributes.items()))
        if key not in self._known:
            self._known[key] = tuple(self._new_name() for _ in range(outputs))
            self._nodes.append(helper.make_node(operator, names, self._known[key], **attributes))
        return self._known[key]

    def _constant(self, value: float | np.ndarray) -> str:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        key = (array.dtype, array.shape, tuple(array.flat) if array.dtype.kind == "O" else array.tobytes())
        if key not in self._known:
            self._known[key] = (self._new_name(),)
            self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), self._known[key][0]))
        return self._known[key][0]

    def _new_name(self) -> str:
        self._count += 1
        name = f"{self._prefix}{self._count}"
        return self._new_name() if name in self._inputs else name


def _type(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(object) if np.dtype(dtype).kind in "OU" else np.dtype(dtype))
