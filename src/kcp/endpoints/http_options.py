"""What can be tuned in how connections are served."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HTTPOptions:
    """Limits of one listening server. Times are seconds."""

    max_connections: int = 20_000
    """Connections at once, handshakes included. Above it newcomers wait in the kernel's queue."""

    max_handshakes: int = 1_024
    """Connections at once that have not finished their TLS handshake. Above it the oldest of them is dropped, so that
    clients that never finish cannot keep others out."""

    backlog: int = 4_096
    """Connections that the kernel holds for us while we are busy."""

    handshake_timeout: float = 10.0
    """For the TLS handshake."""

    shutdown_timeout: float = 1.0
    """For a client to confirm that a connection is closed. Many never do."""

    header_timeout: float = 32.0
    """For the head of a request, from its first byte (or from the handshake) on. Kubernetes' servers give 32 s."""

    body_timeout: float = 60.0
    """For a whole request, body included: as long as Kubernetes gives a request."""

    idle_timeout: float = 180.0
    """For a connection without a request. Longer than Go's clients keep one (90 s), so that they close first and
    no request meets a connection that is being closed."""

    write_timeout: float = 300.0
    """For a client to read what waits for it. One that reads nothing at all is dropped after `peer_timeout`."""

    peer_timeout: float = 45.0
    """For the other machine to acknowledge what was sent, or to answer a probe when nothing is."""

    max_header_bytes: int = 1 << 20
    """For the head of a request, and for the framing around its body. Go's limit."""

    write_buffer_bytes: int = 64 << 10
    """What may wait for a slow client before the response is paused: it bounds what a slow watcher costs."""

    sweep_interval: float = 1.0
    """Between looks at who is over a limit: limits are this exact."""

    drain_timeout: float = 60.0
    """For requests that are under way when the server is told to stop."""
