"""Health endpoints as Kubernetes prints them."""

from __future__ import annotations

import pytest

from kcp.endpoints.health import Health

NOSNIFF = (b"x-content-type-options", b"nosniff")


@pytest.fixture
def health() -> Health:
    health = Health()
    health.add("store", lambda: "")
    return health


@pytest.fixture
def ailing(health: Health) -> Health:
    health.add("shutdown", lambda: "process is shutting down", endpoints=["readyz"])
    return health


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/", "/livez/ping", "/readyz/store"])
def test_all_is_well(health: Health, path: str) -> None:
    report = health.respond(path, [])
    assert report is not None
    assert (report.code, report.text) == (200, "ok")


def test_verbose_names_the_checks(health: Health) -> None:
    report = health.respond("/livez", [("verbose", "")])
    assert report is not None
    assert report.text == "[+]ping ok\n[+]store ok\nlivez check passed\n"
    assert NOSNIFF in report.headers


def test_excluded_checks_are_not_run(ailing: Health) -> None:
    report = ailing.respond("/readyz", [("exclude", "shutdown"), ("verbose", "true")])
    assert report is not None
    assert (report.code, report.text) == (
        200,
        "[+]ping ok\n[+]store ok\n[+]shutdown excluded: ok\nreadyz check passed\n",
    )


def test_excluding_what_does_not_exist_is_a_warning(health: Health) -> None:
    query = [("exclude", "b"), ("exclude", "a"), ("exclude", "ping"), ("verbose", "")]
    report = health.respond("/healthz", query)
    assert report is not None
    assert report.text == (
        "[+]ping excluded: ok\n[+]store ok\n"
        'warn: some health checks cannot be excluded: no matches for "a","b"\nhealthz check passed\n'
    )


def test_a_failure_is_always_verbose_and_never_says_why(ailing: Health) -> None:
    report = ailing.respond("/readyz", [])
    assert report is not None
    assert (report.code, report.text) == (
        500,
        "[+]ping ok\n[+]store ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n",
    )
    alive = ailing.respond("/livez", [])
    assert alive is not None
    assert alive.code == 200


def test_a_single_check_says_why(ailing: Health) -> None:
    report = ailing.respond("/readyz/shutdown", [])
    assert report is not None
    assert (report.code, report.text) == (500, "internal server error: process is shutting down\n")


@pytest.mark.parametrize("path", ["/livez/shutdown", "/livez/no-such", "/version", "/"])
def test_there_is_nothing_else(ailing: Health, path: str) -> None:
    assert ailing.respond(path, []) is None
