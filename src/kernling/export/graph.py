"""ONNX graphs, node by node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 21  # of ai.onnx, the only domain
IR_VERSION = 10  # that came with it


class Graph:
    """A graph that grows: values are known by name; numbers and arrays among the inputs of a node become constants.

    Those of floating point get the type ``dtype``, which may change on the way.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._count = 0

    def input(self, name: str, *shape: int | str, dtype: Any = None) -> str:
        """Return an input of this name; of floating point unless a type is given."""
        self._inputs[name] = helper.make_tensor_value_info(name, _type(dtype or self.dtype), shape)
        return name

    def output(self, name: str, value: str, *shape: int | str, dtype: Any = None) -> None:
        """Let a value come out under this name."""
        if name in self._inputs:
            raise ValueError(f"a column is called {name!r}, as an output of the graph is: rename it, and train the model again")
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs[name] = helper.make_tensor_value_info(name, _type(dtype or self.dtype), shape)

    def add(self, operator: str, *inputs: str | float | np.ndarray, **attributes: Any) -> str:
        """Add a node; returns the name of its one output."""
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        value = self._new_name()
        self._nodes.append(helper.make_node(operator, names, [value], **attributes))
        return value

    def cast(self, value: str, dtype: Any = None) -> str:
        """Return a value as another type; as floating point unless one is given."""
        return self.add("Cast", value, to=_type(dtype or self.dtype))

    def total(self, values: list[str]) -> str:
        """Return the sum of values."""
        return self.add("Sum", *values) if len(values) > 1 else values[0]

    def beside(self, values: list[str]) -> str:
        """Return tables side by side."""
        return self.add("Concat", *values, axis=1) if len(values) > 1 else values[0]

    def sine(self, angles: str) -> str:
        """Return the sine of angles."""
        return self.add("Sin", angles)

    def cosine(self, angles: str) -> str:
        """Return the cosine of angles; as a sine, since older versions of onnxruntime have no Cos in double precision."""
        return self.sine(self.add("Add", angles, 0.5 * math.pi))

    def model(self, name: str, producer: str, version: str) -> onnx.ModelProto:
        """Return the whole, once it has proved to be right."""
        graph = helper.make_graph(
            self._nodes, name, list(self._inputs.values()), list(self._outputs.values()), initializer=self._constants
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name=producer,
            producer_version=version,
        )
        onnx.checker.check_model(model)
        return model

    def _constant(self, value: float | np.ndarray) -> str:
        array, name = np.asarray(value), self._new_name()
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def _new_name(self) -> str:
        self._count += 1
        name = f"v{self._count}"
        return self._new_name() if name in self._inputs else name


def _type(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(object) if np.dtype(dtype).kind in "OU" else np.dtype(dtype))
