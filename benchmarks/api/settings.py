"""How much the benchmarks of the API do, and what they should find."""

from __future__ import annotations

from dataclasses import dataclass, replace

# Twice what kube-apiserver 1.35 with etcd 3.5 did on a machine of two cores, TLS on, an admin's token: rates per
# second, milliseconds and mebibytes by the name of the row. A machine of another kind is better judged by --beside.
GOALS = {
    "get, 1 connection": 2 * 1_514,
    "get, 32 connections": 2 * 4_994,
    "list 500, 8 connections": 2 * 375,
    "list 500 as Table, 8 connections": 2 * 296,
    "list 5,000, 2 connections": 2 * 12.7,
    "list 50 of 5,000 by label, 8 connections": 2 * 696,
    "create, 1 connection": 2 * 806,
    "create, 32 connections": 2 * 2_526,
    "update, 8 connections": 2 * 1_234,
    "merge patch, 8 connections": 2 * 1_256,
    "apply, 8 connections": 2 * 1_025,
    "delete, 8 connections": 2 * 1_744,
    "watch fan-out, 50 watchers": 2 * 16_400,
    "watch fan-out, 500 watchers": 2 * 29_800,
    "watch start with 5,000 objects": 159 / 2,
    "80 % get, 10 % list 500, 10 % update, 32 connections": 2 * 1_938,
    "get custom resource, 32 connections": 2 * 1_519,
    "list 500 custom resources, 8 connections": 2 * 33,
    "create custom resource, 1 connection": 2 * 239,
    "create custom resource, 32 connections": 2 * 361,
    "patch custom resource, 8 connections": 2 * 286,
    "apply custom resource, 8 connections": 2 * 251,
    "CRD create until served": 34 / 2,
    "memory after all of it": 645 / 2,
    "start to ready": 2_000 / 2,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults take about four minutes for a server."""

    rounds: int = 3
    """Measurements of the same thing, of which the best counts; with two servers they take turns."""

    seconds: float = 2.0
    """How long one measurement takes, where it is not a number of requests."""

    warmup: float = 0.2
    """Seconds of load before it."""

    clients: int = 1
    """Processes that make load. More than one only helps where cores are free beside the server's."""

    small: int = 500
    """Objects in the namespace that is read and changed."""

    large: int = 5_000
    """Objects in the namespace of large lists."""

    labelled: int = 50
    """Those of them that a label selects."""

    deletes: int = 3_000
    fan_out_events: int = 100_000
    """Events to deliver in one measurement, to all watchers together."""

    fan_out_turns: int = 100
    """Events delivered one by one, for the time that one takes."""

    watch_starts: int = 5
    few_watchers: int = 50
    many_watchers: int = 500

    judged: bool = True
    """Whether results stand beside goals."""

    def shrunk(self) -> Settings:
        """Of the same shape, for a smoke run."""
        return replace(
            self,
            judged=False,
            rounds=1,
            seconds=0.2,
            warmup=0.05,
            small=50,
            large=200,
            labelled=5,
            deletes=50,
            fan_out_events=500,
            fan_out_turns=5,
            watch_starts=2,
            few_watchers=5,
            many_watchers=20,
        )
