"""CertificateSigningRequests."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth import x509
from kcp.auth.user import UserInfo
from kcp.meta.field import FieldPath
from kcp.registry.metadata import validate_changed_object, validate_new_object
from kcp.registry.strategies.builtin import BUILTIN
from kcp.registry.strategies.certificatesigningrequests import validate_signer_name
from kcp.registry.strategy import WriteContext

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.registry.strategy import Strategy

NOW = datetime(2025, 1, 1, tzinfo=UTC)
STAMP = "2025-01-01T00:00:00Z"
USER = UserInfo("jane", groups=("g",), extra={"scope": ("a",)})
CONTEXT = WriteContext("root", USER, NOW, lambda *_: True)
REQUESTS = BUILTIN["certificates.k8s.io", "certificatesigningrequests"]
# openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=bob
REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHIMHACAQAwDjEMMAoGA1UEAwwDYm9iMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEsdUGpCaIHHmUbnBz4Q1E5Tr0ndfN6qB+RkJt8t3qdpYAwZ25eGfJemXMq95i
iFXlD2XA9EBOjWUoRcadCZpKIqAAMAoGCCqGSM49BAMCA0gAMEUCIQDj7RHjNw31
+jekEtNKrOxyf4AtcsdDAMc0DwdHScC1UgIgfLE1JW34tqYklMwa0LDzsjo6GsKV
GGuheRjkVgTmVq8=
-----END CERTIFICATE REQUEST-----
"""
CERTIFICATE = base64.b64encode(x509.make_ca("x", x509.make_key(), 1, NOW)).decode()
CONDITIONS = "status.conditions"


def make(status: Object | None = None, **spec: Any) -> Object:  # noqa: ANN401
    filled = {
        "request": base64.b64encode(REQUEST.encode()).decode(),
        "signerName": "example.com/signer",
        "usages": ["client auth"],
    }
    metadata = {"name": "a", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": filled | spec, "status": status or {}}


def subresource(name: str) -> Strategy:
    found = REQUESTS.subresource(name)
    assert found is not None
    return found


def condition(kind: str, status: str = "True", **fields: Any) -> Object:  # noqa: ANN401
    return {"type": kind, "status": status, **fields}


def texts(errors: list[Any]) -> list[str]:
    return list(map(str, errors))


def test_the_server_writes_who_asks() -> None:
    obj = make({"certificate": "eA=="}, username="liar", uid="1", groups=["system:masters"], extra={"x": ["y"]})
    REQUESTS.prepare_for_create(obj, CONTEXT)
    assert obj["status"] == {}
    assert {name: value for name, value in obj["spec"].items() if name not in ("request", "signerName", "usages")} == {
        "username": "jane",
        "groups": ["g"],
        "extra": {"scope": ["a"]},
    }
    assert validate_new_object(REQUESTS, obj, CONTEXT, namespaced=False) == []
    assert REQUESTS.selectable_fields(obj) == {"spec.signerName": "example.com/signer"}


def test_what_was_asked_never_changes() -> None:
    old, new = make(), make({"certificate": "eA=="}, usages=["any"])
    REQUESTS.prepare_for_update(new, old, CONTEXT)
    assert new == old
    assert validate_changed_object(REQUESTS, new, old, CONTEXT, namespaced=False) == []
    new["metadata"] = {**new["metadata"], "name": "a/b"}
    found = validate_changed_object(REQUESTS, new, old, CONTEXT, namespaced=False)
    # By the rules for all kinds it fits into no path and is not the old one; the kind's own only says the latter.
    assert [error.detail for error in found] == ["may not contain '/'", "field is immutable", "field is immutable"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"request": None},
            ["spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST"],
            id="no request",
        ),
        pytest.param({"usages": None}, ["spec.usages: Required value"], id="no usages"),
        pytest.param(
            {"usages": ["signing", "signing"]}, ['spec.usages[1]: Duplicate value: "signing"'], id="repeated usage"
        ),
        pytest.param(
            {"signerName": "kubernetes.io/legacy-unknown"},
            [
                'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": '
                "the legacy signerName is not allowed via this API version"
            ],
            id="legacy signer",
        ),
        pytest.param(
            {"expirationSeconds": 599},
            [
                "spec.expirationSeconds: Invalid value: 599: "
                "may not specify a duration less than 600 seconds (10 minutes)"
            ],
            id="too short",
        ),
        pytest.param({"expirationSeconds": 600}, [], id="short"),
    ],
)
def test_requests_are_checked(spec: Object, expected: list[str]) -> None:
    assert texts(REQUESTS.validate(make(**spec), CONTEXT)) == expected


def test_unknown_usages_are_answered_with_the_known_ones() -> None:
    (found,) = texts(REQUESTS.validate(make(usages=["odd"]), CONTEXT))
    assert found.startswith('spec.usages[0]: Unsupported value: "odd": supported values: "any", "cert sign", ')
    assert found.endswith('"server auth", "signing", "timestamping"')


