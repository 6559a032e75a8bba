"""ConfigMaps, Secrets, ServiceAccounts, Namespaces, Leases, Events."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth import x509
from kcp.auth.user import UserInfo
from kcp.registry.metadata import validate_new_object
from kcp.registry.strategies.builtin import BUILTIN
from kcp.registry.strategies.configmaps import decoded_length
from kcp.registry.strategies.events import to_core_event, to_new_event
from kcp.registry.strategies.pkcs10 import explain_certificates, explain_key_pair, explain_request
from kcp.registry.strategy import WriteContext

if TYPE_CHECKING:
    from kcp.meta.codec import Object

NOW = datetime(2025, 1, 1, tzinfo=UTC)
CONTEXT = WriteContext("root", UserInfo("jane"), NOW, lambda *_: True)
CONFIG_MAPS = BUILTIN["", "configmaps"]
SECRETS = BUILTIN["", "secrets"]
SERVICE_ACCOUNTS = BUILTIN["", "serviceaccounts"]
NAMESPACES = BUILTIN["", "namespaces"]
LEASES = BUILTIN["coordination.k8s.io", "leases"]
CORE_EVENTS = BUILTIN["", "events"]
EVENTS = BUILTIN["events.k8s.io", "events"]
FROZEN = "field is immutable when `immutable` is set"


def make(**fields: Any) -> Object:  # noqa: ANN401
    return {"metadata": {"name": "a", "namespace": "n"}, **fields}


def texts(errors: list[Any]) -> list[str]:
    return list(map(str, errors))


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("size", range(8))
def test_decoded_length(size: int) -> None:
    assert decoded_length(encode("x" * size)) == size


@pytest.mark.parametrize(
    ("fields", "complaints"),
    [
        pytest.param({"data": {"k": "v"}, "binaryData": {"b": "aGk="}}, [], id="valid"),
        pytest.param({"data": {"..": "v"}}, ["data[..]: Invalid value: \"..\": must not be '..'"], id="key"),
        pytest.param(
            {"data": {"k": "v"}, "binaryData": {"k": "aGk="}},
            ['data[k]: Invalid value: "k": duplicate of key present in binaryData'],
            id="key in both",
        ),
        pytest.param(
            {"data": {"k": "é" * (1 << 19)}, "binaryData": {"b": "aGk="}},
            ["[]: Too long: may not be more than 1048576 bytes"],
            id="too large together",
        ),
        pytest.param(
            {"binaryData": {"..": ""}}, ["binaryData[..]: Invalid value: \"..\": must not be '..'"], id="binary"
        ),
    ],
)
def test_config_map_content(fields: Object, complaints: list[str]) -> None:
    assert texts(CONFIG_MAPS.validate(make(**fields), CONTEXT)) == complaints


def test_immutable_config_map() -> None:
    old = make(data={"k": "v"}, immutable=True)
    assert CONFIG_MAPS.validate_update(make(data={"k": "v"}, immutable=True, binaryData={}), old, CONTEXT) == []
    assert texts(CONFIG_MAPS.validate_update(make(binaryData={"b": "aGk="}), old, CONTEXT)) == [
        f"immutable: Forbidden: {FROZEN}",
        f"data: Forbidden: {FROZEN}",
        f"binaryData: Forbidden: {FROZEN}",
    ]
    assert CONFIG_MAPS.validate_update(make(data={"k": "w"}), make(immutable=False), CONTEXT) == []


def test_finalizers_of_built_in_kinds_need_a_domain() -> None:
    obj = make()
    obj["metadata"]["finalizers"] = ["plain"]
    assert [error.field for error in CONFIG_MAPS.validate(obj, CONTEXT)] == ["metadata.finalizers[0]"]
    # Against the old object and as if it were new.
    assert [error.field for error in CONFIG_MAPS.validate_update(obj, make(), CONTEXT)] == 2 * [
        "metadata.finalizers[0]"
    ]
    webhooks = BUILTIN["admissionregistration.k8s.io", "mutatingwebhookconfigurations"]
    assert webhooks.validate(obj, CONTEXT) == []


def test_secret_string_data_becomes_data() -> None:
    secret = make(data={"k": "b2xk", "z": "eg=="}, stringData={"k": "v", "é": "é"})
    SECRETS.default(secret)
    assert secret["data"] == {"k": "dg==", "z": "eg==", "é": "w6k="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret
    plain = make(type="my.org/own")
    SECRETS.default(plain)
    assert plain == make(type="my.org/own")


@pytest.mark.parametrize(
    ("secret_type", "data", "complaints"),
    [
        ("Opaque", {"k": ""}, []),
        ("my.org/own", {}, []),
        ("Opaque", {"a b/..": ""}, ["data[a b/..]"]),
        ("kubernetes.io/tls", {}, ["data[tls.crt]", "data[tls.key]"]),
        ("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}, []),
        ("kubernetes.io/basic-auth", {}, ["data[username]", "data[password]"]),
        ("kubernetes.io/basic-auth", {"password": ""}, []),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]"]),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": "eA=="}, []),
        ("kubernetes.io/dockercfg", {}, ["data[.dockercfg]"]),
        ("kubernetes.io/dockercfg", {".dockercfg": "e30="}, []),
        ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/service-account-token", {}, ["metadata.annotations[kubernetes.io/service-account.name]"]),
    ],
)
def test_secret_types_ask_for_their_keys(secret_type: str, data: Object, complaints: list[str]) -> None:
    errors = SECRETS.validate(make(type=secret_type, data=data), CONTEXT)
    assert [error.field for error in errors] == complaints


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("not json", "invalid character 'o' in literal null (expecting 'u')"),
        ("", "unexpected end of JSON input"),
        ("[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ('"x"', "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ("1", "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ("true", "json: cannot unmarshal bool into Go value of type map[string]interface {}"),
        ("null", None),
        ("{}", None),
    ],
)
def test_docker_config_is_a_json_object(text: str, why: str | None) -> None:
    secret = make(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": encode(text)})
    shown = f'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": {why}'
    assert texts(SECRETS.validate(secret, CONTEXT)) == ([shown] if why else [])


def test_service_account_tokens_name_their_account() -> None:
    secret = make(type="kubernetes.io/service-account-token")
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "bot"}
    assert SECRETS.validate(secret, CONTEXT) == []


def test_secret_size() -> None:
    secret = make(type="Opaque", data={"k": encode("x" * (1 << 20)), "l": "eA=="})
    assert texts(SECRETS.validate(secret, CONTEXT)) == ["data: Too long: may not be more than 1048576 bytes"]


def test_secret_changes() -> None:
    old = make(type="Opaque", data={"k": "eA=="}, immutable=True)
    assert texts(SECRETS.validate_update(make(type="my.org/own", immutable=True), old, CONTEXT)) == [
        'type: Invalid value: "my.org/own": field is immutable',
        f"data: Forbidden: {FROZEN}",
    ]
    assert SECRETS.selectable_fields(old) == {"type": "Opaque"}


def pair(common_name: str = "x") -> tuple[bytes, bytes]:
    key = x509.make_key()
    return x509.make_ca(common_name, key, 1, NOW), key


def test_tls_secrets_warn_about_what_does_not_fit_together() -> None:
    certificate, key = pair()
    good = make(
        type="kubernetes.io/tls", data={"tls.crt": encode(certificate.decode()), "tls.key": encode(key.decode())}
    )
    assert SECRETS.warnings_on_create(good, CONTEXT) == []
    empty = make(type="kubernetes.io/tls", data={"tls.crt": "", "tls.key": ""})
    assert SECRETS.warnings_on_update(empty, good, CONTEXT) == ["tls: failed to find any PEM data in certificate input"]
    assert SECRETS.warnings_on_create(make(type="Opaque"), CONTEXT) == []


def test_key_pairs() -> None:
    certificate, key = pair()
    other = pair()[1]
    request = b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    broken_key = b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
    no_base64 = b"-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n"
    assert explain_key_pair(certificate, key) == ""
    assert explain_key_pair(key, key).endswith("PEM inputs may have been switched")
    assert explain_key_pair(request + key, key).endswith("types: [CERTIFICATE REQUEST PRIVATE KEY]")
    assert explain_key_pair(no_base64, key) == "tls: failed to find any PEM data in certificate input"
    assert explain_key_pair(certificate, b"") == "tls: failed to find any PEM data in key input"
    assert explain_key_pair(certificate, certificate).startswith("tls: found a certificate rather than a key")
    assert explain_key_pair(certificate, request).endswith("types: [CERTIFICATE REQUEST]")
    assert explain_key_pair(broken, key) == "x509: malformed certificate"
    assert explain_key_pair(certificate, broken_key) == "tls: failed to parse private key"
    assert explain_key_pair(certificate, other) == "tls: private key does not match public key"
    rsa_key = x509.make_rsa_key()
    assert explain_key_pair(certificate, rsa_key) == "tls: private key type does not match public key type"


def test_certificate_chains() -> None:
    certificate, key = pair()
    with_headers = certificate.replace(b"-----\n", b"-----\nProc-Type: 4\n\n", 1)
    assert explain_certificates(b"") == ""
    assert explain_certificates(b"remark\n" + certificate + certificate) == ""
    assert explain_certificates(b"remark") == "must contain at least one CERTIFICATE PEM block"
    assert explain_certificates(certificate + key) == 'only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"'
    assert explain_certificates(with_headers) == "no PEM block headers are permitted"
    assert explain_certificates(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----") != ""
    assert explain_request(certificate) == "PEM block type must be CERTIFICATE REQUEST"
    assert explain_request(b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----") != ""


def test_service_accounts_keep_only_names_of_secrets() -> None:
    account = make(secrets=[{"name": "s", "namespace": "x"}, {"kind": "Secret"}])
    SERVICE_ACCOUNTS.prepare_for_update(account, make(), CONTEXT)
    assert account["secrets"] == [{"name": "s"}, {}]
    plain = make()
    SERVICE_ACCOUNTS.prepare_for_create(plain, CONTEXT)
    assert plain == make()


def test_service_accounts_have_no_rules_of_their_own() -> None:
    assert SERVICE_ACCOUNTS.validate(make(), CONTEXT) == []
    assert SERVICE_ACCOUNTS.validate_update(make(), make(), CONTEXT) == []


def test_service_accounts_warn_about_a_deprecated_annotation_once() -> None:
    account = make()
    account["metadata"]["annotations"] = {"kubernetes.io/enforce-mountable-secrets": "true"}
    warnings = [
        "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]
    assert SERVICE_ACCOUNTS.warnings_on_create(account, CONTEXT) == warnings
    assert SERVICE_ACCOUNTS.warnings_on_update(account, make(), CONTEXT) == warnings
    assert SERVICE_ACCOUNTS.warnings_on_update(account, account, CONTEXT) == []
    assert SERVICE_ACCOUNTS.warnings_on_create(make(), CONTEXT) == []


def test_namespaces_are_labelled_active_and_held() -> None:
    namespace: Object = {"metadata": {"name": "a"}, "spec": {"finalizers": ["x.io/y"]}, "status": {"phase": "Odd"}}
    NAMESPACES.default(namespace)
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    NAMESPACES.prepare_for_create(namespace, CONTEXT)
    assert namespace["spec"] == {"finalizers": ["x.io/y", "kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}
    assert NAMESPACES.is_held(namespace)
    assert not NAMESPACES.is_held({"metadata": {}})
    NAMESPACES.mark_deleted(namespace)
    assert NAMESPACES.selectable_fields(namespace) == {"status.phase": "Terminating"}
    NAMESPACES.prepare_for_create(namespace, CONTEXT)
    assert namespace["spec"] == {"finalizers": ["x.io/y", "kubernetes"]}


def test_a_generated_namespace_name_is_labelled_and_a_wrong_one_is_not() -> None:
    namespace: Object = {"metadata": {"name": "gen-x"}}
    NAMESPACES.prepare_for_create(namespace, CONTEXT)
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "gen-x"}
    nameless: Object = {"metadata": {}}
    NAMESPACES.default(nameless)
    NAMESPACES.prepare_for_create(nameless, CONTEXT)
    assert nameless["metadata"] == {}


def test_namespace_finalizers() -> None:
    namespace: Object = {"metadata": {"name": "a"}, "spec": {"finalizers": ["plain"]}}
    why = 'Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified'
    assert texts(NAMESPACES.validate(namespace, CONTEXT)) == [f"spec.finalizers: {why}"]
    finalize = NAMESPACES.subresource("finalize")
    assert finalize is not None
    assert texts(finalize.validate_update(namespace, {"metadata": {}}, CONTEXT)) == [f"spec.finalizers[0]: {why}"]
    finalize.prepare_for_update(namespace, {"status": {"phase": "Active"}}, CONTEXT)
    assert namespace["status"] == {"phase": "Active"}


def test_namespace_spec_and_status_are_written_apart() -> None:
    old: Object = {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    new: Object = {"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Terminating"}}
    NAMESPACES.prepare_for_update(new, old, CONTEXT)
    assert new == old
    status = NAMESPACES.subresource("status")
    assert status is not None
    changed: Object = {"metadata": {"name": "a"}, "status": {"phase": "Terminating"}}
    status.prepare_for_update(changed, old, CONTEXT)
    assert changed["spec"] == old["spec"]
    why = "may only be 'Active' if `deletionTimestamp` is empty"
    assert texts(status.validate_update(changed, old, CONTEXT)) == [
        f'status.Phase: Invalid value: "Terminating": {why}'
    ]
    changed["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z"
    assert status.validate_update(changed, old, CONTEXT) == []
    changed["status"]["phase"] = "Active"
    assert [error.detail for error in status.validate_update(changed, old, CONTEXT)] == [
        "may only be 'Terminating' if `deletionTimestamp` is not empty"
    ]
    assert NAMESPACES.subresource("scale") is None


@pytest.mark.parametrize(("name", "is_valid"), [("a-1", True), ("a.b", False), ("A", False)])
def test_namespace_names_are_dns_labels(name: str, is_valid: bool) -> None:
    assert (NAMESPACES.check_name(name) == []) is is_valid


def test_leases() -> None:
    lease = make(spec={"leaseDurationSeconds": 0, "leaseTransitions": -1, "strategy": "x", "preferredHolder": "y"})
    LEASES.prepare_for_create(lease, CONTEXT)
    assert lease["spec"] == {"leaseDurationSeconds": 0, "leaseTransitions": -1}
    assert texts(LEASES.validate(lease, CONTEXT)) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]
    changed = make(spec={"strategy": "x", "preferredHolder": "y", "leaseTransitions": 0})
    LEASES.prepare_for_update(changed, make(spec={"strategy": "x"}), CONTEXT)
    assert changed["spec"] == {"strategy": "x", "leaseTransitions": 0}
    assert LEASES.validate_update(changed, lease, CONTEXT) == []
    assert LEASES.allow_create_on_update
    assert not LEASES.allow_unconditional_update


def event(**fields: Any) -> Object:  # noqa: ANN401
    return make(involvedObject={"kind": "ConfigMap", "namespace": "n", "name": "x"}, **fields)


def new_event(**fields: Any) -> Object:  # noqa: ANN401
    filled = {
        "regarding": {"kind": "ConfigMap", "namespace": "n", "name": "x"},
        "eventTime": "2001-01-01T00:00:00.000000Z",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "reportingController": "conf.test/c",
        "reportingInstance": "i",
    }
    return make(**(filled | fields))


MISMATCH = 'involvedObject.namespace: Invalid value: "{}": does not match event.namespace'


@pytest.mark.parametrize(
    ("namespace", "involved", "event_time", "is_valid"),
    [
        ("n", "n", None, True),
        ("n", "m", None, False),
        ("n", "", None, False),
        ("default", "", None, True),
        ("n", "m", "t", True),
        ("n", "", "t", False),
        ("kube-system", "", "t", True),
    ],
)
def test_events_live_beside_what_they_are_about(
    namespace: str, involved: str, event_time: str | None, is_valid: bool
) -> None:
    obj = event(eventTime=event_time, reportingComponent="c", reportingInstance="i", action="a", reason="r")
    obj["metadata"]["namespace"] = namespace
    obj["involvedObject"]["namespace"] = involved
    assert texts(CORE_EVENTS.validate(obj, CONTEXT)) == ([] if is_valid else [MISMATCH.format(involved)])


def test_reporters_introduce_themselves() -> None:
    obj = event(eventTime="t", message="m" * 1025, action="a" * 129)
    assert texts(CORE_EVENTS.validate_update(obj, obj, CONTEXT))[0] == "reportingComponent: Required value"
    assert [error.field for error in CORE_EVENTS.validate(obj, CONTEXT)] == [
        "reportingComponent",
        "reportingComponent",
        "reportingComponent",
        "reportingInstance",
        "action",
        "reason",
        "message",
    ]
    found = texts(CORE_EVENTS.validate_update_with_metadata(obj, obj, CONTEXT))
    assert 'action: Invalid value: "": can have at most 128 characters' in found


def test_new_events_are_checked_strictly() -> None:
    assert texts(EVENTS.validate(make(), CONTEXT)) == [
        MISMATCH.format(""),
        "eventTime: Required value",
        'type: Invalid value: "": has invalid value: ',
    ]
    assert EVENTS.validate(new_event(), CONTEXT) == []
    old_style = new_event(
        deprecatedCount=1, deprecatedFirstTimestamp="t", deprecatedLastTimestamp="t", deprecatedSource={"host": "h"}
    )
    assert texts(EVENTS.validate(old_style, CONTEXT)) == [
        f'{field}: Invalid value: "": needs to be unset'
        for field in ("firstTimestamp", "lastTimestamp", "count", "source")
    ]
    assert texts(EVENTS.validate(new_event(series={"count": 1, "lastObservedTime": None}), CONTEXT)) == [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
    ]


def test_new_events_change_only_their_series() -> None:
    series = {"count": 2, "lastObservedTime": "t"}
    assert EVENTS.validate_update(new_event(series=series), new_event(), CONTEXT) == []
    changed = new_event(reason="other", related={"kind": "Pod"}, deprecatedSource={"component": "c"})
    changed["regarding"] = {"kind": "Secret", "namespace": "n"}
    shown = '{"Kind":"Secret","Namespace":"n","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}'
    related = shown.replace("Secret", "Pod").replace('"n"', '""')
    assert texts(EVENTS.validate_update(changed, new_event(), CONTEXT)) == [
        f"involvedObject: Invalid value: {shown}: field is immutable",
        'reason: Invalid value: "other": field is immutable',
        'source: Invalid value: {"Component":"c","Host":""}: field is immutable',
        'reason: Invalid value: "other": field is immutable',
        f"related: Invalid value: {related}: field is immutable",
    ]
    back = EVENTS.validate_update(new_event(), new_event(related={"kind": "Pod"}), CONTEXT)
    assert texts(back) == ["related: Invalid value: null: field is immutable"]


def test_new_events_repeat_causes_of_metadata() -> None:
    old, new = new_event(), new_event()
    new["metadata"] = {**new["metadata"], "uid": "x", "resourceVersion": "1"}
    assert [error.field for error in EVENTS.validate_update_with_metadata(new, old, CONTEXT)] == ["metadata.uid"]


def test_metadata_of_events_comes_after_the_rules_of_old() -> None:
    obj = event()
    obj["metadata"] = {"name": "a/b", "namespace": "m"}
    found = validate_new_object(CORE_EVENTS, obj, CONTEXT, namespaced=True)
    assert [error.field for error in found] == ["involvedObject.namespace"]
    obj["metadata"]["namespace"] = "n"
    found = validate_new_object(CORE_EVENTS, obj, CONTEXT, namespaced=True)
    assert texts(found) == ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]
    new = new_event(regarding={})
    new["metadata"]["name"] = "A"
    found = validate_new_object(EVENTS, new, CONTEXT, namespaced=True)
    assert [error.field for error in found] == ["involvedObject.namespace", "metadata.name"]


def test_event_names() -> None:
    assert CORE_EVENTS.check_name("A b.:") == []
    assert CORE_EVENTS.check_generate_name("..") == []
    assert EVENTS.check_name("A") != []
    assert EVENTS.check_generate_name("a-") == []


def test_events_in_two_shapes() -> None:
    core = event(
        apiVersion="v1",
        message="hello",
        count=2,
        source={"component": "conf"},
        firstTimestamp="t",
        lastTimestamp="t",
        eventTime=None,
        reportingComponent="",
        reportingInstance="",
    )
    new = to_new_event(core)
    assert new == make(
        apiVersion="events.k8s.io/v1",
        note="hello",
        deprecatedCount=2,
        deprecatedSource={"component": "conf"},
        deprecatedFirstTimestamp="t",
        deprecatedLastTimestamp="t",
        eventTime=None,
        regarding=core["involvedObject"],
    )
    assert to_core_event(new) == core
    assert to_new_event(to_core_event(new_event()))["reportingController"] == "conf.test/c"


def test_events_are_selectable_by_what_they_are_about() -> None:
    core = event(reason="r", type="Normal", reportingComponent="c")
    found = CORE_EVENTS.selectable_fields(core)
    assert found["involvedObject.name"] == "x"
    assert (found["source"], found["reason"], found["type"]) == ("c", "r", "Normal")
    assert set(found) == set(CORE_EVENTS.field_labels)
    found = EVENTS.selectable_fields(new_event())
    assert found["regarding.name"] == "x"
    assert set(found) == set(EVENTS.field_labels)


def test_every_strategy_offers_the_fields_it_names() -> None:
    for strategy in BUILTIN.values():
        assert set(strategy.selectable_fields(make())) == set(strategy.field_labels)
        assert strategy.subresource("none") is None
