"""Tokens of service accounts: what they say, and whether they are still good.

A token names the logical cluster of its service account in its signed header, under `cluster`: the claims are those of
Kubernetes and nothing else. Tokens with kcp's claim `clusterName` are understood as well.

Must not make objects; `kcp.auth.token_requests` does, for the TokenRequest API.
"""

from __future__ import annotations

import base64
import hmac
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.auth.identity import Identity, InvalidToken, intersect
from kcp.auth.rules import quote_list
from kcp.auth.service_accounts import make_groups, make_username, split_username
from kcp.auth.signing import KeyRing, Signed, read_unverified
from kcp.auth.tokens import digest_of
from kcp.auth.user import UserInfo
from kcp.meta import wellknown
from kcp.meta.clock import parse_time
from kcp.meta.names import make_uid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.auth.reader import Reader
    from kcp.meta.clock import Clock
    from kcp.meta.codec import Object

LEGACY_ISSUER: Final = "kubernetes/serviceaccount"

_CLUSTER_HEADER: Final = "cluster"
_CLUSTER_CLAIM: Final = "clusterName"
_LEGACY: Final = "kubernetes.io/serviceaccount/"
_INVALID_SINCE_LABEL: Final = "kubernetes.io/legacy-token-invalid-since"
_LEEWAY: Final = 60.0  # seconds by which clocks may differ
_MAX_KNOWN: Final = 8192  # tokens whose signature is remembered as good; about 2 KB each


class Bound(NamedTuple):
    """An object with whose end a token ends."""

    kind: str  # as in the claims: `secret`
    name: str
    uid: str


class _Known(NamedTuple):
    """A token with a good signature."""

    user: UserInfo
    foreign_user: UserInfo  # the same in any other logical cluster
    cluster: str
    namespace: str
    name: str
    audiences: tuple[str, ...]
    claims: Object


