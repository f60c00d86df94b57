"""Models in (torch, ONNX, MLIR), dispatches out."""

from tcl_iree.frontend.extract import Dispatch, Extraction, Untunable, extract
from tcl_iree.frontend.load import Model, load_model, read_payload

__all__ = ["Dispatch", "Extraction", "Model", "Untunable", "extract", "load_model", "read_payload"]
