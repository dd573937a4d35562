"""Families of metrics that are made when a page is asked for, from their descriptions."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from speculative_operator.controller.metrics.described import Described


def gauge(of: Described) -> GaugeMetricFamily:
    """Without series yet."""
    return GaugeMetricFamily(of.name, of.meaning, labels=of.labels)


def counter(of: Described) -> CounterMetricFamily:
    """Without series yet."""
    return CounterMetricFamily(of.name, of.meaning, labels=of.labels)
