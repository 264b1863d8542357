"""Models for other programs: ONNX graphs, and plain JSON."""

from .description import Description, describe
from .to_onnx import to_onnx

__all__ = ["Description", "describe", "to_onnx"]
