"""A Kubernetes operator that serves models with speculative decoding, tuned by measurement."""

__version__ = "0.1.0"
