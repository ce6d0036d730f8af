"""Predicting the peak GPU memory of a stated run: values in, values out, no torch."""

from __future__ import annotations

from envdoctor.memory.analytic import predict
from envdoctor.memory.catalogue import find_shape
from envdoctor.memory.constants import Constants, read_constants
from envdoctor.memory.model_config import parse_shape, read_shape
from envdoctor.memory.run import Component, DeepSpeed, Prediction, ServingRun, TrainingRun
from envdoctor.memory.shape import ModelShape

__all__ = [
    "Component",
    "Constants",
    "DeepSpeed",
    "ModelShape",
    "Prediction",
    "ServingRun",
    "TrainingRun",
    "find_shape",
    "parse_shape",
    "predict",
    "read_constants",
    "read_shape",
]
