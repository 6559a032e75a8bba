"""Signing and checking JSON web tokens with a ring of keys. The door to PyJWT; must not know what tokens say."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

import jwt
from jwt.algorithms import get_default_algorithms

from kcp.auth import x509

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jwt.types import Options

    from kcp.meta.codec import Object

# Claims are for the caller to judge, by its own clock.
_SIGNATURE_ONLY: Final[Options] = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


class Signed(NamedTuple):
    """A token whose signature is good."""

    header: Object
    claims: Object


class _PublicKey(NamedTuple):
    key: x509.PublicKey
    algorithm: str
    key_id: str


class KeyRing:
    """Keys for tokens: the first private key signs, the public halves of all of them verify.

    To change keys, put the new one first and keep the old one until the last token that it signed has expired.
    """

    def __init__(self, signing_key_pem: bytes, verification_keys_pem: Iterable[bytes] = ()) -> None:
        """Raises ValueError if there is no RSA or ECDSA key to sign with."""
        private_keys = x509.load_private_keys(signing_key_pem)
        if not private_keys:
            raise ValueError("there is no private key to sign tokens with")
        self._private_key = private_keys[0]
        found = [key for pem in (signing_key_pem, *verification_keys_pem) for key in x509.load_public_keys(pem)]
        by_id = {key.key_id: key for key in map(_describe, found)}
        self._public_keys = by_id
        self._signer = _describe(self._private_key.public_key())

    def sign(self, claims: Object, header: Object | None = None) -> str:
        # Kubernetes' tokens have no `typ`, which an empty text leaves out.
        headers = {"typ": "", "kid": self._signer.key_id, **(header or {})}
        return jwt.encode(claims, self._private_key, self._signer.algorithm, headers=headers)

    def verify(self, token: str) -> Signed:
        """The content of a token that one of the keys has signed. Raises ValueError for any other."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            candidates = list(self._public_keys.values()) if not key_id else [self._public_keys[key_id]]
        except KeyError:
            raise ValueError("invalid signature, no keys found") from None
        except jwt.PyJWTError as error:
            raise ValueError(str(error)) from error
        for candidate in candidates:
            try:
                found = jwt.decode_complete(token, candidate.key, [candidate.algorithm], options=_SIGNATURE_ONLY)
            except jwt.PyJWTError:
                continue
            return Signed(found["header"], found["payload"])
        raise ValueError("invalid signature")

    def jwks(self) -> Object:
        """The public keys as a JSON Web Key Set."""
        return {"keys": [_to_jwk(key) for key in self._public_keys.values()]}

    def algorithms(self) -> list[str]:
        return sorted({key.algorithm for key in self._public_keys.values()})


def read_unverified(token: str) -> Signed | None:
    """What a token says about itself, to be believed by nobody; None if it is not a token of this kind."""
    if token.count(".") != 2:
        return None
    try:
        found = jwt.decode_complete(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        return None
    return Signed(found["header"], found["payload"])


def _describe(key: x509.PublicKey) -> _PublicKey:
    digest = hashlib.sha256(x509.public_key_der(key)).digest()
    key_id = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return _PublicKey(key, x509.signature_algorithm(key), key_id)


def _to_jwk(key: _PublicKey) -> Object:
    described: Object = get_default_algorithms()[key.algorithm].to_jwk(key.key, as_dict=True)
    described.pop("key_ops", None)
    return {"use": "sig", "kid": key.key_id, "alg": key.algorithm, **described}
