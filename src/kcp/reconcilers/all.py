"""Every controller that a server runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.reconcilers import (
    cluster_roles,
    custom_resource_definitions,
    event_expiry,
    garbage_collector,
    namespaces,
    quotas,
    service_accounts,
    token_secrets,
)

if TYPE_CHECKING:
    from kcp.controller.controller import AnyController
    from kcp.reconcilers.event_expiry import ExpiryOptions
    from kcp.reconcilers.token_secrets import Sign
    from kcp.registry.registry import Registry


def new_all(
    registry: Registry, *, sign_token: Sign, root_ca: bytes, expiry: ExpiryOptions | None = None
) -> tuple[AnyController, ...]:
    """`sign_token` makes tokens for Secrets; `root_ca` (PEM) is what clients trust the server by."""
    return (
        custom_resource_definitions.new(registry),
        service_accounts.new(registry),
        namespaces.new(registry),
        garbage_collector.new(registry),
        token_secrets.new(registry, sign_token, root_ca),
        quotas.new(registry),
        cluster_roles.new(registry),
        event_expiry.new(registry, expiry),
    )
