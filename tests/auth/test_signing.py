"""Keys that sign and keys that verify."""

from __future__ import annotations

import base64
import json

import pytest

from kcp.auth import x509
from kcp.auth.signing import KeyRing, read_unverified

EC_KEY, RSA_KEY = x509.make_key(), x509.make_rsa_key()


def part(token: str, number: int) -> dict[str, object]:
    text = token.split(".")[number]
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def forge(header: object, payload: object, signature: bytes = b"x") -> str:
    texts = [json.dumps(header).encode(), json.dumps(payload).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(text).rstrip(b"=").decode() for text in texts)


@pytest.mark.parametrize(("key", "algorithm"), [(EC_KEY, "ES256"), (RSA_KEY, "RS256")], ids=["EC", "RSA"])
def test_what_is_signed_can_be_verified(key: bytes, algorithm: str) -> None:
    ring = KeyRing(key)
    token = ring.sign({"a": 1}, {"cluster": "c"})
    (jwk,) = ring.jwks()["keys"]
    assert part(token, 0) == {"alg": algorithm, "kid": jwk["kid"], "cluster": "c"}
    assert ring.verify(token).claims == {"a": 1}
    assert ring.verify(token).header["cluster"] == "c"
    assert ring.algorithms() == [algorithm]
    assert jwk["use"] == "sig"
    assert jwk["alg"] == algorithm
    assert "d" not in jwk
    assert "key_ops" not in jwk


def test_the_first_key_signs_and_all_verify() -> None:
    old = KeyRing(RSA_KEY)
    new = KeyRing(EC_KEY + RSA_KEY)
    public_only = KeyRing(EC_KEY, [RSA_KEY])
    token = old.sign({"a": 1})
    assert new.verify(token).claims == {"a": 1}
    assert public_only.verify(token).claims == {"a": 1}
    assert part(new.sign({}), 0)["alg"] == "ES256"
    assert len(new.jwks()["keys"]) == 2


def test_a_token_without_a_key_id_is_tried_with_all_keys() -> None:
    ring = KeyRing(EC_KEY, [RSA_KEY])
    token = KeyRing(RSA_KEY).sign({"a": 1}, {"kid": ""})
    assert ring.verify(token).claims == {"a": 1}


@pytest.mark.parametrize(
    ("token", "message"),
    [
        pytest.param(KeyRing(x509.make_key()).sign({}), "invalid signature, no keys found", id="unknown key"),
        pytest.param(forge({"alg": "none"}, {}), "invalid signature", id="no algorithm"),
        pytest.param(KeyRing(x509.make_key()).sign({}, {"kid": ""}), "invalid signature", id="wrong key"),
        pytest.param("x.y.z", "header", id="not a token"),
    ],
)
def test_others_are_refused(token: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KeyRing(EC_KEY).verify(token)


def test_a_changed_token_is_refused() -> None:
    ring = KeyRing(EC_KEY)
    header, _, signature = ring.sign({"a": 1}).split(".")
    payload = base64.urlsafe_b64encode(b'{"a":2}').rstrip(b"=").decode()
    with pytest.raises(ValueError, match="invalid signature"):
        ring.verify(f"{header}.{payload}.{signature}")


def test_a_public_key_is_no_shared_secret() -> None:
    ring = KeyRing(RSA_KEY)
    kid = ring.jwks()["keys"][0]["kid"]
    with pytest.raises(ValueError, match="invalid signature"):
        ring.verify(forge({"alg": "HS256", "kid": kid}, {"a": 1}))


def test_a_ring_without_a_private_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no private key"):
        KeyRing(b"")


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", "....", forge({"alg": "ES256"}, [1])])
def test_what_is_no_token_says_nothing(token: str) -> None:
    assert read_unverified(token) is None


def test_an_unverified_token_can_be_looked_into() -> None:
    found = read_unverified(forge({"alg": "ES256", "kid": "x"}, {"iss": "me", "exp": 1}))
    assert found is not None
    assert found.claims == {"iss": "me", "exp": 1}