class ServiceAccountTokens:
    """Issues and checks tokens. Signatures are remembered, existence is looked up each time."""

    def __init__(
        self, keys: KeyRing, reader: Reader, clock: Clock, issuers: Sequence[str], api_audiences: Sequence[str] = ()
    ) -> None:
        """The first issuer is written into tokens, all are accepted; it is also the audience if none is given."""
        self._keys = keys
        self._reader = reader
        self._clock = clock
        self._issuer = issuers[0]
        self._issuers = frozenset(issuers)
        self.api_audiences = tuple(api_audiences) or (self._issuer,)
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def issue(
        self, cluster: str, service_account: Object, audiences: Sequence[str], seconds: int, bound: Bound | None = None
    ) -> str:
        """A token that ends with its time, its service account or the object that it is bound to."""
        metadata, now = service_account["metadata"], int(self._clock.now().timestamp())
        private: Object = {"namespace": metadata["namespace"]}
        if bound:
            private[bound.kind] = {"name": bound.name, "uid": bound.uid}
        private["serviceaccount"] = {"name": metadata["name"], "uid": metadata["uid"]}
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self._issuer,
            "jti": make_uid(),
            "kubernetes.io": private,
            "nbf": now,
            "sub": make_username(metadata["namespace"], metadata["name"]),
        }
        return self._keys.sign(claims, {_CLUSTER_HEADER: cluster})

    def issue_legacy(self, cluster: str, service_account: Object, secret: Object) -> str:
        """The token for a Secret of type kubernetes.io/service-account-token: without an end of its own."""
        metadata = service_account["metadata"]
        claims = {
            "iss": LEGACY_ISSUER,
            f"{_LEGACY}namespace": metadata["namespace"],
            f"{_LEGACY}secret.name": secret["metadata"]["name"],
            f"{_LEGACY}service-account.name": metadata["name"],
            f"{_LEGACY}service-account.uid": metadata["uid"],
            "sub": make_username(metadata["namespace"], metadata["name"]),
        }
        return self._keys.sign(claims, {_CLUSTER_HEADER: cluster})

    def authenticate_token(self, token: str, cluster: str, audiences: Sequence[str]) -> Identity | None:
        digest = digest_of(token)
        known = self._known.get(digest)
        if known is None:
            known = self._read(token)
            if known is None:
                return None
            self._known[digest] = known
            if len(self._known) > _MAX_KNOWN:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(digest)
        token_audiences = known.audiences or self.api_audiences
        good_for = intersect(token_audiences, audiences)
        if not good_for:
            shown = f"token audiences {quote_list(token_audiences)}"
            raise InvalidToken(f"{shown} is invalid for the target audiences {quote_list(audiences)}")
        if known.claims["iss"] == LEGACY_ISSUER:
            self._check_legacy(known, token)
        else:
            self._check(known)
        return Identity(known.user if cluster == known.cluster else known.foreign_user, good_for)

    def jwks(self) -> Object:
        return self._keys.jwks()

    def openid_configuration(self, jwks_uri: str) -> Object:
        """What a relying party needs in order to check our tokens (/.well-known/openid-configuration)."""
        return {
            "issuer": self._issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": self._keys.algorithms(),
        }

    def _read(self, token: str) -> _Known | None:
        """Check issuer, signature and form; None if it is not a token of ours."""
        claimed = read_unverified(token)
        issuer = claimed.claims.get("iss") if claimed else None
        if not isinstance(issuer, str) or (issuer != LEGACY_ISSUER and issuer not in self._issuers):
            return None
        try:
            signed = self._keys.verify(token)
        except ValueError as error:
            raise InvalidToken(str(error)) from error
        return _read_legacy(signed) if issuer == LEGACY_ISSUER else _read_bound(signed)

    def _check(self, known: _Known) -> None:
        now, claims = self._clock.now(), known.claims
        seconds = now.timestamp()
        if seconds + _LEEWAY < claims.get("nbf", 0):
            raise InvalidToken("service account token is not valid yet")
        if seconds - _LEEWAY > claims.get("exp", seconds):
            raise InvalidToken("service account token has expired")
        if seconds + _LEEWAY < claims.get("iat", 0):
            raise InvalidToken("service account token is issued in the future")
        deleted_before = now - timedelta(seconds=_LEEWAY)
        uid = self._check_service_account(known, "service account", deleted_before)
        if uid != known.user.uid:
            raise InvalidToken(f"service account UID ({uid}) does not match claim ({known.user.uid})")
        private = claims["kubernetes.io"]
        if "pod" in private or "node" in private:
            raise InvalidToken("service account token has been invalidated")
        ref = private.get("secret")
        if ref is not None:
            self._check_bound_secret(known, ref, deleted_before)

    def _check_bound_secret(self, known: _Known, ref: Object, deleted_before: datetime) -> None:
        secret = self._reader.get(known.cluster, "", "secrets", known.namespace, ref.get("name", ""))
        if secret is None or _was_deleted(secret, deleted_before):
            raise InvalidToken("service account token has been invalidated")
        uid, wanted = secret["metadata"].get("uid"), ref.get("uid", "")
        if uid != wanted:
            raise InvalidToken(f"secret UID ({uid}) does not match service account secret ref claim ({wanted})")

    def _check_legacy(self, known: _Known, token: str) -> None:
        place = f"{known.namespace}/{known.name}"
        name = known.claims[f"{_LEGACY}secret.name"]
        secret = self._reader.get(known.cluster, "", "secrets", known.namespace, name)
        if secret is None or secret["metadata"].get("deletionTimestamp"):
            raise InvalidToken("Token has been invalidated")
        stored = (secret.get("data") or {}).get("token", "")
        if not hmac.compare_digest(stored.encode(), base64.b64encode(token.encode())):
            raise InvalidToken("Token does not match server's copy")
        uid = self._check_service_account(known, "ServiceAccount", datetime.max.replace(tzinfo=UTC))
        if uid != known.user.uid:
            raise InvalidToken(f"ServiceAccount UID ({uid}) does not match claim ({known.user.uid})")
        if (secret["metadata"].get("labels") or {}).get(_INVALID_SINCE_LABEL):
            raise InvalidToken(
                f"the token in secret {known.namespace}/{name} for service account {place} has been marked invalid. "
                "Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
                f"'{_INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token"
            )

    def _check_service_account(self, known: _Known, title: str, deleted_before: datetime) -> str:
        """The uid of the service account of this name as it is now."""
        found = self._reader.get(known.cluster, "", "serviceaccounts", known.namespace, known.name)
        if found is None:
            raise InvalidToken(f'serviceaccounts "{known.name}" not found')
        if _was_deleted(found, deleted_before):
            raise InvalidToken(f"{title} {known.namespace}/{known.name} has been deleted")
        return str(found["metadata"].get("uid", ""))