def test_names_only_have_to_fit_into_a_path() -> None:
    obj = make()
    obj["metadata"]["name"] = "A b/c"
    assert [error.field for error in validate_new_object(REQUESTS, obj, CONTEXT, namespaced=False)] == ["metadata.name"]
    assert REQUESTS.check_generate_name("..") == []
    assert REQUESTS.check_name("a%") == ["may not contain '%'"]
    # The rule for all kinds comes last, so that nothing is said about the name before the rest is right.
    obj["spec"]["usages"] = []
    assert [error.field for error in validate_new_object(REQUESTS, obj, CONTEXT, namespaced=False)] == ["spec.usages"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("example.com/a.b", []),
        ("", ["x: Required value"]),
        (
            "example.com",
            [
                'x: Invalid value: "example.com": '
                "must be a fully qualified domain and path of the form 'example.com/signer-name'"
            ],
        ),
        ("example/a", ['x: Invalid value: "example": should be a domain with at least two segments separated by dots']),
        ("Ex.com/a", ['x: Invalid value: "Ex.com": validating label "Ex": a lowercase RFC 1123 label must']),
        ("ex.com/a.B", ['x: Invalid value: "a.B": validating label "B": a lowercase RFC 1123 subdomain must']),
        (f"{'a.' * 127}a/b", ["x: Too long: may not be more than 253 bytes"]),
        (f"e.com/{'a.' * 300}a", ["x: Too long: may not be more than 571 bytes"]),
    ],
)
def test_signer_names(name: str, expected: list[str]) -> None:
    found = texts(validate_signer_name(name, FieldPath("x")))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def test_approval_sets_conditions_and_nothing_else() -> None:
    approval = subresource("approval")
    old = make({"certificate": CERTIFICATE})
    new = make({"conditions": [condition("Approved")]}, usages=["any"])
    approval.prepare_for_update(new, old, CONTEXT)
    assert new["spec"] == old["spec"]
    times = {"lastUpdateTime": STAMP, "lastTransitionTime": STAMP}
    assert new["status"] == {"certificate": CERTIFICATE, "conditions": [condition("Approved", **times)]}
    assert approval.validate_update(new, old, CONTEXT) == []
    plain = make()
    approval.prepare_for_update(plain, make(), CONTEXT)
    assert plain["status"] == {}


def test_decisions_stay() -> None:
    approval = subresource("approval")
    old = make({"conditions": [condition("Approved")]})
    assert texts(approval.validate_update(make(), old, CONTEXT)) == [
        f'{CONDITIONS}: Forbidden: updates may not remove a condition of type "Approved"'
    ]
    both = make({"conditions": [condition("Approved"), condition("Denied")]})
    assert texts(approval.validate_update(both, old, CONTEXT)) == [
        f'{CONDITIONS}: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    ]
    assert approval.validate_update(both, both, CONTEXT) == []


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([condition("", "True")], ["[0].type: Required value"]),
        ([condition("Mine", "")], ["[0].status: Required value"]),
        (
            [condition("Mine", "Odd")],
            ['[0].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"'],
        ),
        ([condition("Failed", "False")], ['[0].status: Unsupported value: "False": supported values: "True"']),
        ([condition("Mine"), condition("Mine")], ['[1].type: Duplicate value: "Mine"']),
    ],
    ids=["type", "no status", "status", "final ones are true", "repeated"],
)
def test_conditions(conditions: list[Object], expected: list[str]) -> None:
    obj = make({"conditions": conditions})
    assert texts(subresource("status").validate_update(obj, make(), CONTEXT)) == [
        CONDITIONS + text for text in expected
    ]
    if conditions[0]["type"] in ("", "Mine") and conditions[0]["status"] == "True":
        assert subresource("status").validate_update(obj, obj, CONTEXT) == []


def test_signers_set_the_certificate_once() -> None:
    status = subresource("status")
    signed = make({"certificate": CERTIFICATE})
    assert status.validate_update(signed, make(), CONTEXT) == []
    other = make({"certificate": base64.b64encode(x509.make_ca("y", x509.make_key(), 1, NOW)).decode()})
    assert texts(status.validate_update(other, signed, CONTEXT)) == [
        "status.certificate: Forbidden: updates may not modify existing certificate content"
    ]
    broken = make({"certificate": "eA=="})
    assert texts(status.validate_update(broken, make(), CONTEXT)) == [
        'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'
    ]
    assert texts(REQUESTS.validate_update(signed, make(), CONTEXT)) == [
        "status.certificate: Forbidden: updates may not set certificate content"
    ]


def test_signers_cannot_decide() -> None:
    status = subresource("status")
    decided = make({"conditions": [condition("Approved")]})
    assert texts(status.validate_update(decided, make(), CONTEXT)) == [
        f'{CONDITIONS}: Forbidden: updates may not add a condition of type "Approved"'
    ]


def test_signers_keep_decisions_and_times() -> None:
    status = subresource("status")
    approved = condition("Approved", reason="ok", lastUpdateTime="t", lastTransitionTime="t")
    mine = condition("Mine", lastUpdateTime="t", lastTransitionTime="t")
    old = make({"conditions": [approved, mine]})
    new = make({"conditions": [condition("Mine"), condition("Approved", reason="changed"), condition("New")]})
    status.prepare_for_update(new, old, CONTEXT)
    assert new["status"]["conditions"] == [
        condition("Mine", lastUpdateTime=STAMP, lastTransitionTime="t"),
        approved,
        condition("New", lastUpdateTime=STAMP, lastTransitionTime=STAMP),
    ]
    more = make({"conditions": [approved, approved]})
    status.prepare_for_update(more, old, CONTEXT)
    assert more["status"]["conditions"] == [approved, approved]


def test_what_was_stored_before_it_was_checked_may_stay() -> None:
    old = make({"certificate": "eA=="}, signerName="kubernetes.io/legacy-unknown", usages=["odd", "odd"])
    new = make({"certificate": "eQ=="}, signerName="kubernetes.io/legacy-unknown", usages=["odd", "odd"])
    assert texts(subresource("status").validate_update(new, old, CONTEXT)) == [
        "status.certificate: Forbidden: updates may not modify existing certificate content"
    ]
