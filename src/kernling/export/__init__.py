"""Models for other programs: ONNX graphs, and plain JSON."""

from .description import describe
from .to_json import to_json
from .to_onnx import to_onnx

__all__ = ["describe", "to_json", "to_onnx"]