def cluster_of_token(token: str) -> str | None:
    """The logical cluster that a service account's token names, for requests that do not name one in their URL.

    Nothing has been checked: it says only where to go and be checked.
    """
    claimed = read_unverified(token)
    return _cluster_of(claimed) or None if claimed else None


def _cluster_of(signed: Signed) -> str:
    private = signed.claims.get("kubernetes.io")
    candidates = (
        signed.header.get(_CLUSTER_HEADER),
        private.get(_CLUSTER_CLAIM) if isinstance(private, dict) else None,
        signed.claims.get(_LEGACY + _CLUSTER_CLAIM),
    )
    return next((found for found in candidates if found and isinstance(found, str)), "")


def _read_bound(signed: Signed) -> _Known:
    private = _mapping(signed.claims.get("kubernetes.io"))
    service_account = _mapping(private.get("serviceaccount"))
    place = _text(private.get("namespace")), _text(service_account.get("name"))
    return _make_known(signed, *place, _text(service_account.get("uid")))


def _read_legacy(signed: Signed) -> _Known:
    claims = signed.claims
    required = {
        "sub": _text(claims.get("sub")),
        "namespace": _text(claims.get(f"{_LEGACY}namespace")),
        "secretName": _text(claims.get(f"{_LEGACY}secret.name")),
        "serviceAccountName": _text(claims.get(f"{_LEGACY}service-account.name")),
        "serviceAccountUID": _text(claims.get(f"{_LEGACY}service-account.uid")),
    }
    for title, value in required.items():
        if not value:
            raise InvalidToken(f"{title} claim is missing")
    place = required["namespace"], required["serviceAccountName"]
    if split_username(required["sub"]) != place:
        raise InvalidToken("sub claim is invalid")
    return _make_known(signed, *place, required["serviceAccountUID"])


def _make_known(signed: Signed, namespace: str, name: str, uid: str) -> _Known:
    claims, cluster = signed.claims, _cluster_of(signed)
    if not cluster:
        raise InvalidToken("cluster is missing")
    extra: dict[str, tuple[str, ...]] = {wellknown.EXTRA_CLUSTER_NAME: (cluster,)}
    if claims.get("jti"):
        extra[wellknown.EXTRA_CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
    groups = (*make_groups(namespace), wellknown.GROUP_AUTHENTICATED)
    user = UserInfo(make_username(namespace, name), uid, groups, extra)
    foreign_user = UserInfo(user.name, uid, (*groups, wellknown.GROUP_CLUSTER_PREFIX + cluster), extra)
    audiences = claims.get("aud") or ()
    audiences = (audiences,) if isinstance(audiences, str) else tuple(audiences)
    return _Known(user, foreign_user, cluster, namespace, name, audiences, claims)


def _was_deleted(obj: Object, before: datetime) -> bool:
    deleted = obj["metadata"].get("deletionTimestamp")
    return bool(deleted) and parse_time(deleted) < before


def _mapping(value: Any) -> Object:  # noqa: ANN401 - whatever a claim may hold
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else ""
