"""The schedule of a compiled step, simulated: what runs when, what waits, and what communication costs."""

from hlorewrite.timeline.result import CollectiveExposure, StepTimeline, UnknownTime
from hlorewrite.timeline.simulate import simulate

__all__ = ["CollectiveExposure", "StepTimeline", "UnknownTime", "simulate"]
