"""Replicas side by side in one number over one window: who is out of line, and by whose fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from speculative_operator.tuning.likeness import Distance, Measures, distance, middle


@dataclass(frozen=True, slots=True)
class Comparison:
    """`measures` by pod UID, and how far each is from the middle of those that are in line.

    said    those that were said to be out of line before; they are no measure for others
    usual   what replicas of this revision have shown before
    least   see `likeness.distance`
    faulty  those that show what no sound draft does
    fresh   those whose distance is explained by their age
    """

    measures: Mapping[str, Measures]
    said: frozenset[str]
    usual: Measures
    least: float
    faulty: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()

    def distances(self) -> dict[str, Distance]:
        """Of each replica that can be compared with another."""
        trusted = [each for uid, each in self.measures.items() if uid not in self.said]
        found = {}
        for uid, own in self.measures.items():
            others = trusted or self.measures.values()
            at = distance(own, middle(own, others), self.least)
            if at is not None:
                found[uid] = at
        return found if len(found) > 1 else {}

    def odd(self, distances: Mapping[str, Distance]) -> frozenset[str]:
        """Those out of line that are at fault: few against many, or else a draft that no sound one
        resembles, or else what departs from the usual while another does not."""
        trusted = distances.keys() - self.said
        apart = frozenset(uid for uid, at in distances.items() if at.ratio >= 1.0)
        if 2 * len(apart & trusted) < len(trusted):
            return apart - self.fresh
        faulty = self.faulty & trusted
        if faulty and faulty < trusted:
            return apart & (faulty | self.said)
        departing, in_line = self._by_the_usual(trusted)
        return apart & ((departing if in_line else frozenset()) | self.said) - self.fresh

    def _by_the_usual(self, trusted: set[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Those that depart from the usual, and those that do not."""
        against = {uid: distance(self.measures[uid], self.usual, self.least) for uid in trusted}
        ratios = {uid: at.ratio for uid, at in against.items() if at is not None}
        departing = frozenset(uid for uid, ratio in ratios.items() if ratio >= 1.0)
        return departing, frozenset(ratios) - departing
