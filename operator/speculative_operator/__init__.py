"""A Kubernetes operator that serves models with speculative decoding, tuned by measurement."""

__version__ = "0.6.0"
