"""The generated table of messages and the script that makes it."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kcp.endpoints.protobuf_encode import encoder_for
from kcp.endpoints.protobuf_wire import load_table

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parent.parent.parent

GO_SOURCE = """
type Secret struct {
	metav1.TypeMeta `json:",inline"`
	// Standard metadata.
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	Type SecretType `json:"type,omitempty" protobuf:"bytes,3,opt,name=type"`
	Immutable *bool `json:"immutable,omitempty" protobuf:"varint,5,opt,name=immutable"`
	Odd int `json:"odd" protobuf:"varint,6,opt,name=odd"`
	When metav1.Time `json:"when,omitempty" protobuf:"bytes,7,opt,name=when"`
	Words Verbs `json:"words" protobuf:"bytes,8,opt,name=words"`
	Rule `json:",inline" protobuf:"bytes,9,opt,name=rule"`
	Sizes ResourceList `json:"sizes" protobuf:"bytes,10,rep,name=sizes"`
	Parts []Rule `json:"parts" protobuf:"bytes,11,rep,name=parts"`
}

type Rule struct {
	Verb string `protobuf:"bytes,1,opt,name=verb"`
}
"""


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    for name in ("gen_data", "gen_protobuf"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import gen_protobuf  # type: ignore[import-not-found, unused-ignore]

    module: ModuleType = gen_protobuf
    return module


def test_the_table_is_made_of_fields_and_struct_tags(generator: ModuleType) -> None:
    core, meta = "k8s.io.api.core.v1", "k8s.io.apimachinery.pkg.apis.meta.v1"
    fields = {
        f"{core}.Pod": [[1, "metadata", f"{meta}.ObjectMeta"]],
        f"{core}.Rule": [[1, "verb", "string"]],
        f"{core}.Secret": [
            [1, "metadata", f"{meta}.ObjectMeta"],
            [3, "type", "string"],
            [5, "immutable", "bool"],
            [6, "odd", "int64"],
            [7, "when", f"{meta}.Time"],
            [8, "words", f"{meta}.Verbs"],
            [9, "rule", "Rule"],
            [10, "sizes", "map<string,.k8s.io.apimachinery.pkg.api.resource.Quantity>"],
            [11, "parts", "[]Rule"],
        ],
        f"{meta}.ObjectMeta": [],
    }
    tags = {f"{core}.{struct}": found for struct, found in generator.parse_tags(GO_SOURCE).items()}
    assert generator.make_table(fields, {**tags, f"{meta}.ObjectMeta": {}}) == {
        "kinds": {"v1/Secret": "core.v1.Secret"},
        "messages": {
            "core.v1.Rule": [[1, "-", "string"]],
            "core.v1.Secret": [
                [1, "metadata", "meta.v1.ObjectMeta"],
                [3, "type", "?string"],
                [5, "immutable", "*bool"],
                [6, "odd", "int64"],
                [7, "when", "?time"],
                [8, "words", "*strings"],
                [9, "", "core.v1.Rule"],
                [10, "sizes", "map[string]quantity"],
                [11, "parts", "[]core.v1.Rule"],
            ],
            "meta.v1.ObjectMeta": [],
        },
    }


@pytest.mark.parametrize("name", ["zz_protobuf.json", "zz_columns.json"])
def test_the_generated_data_was_not_edited(name: str) -> None:
    content: dict[str, Any] = json.loads((ROOT / "src" / "kcp" / "apis" / "data" / name).read_text())
    banner = content.pop("//")
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    assert banner.endswith(f"sha256:{digest}")


def test_every_kind_can_be_empty() -> None:
    kinds, messages = load_table()
    for message in kinds.values():
        assert message in messages
        assert isinstance(encoder_for(message)({}), bytes)


def test_inlined_messages_are_the_last_field_of_theirs() -> None:
    # The encoder writes them after all others.
    for fields in load_table()[1].values():
        assert all(field.name for field in fields[:-1])
