"""Models for other programs: ONNX graphs, and plain JSON."""

from .from_model import describe
from .json_file import to_json
from .onnx_file import to_onnx

__all__ = ["describe", "to_json", "to_onnx"]
