# Written by python tests/stubs.py.

from .core.kernels import kernel as kernel
from .export import to_onnx as to_onnx
from .merging.models import merge as merge
from .methods.aogd import AOGDClassifier as AOGDClassifier
from .methods.aogd_metric import AOGDMetric as AOGDMetric
from .methods.aogd_rank import AOGDRanker as AOGDRanker
from .methods.auto import AutoClassifier as AutoClassifier
from .methods.auto import AutoRegressor as AutoRegressor
from .methods.avm import AVMClassifier as AVMClassifier
from .methods.avm import AVMRegressor as AVMRegressor
from .methods.dualsvrg import DualSVRGClassifier as DualSVRGClassifier
from .methods.dualsvrg import DualSVRGRegressor as DualSVRGRegressor
from .methods.krls import KRLSClassifier as KRLSClassifier
from .methods.krls import KRLSRegressor as KRLSRegressor
from .methods.polk import POLKClassifier as POLKClassifier
from .methods.polk import POLKRegressor as POLKRegressor
from .methods.spa import SPAClassifier as SPAClassifier
from .methods.spa import SPAOneClass as SPAOneClass
from .methods.spa import SPARegressor as SPARegressor
from .models import load as load
from .models import save as save
from .pipeline import StreamPipeline as StreamPipeline

__version__: str
