"""Prometheus' text format."""

from __future__ import annotations

import pytest

from kcp.endpoints.metrics import DURATION_BUCKETS, Counter, Gauge, Histogram, Metrics

GET_CONFIGMAP = ("GET", "", "", "v1", "configmaps", "", "resource", "apiserver")


def text_of(metric: Counter | Gauge | Histogram) -> str:
    return "".join(metric.lines())


def test_a_counter() -> None:
    counter = Counter("requests_total", "How many.", ["verb", "path"])
    counter.add("GET", "/")
    counter.add("GET", "/", amount=2)
    counter.add("GET", 'a"b\\c\nd')
    assert text_of(counter) == (
        "# HELP requests_total How many.\n# TYPE requests_total counter\n"
        'requests_total{verb="GET",path="/"} 3\n'
        'requests_total{verb="GET",path="a\\"b\\\\c\\nd"} 1\n'
    )


def test_a_gauge() -> None:
    gauge = Gauge("open", "Open now.")
    gauge.add()
    gauge.add(amount=-0.5)
    assert text_of(gauge).endswith("\nopen 0.5\n")
    gauge.set(value=7)
    assert text_of(gauge).endswith("# TYPE open gauge\nopen 7\n")


def test_a_histogram() -> None:
    histogram = Histogram("seconds", "How long.", ["verb"], buckets=[0.1, 1])
    for seconds in (0.05, 0.1, 0.5, 5):
        histogram.observe("GET", value=seconds)
    assert text_of(histogram).splitlines()[2:] == [
        'seconds_bucket{verb="GET",le="0.1"} 2',
        'seconds_bucket{verb="GET",le="1"} 3',
        'seconds_bucket{verb="GET",le="+Inf"} 4',
        'seconds_sum{verb="GET"} 5.65',
        'seconds_count{verb="GET"} 4',
    ]


def test_a_histogram_without_labels() -> None:
    histogram = Histogram("seconds", "How long.", buckets=[1])
    histogram.observe(value=2)
    assert text_of(histogram).splitlines()[2:4] == ['seconds_bucket{le="1"} 0', 'seconds_bucket{le="+Inf"} 1']


def test_series_are_bounded_and_the_rest_is_counted_as_other() -> None:
    counter = Counter("requests_total", "How many.", ["resource"], max_series=2)
    for resource in ("a", "b", "c", "d", "a"):
        counter.add(resource)
    assert counter.series == {("a",): [2], ("b",): [1], ("other",): [2]}


def test_wrong_labels_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Counter("requests_total", "How many.", ["resource"]).add()


def test_a_request_is_counted_and_timed() -> None:
    metrics = Metrics()
    metrics.observe_request(GET_CONFIGMAP, 200, 0.01)
    metrics.observe_request(GET_CONFIGMAP, 200, 0.01)
    metrics.observe_request(GET_CONFIGMAP, 404, 100)
    labels = 'verb="GET",dry_run="",group="",version="v1",resource="configmaps",subresource="",scope="resource"'
    labels += ',component="apiserver"'
    lines = metrics.render().decode().splitlines()
    assert f'apiserver_request_total{{{labels},code="200"}} 2' in lines
    assert f'apiserver_request_total{{{labels},code="404"}} 1' in lines
    assert f'apiserver_request_duration_seconds_bucket{{{labels},le="0.025"}} 2' in lines
    assert f"apiserver_request_duration_seconds_count{{{labels}}} 3" in lines
    assert len(metrics.durations.series[GET_CONFIGMAP]) == len(DURATION_BUCKETS) + 2


def test_requests_for_endless_resources_are_bounded() -> None:
    metrics = Metrics()
    for number in range(6_000):
        metrics.observe_request(("GET", "", "", "v1", f"r{number}", "", "resource", "apiserver"), 200, 0.01)
    assert len(metrics.requests.series) == 5_001
    assert len(metrics._by_request) == 5_000
    assert metrics.requests.series[("other",) * 9] == [1_000]


def test_some_figures_are_looked_up_when_asked_for() -> None:
    metrics = Metrics()
    value = 1.0
    metrics.gauge("kcp_store_revision", "Revision.", lambda: {(): value})
    metrics.gauge("kinds", "By kind.", lambda: {("a",): 1, ("b",): 2}, ["kind"])
    value = 5.0
    text = metrics.render().decode()
    assert "\nkcp_store_revision 5\n" in text
    assert '\nkinds{kind="a"} 1\nkinds{kind="b"} 2\n' in text
