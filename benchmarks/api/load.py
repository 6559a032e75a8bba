"""Load from processes of its own, so that the server and what it is measured with do not share a core."""

from __future__ import annotations

import gc
import math
import multiprocessing
import select
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.api.target import BenchmarkFailed
from benchmarks.api.wire import Connection, ConnectionLost
from benchmarks.measure import Timed, latency_of, progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection as Pipe
    from multiprocessing.synchronize import Barrier

    from benchmarks.api.target import Target

Source = Callable[[Connection], bytes | None]
"""The next request for a connection, which still has its last answer; None when there are no more."""

_SILENCE_SECONDS = 60.0
_TOO_BUSY = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What clients do: each connection sends the next request as soon as it has the answer to its last."""

    make_source: Callable[[int, int], Source]
    """Of one client process: its number, and how many there are."""

    connections: int
    seconds: float = math.inf
    """When to stop, if the source does not end before."""

    warmup: float = 0.0
    """Seconds before the measurement begins."""

    items: int = 1
    """What one request counts for."""


class Sample(NamedTuple):
    """What one client process saw. Times are of the machine's monotonic clock, which all processes share."""

    began: float
    ended: float
    seconds: list[float]
    busy: float
    """The share of its time that the client worked itself; near 1, it is the client that was measured."""


def endless(requests: Sequence[bytes], worker: int = 0) -> Source:
    """The same requests over and over, each client beginning at another."""
    at = worker * 7919 % len(requests)

    def next_request(_: Connection) -> bytes:
        nonlocal at
        at = (at + 1) % len(requests)
        return requests[at]

    return next_request


def from_iterable(requests: Iterable[bytes]) -> Source:
    waiting: Iterator[bytes] = iter(requests)
    return lambda _: next(waiting, None)


def measure(target: Target, load: Load, clients: int = 1) -> Timed:
    """Run the load to its end. Raises BenchmarkFailed if any request fails."""
    clients = min(clients, load.connections)
    samples = _run_clients(target, load, clients)
    began, ended = max(sample.began for sample in samples), max(sample.ended for sample in samples)
    seconds = [each for sample in samples for each in sample.seconds]
    if not seconds:
        raise BenchmarkFailed("no request was answered in the time of the measurement")
    if max(sample.busy for sample in samples) > _TOO_BUSY:
        progress("the clients were busy all the time: the server could do more (try --clients, or more cores)")
    return Timed(len(seconds) * load.items / (ended - began), latency_of(seconds))


def _run_clients(target: Target, load: Load, clients: int) -> list[Sample]:
    fork = multiprocessing.get_context("fork")  # sources are closures, and the parent has no threads
    barrier = fork.Barrier(clients)
    pipes, processes = [], []
    for number in range(clients):
        receiver, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=_client, args=(target, load, (number, clients), barrier, sender), daemon=True)
        process.start()
        sender.close()
        pipes.append(receiver)
        processes.append(process)
    try:
        results = [_receive(pipe) for pipe in pipes]
    finally:
        for process in processes:
            process.terminate()
            process.join()
    failed = [result for result in results if isinstance(result, str)]
    if failed:
        raise BenchmarkFailed(f"{target.name}: {failed[0]}")
    return [result for result in results if isinstance(result, Sample)]


def _receive(pipe: Pipe) -> Sample | str:
    try:
        result: Sample | str = pipe.recv()
    except EOFError:
        return "a client process ended without a result"
    return result


def _client(target: Target, load: Load, place: tuple[int, int], barrier: Barrier, sender: Pipe) -> None:
    number, clients = place
    gc.disable()
    try:
        source = load.make_source(number, clients)
        share = len(range(number, load.connections, clients))
        connections = [Connection(target) for _ in range(share)]
        barrier.wait()
        sender.send(drive(connections, source, load))
    except (BenchmarkFailed, ConnectionLost) as error:
        barrier.abort()
        sender.send(f"{type(error).__name__} {error}")
    except Exception:
        barrier.abort()
        sender.send(traceback.format_exc())


def drive(connections: Sequence[Connection], source: Source, load: Load) -> Sample:
    """Keep every connection busy until the time is over or the source has no more."""
    clock = time.perf_counter
    poll = select.epoll()
    seconds: list[float] = []
    by_number = {connection.fileno: connection for connection in connections}
    start = ended = clock()
    work = time.process_time()
    began, until = start + load.warmup, start + load.warmup + load.seconds
    busy = 0
    for connection in connections:
        poll.register(connection.fileno, select.EPOLLIN)
        busy += _send_next(connection, source, start)
    while busy:
        ready = poll.poll(_SILENCE_SECONDS)
        if not ready:
            raise BenchmarkFailed(f"no answer within {_SILENCE_SECONDS:.0f} s")
        for number, _ in ready:
            connection = by_number[number]
            if not connection.receive():
                continue
            ended = clock()
            if connection.started >= began or load.warmup == 0.0:
                seconds.append(ended - connection.started)
            check_answer(connection)
            if ended >= until or not _send_next(connection, source, ended):
                busy -= 1
    poll.close()
    return Sample(began, ended, seconds, (time.process_time() - work) / max(ended - start, 1e-9))


def _send_next(connection: Connection, source: Source, now: float) -> bool:
    request = source(connection)
    if request is None:
        return False
    connection.started = now
    connection.send(request)
    return True


def check_answer(connection: Connection) -> None:
    answer = connection.answer
    if answer is not None and answer.status >= 300:
        raise BenchmarkFailed(f"answered {answer.status}: {answer.body[:400].decode(errors='replace')}")
