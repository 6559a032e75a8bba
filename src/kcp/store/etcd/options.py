"""How to reach etcd: which endpoints, as whom, and how patiently.

Read by whoever configures a store; it must not import protobuf, so that a server without etcd does not pay for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

# etcd closes a connection that is pinged more often than its --grpc-keepalive-min-time, 5 s by default.
MIN_KEEPALIVE = 5.0


class Endpoint(NamedTuple):
    """One member's client address; prints as it was configured."""

    text: str
    target: str  # host:port
    tls: bool

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    """Where etcd is. Everything but `endpoints` has a default that suits a cluster in one data centre."""

    endpoints: tuple[str, ...]
    """Client URLs of the members, `http://host:port` or `https://host:port`; any one of them is enough to work.

    A bare `host:port` means https if `ca_file` or `cert_file` is given, otherwise http.
    """

    ca_file: str = ""
    """PEM file with the authority that signed the members' certificates. Empty: the public ones."""

    cert_file: str = ""
    """PEM file with the client certificate, for members that ask for one."""

    key_file: str = ""
    """PEM file with the private key of `cert_file`."""

    username: str = ""
    """User to log in as, if etcd's own authentication is enabled. Empty: no log-in."""

    password: str = field(default="", repr=False)
    """Password of `username`."""

    request_timeout: float = 10.0
    """Seconds for one request, all retries and changes of endpoint included.

    Longer than the 7 s that a member itself waits for its leader, so that the member's own answer is heard.
    """

    connect_timeout: float = 2.0
    """Seconds for one connection to be made, TLS included, before the next endpoint gets its turn."""

    keepalive: float = 6.0
    """Seconds of silence after which a member is pinged, while a request or watch is open. At least 5, as etcd asks."""

    keepalive_timeout: float = 4.0
    """Seconds for the ping's answer. Together with `keepalive`: how long a dead peer goes unnoticed, about 10 s."""

    backoff_min: float = 0.02
    """Seconds to wait, at most, before the first retry; doubled each time all endpoints have failed."""

    backoff_max: float = 1.0
    """Seconds that the wait between retries grows to."""

    def __post_init__(self) -> None:
        parse_endpoints(self)
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("an etcd client certificate needs both files: set cert_file and key_file, or neither")
        if self.password and not self.username:
            raise ValueError("an etcd password without a username: set both, or neither")
        for name in ("request_timeout", "connect_timeout", "keepalive_timeout", "backoff_min", "backoff_max"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is in seconds and must be greater than 0, not {getattr(self, name)}")
        if self.keepalive < MIN_KEEPALIVE:
            raise ValueError(
                f"keepalive must be at least {MIN_KEEPALIVE:g} seconds, not {self.keepalive:g}: "
                "etcd disconnects clients that ping it more often"
            )


def parse_endpoints(options: EtcdOptions) -> tuple[Endpoint, ...]:
    """The endpoints to try, in order. Raises ValueError for one that cannot be an address."""
    given: object = options.endpoints
    if isinstance(given, str) or not given:
        raise ValueError("endpoints must be a non-empty list of addresses such as http://127.0.0.1:2379")
    tls = bool(options.ca_file or options.cert_file)
    return tuple(parse_endpoint(text, tls=tls) for text in options.endpoints)


def parse_endpoint(text: str, *, tls: bool) -> Endpoint:
    """One endpoint; `tls` decides for an address without a scheme."""
    schemeless = "://" not in text
    url = urlsplit(f"//{text}" if schemeless else text)
    try:
        port = url.port
    except ValueError:
        port = None
    reason = ""
    if not schemeless and url.scheme not in ("http", "https"):
        reason = f"its scheme is {url.scheme!r}, not http or https"
    elif url.path not in ("", "/") or url.query or url.fragment or "@" in url.netloc:
        reason = "it has more than a host and a port"
    elif not url.hostname or any(character.isspace() for character in url.netloc):
        reason = "it has no host"
    elif not port:
        reason = "it has no port between 1 and 65535"
    if reason:
        raise ValueError(f"{text!r} is not an etcd endpoint: {reason}; write it as http://127.0.0.1:2379")
    return Endpoint(text, url.netloc, tls if schemeless else url.scheme == "https")
