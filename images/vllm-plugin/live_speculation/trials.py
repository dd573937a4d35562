"""Plays a schedule step by step: the table, and inside it the blocks of its trials.

A trial's cycle is a stretch of the table's own K, then a block at one arm; the stretch is so long
that blocks are `share` of the steps. The arms take turns; a round is one block of each. Only steps
whose batch size lies in the trial's range count, so a trial pauses while the load is elsewhere.
"""

from __future__ import annotations

from live_speculation.schedule import Schedule, Trial, dense


class Interleave:
    """One schedule in play.

    `lookup` is K by batch size (index 0 unused), changed in place as blocks begin and end: hand
    the same list to whoever picks K for a step, and call `stepped` after each step.
    """

    def __init__(self, schedule: Schedule, max_batch: int) -> None:
        self.schedule = schedule
        self.lookup = dense(schedule.table, max_batch)
        self._running = [_RunningTrial(trial, self.lookup, max_batch) for trial in schedule.trials]
        self._by_batch: list[_RunningTrial | None] = [None] * (max_batch + 1)
        for running in self._running:
            self._by_batch[running.low : running.end] = [running] * (running.end - running.low)

    def stepped(self, batch: int) -> None:
        """A step of `batch` requests was given out with the K that `lookup` held."""
        running = self._by_batch[batch]
        if running is None:
            return
        running.steps_left -= 1
        if running.steps_left <= 0 and not running.turn():
            self._by_batch[running.low : running.end] = [None] * (running.end - running.low)

    def stop(self) -> None:
        """Ends all trials at once; the table plays on."""
        for running in self._running:
            running.stop()
        self._by_batch = [None] * len(self._by_batch)

    def progress(self) -> list[tuple[tuple[int, int], int]]:
        """Each trial's batch range and the rounds it still has to finish."""
        return [(running.trial.batch, running.rounds_left) for running in self._running]


class _RunningTrial:
    """Where one trial stands. It owns the entries low … end-1 of the shared lookup."""

    def __init__(self, trial: Trial, lookup: list[int], max_batch: int) -> None:
        self.trial = trial
        self.low = min(trial.batch[0], max_batch + 1)
        self.end = min(trial.batch[1], max_batch) + 1
        self.rounds_left = trial.rounds
        self.steps_left = self._stretch = round(trial.block * (1 - trial.share) / trial.share)
        self._lookup = lookup
        self._table = lookup[self.low : self.end]
        self._next_arm = 0
        self._in_block = False
        if not self.steps_left:
            self.turn()

    def turn(self) -> bool:
        """Block to stretch or stretch to block; False once the last round is over."""
        if self._in_block:
            self._in_block = False
            self._next_arm += 1
            if self._next_arm == len(self.trial.arms):
                self._next_arm = 0
                self.rounds_left -= 1
            if not self.rounds_left:
                self.stop()
                return False
            if self._stretch:
                self.steps_left = self._stretch
                self._lookup[self.low : self.end] = self._table
                return True
        self._in_block = True
        self.steps_left = self.trial.block
        arm = self.trial.arms[self._next_arm]
        self._lookup[self.low : self.end] = [arm] * (self.end - self.low)
        return True

    def stop(self) -> None:
        self.rounds_left = 0
        self._lookup[self.low : self.end] = self._table
