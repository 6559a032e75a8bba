"""The script that makes the columns of built-in resources."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parent.parent.parent
PRINTERS = """
	eventColumnDefinitions := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Sub", Type: "string", Priority: 1, Description: apiv1.Event{}.InvolvedObject.SwaggerDoc()["fieldPath"]},
		{Name: "Count", Type: "integer", Description: "How \\"many\\""},
	}
"""
DOCUMENTS = {
    "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types_swagger_doc_generated.go": (
        'var map_ObjectMeta = map[string]string{\n\t"":     "All.",\n\t"name": "The name.\\n\\nReally.",\n}\n'
    ),
    "staging/src/k8s.io/api/core/v1/types_swagger_doc_generated.go": (
        'var map_ObjectReference = map[string]string{\n\t"fieldPath": "The path.",\n}\n'
    ),
}
COLUMNS = [
    {"name": "Name", "type": "string", "format": "name", "description": "The name.\n\nReally.", "priority": 0},
    {"name": "Sub", "type": "string", "format": "", "description": "The path.", "priority": 1},
    {"name": "Count", "type": "integer", "format": "", "description": 'How "many"', "priority": 0},
]


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    for name in ("gen_data", "gen_columns"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import gen_columns  # type: ignore[import-not-found, unused-ignore]

    module: ModuleType = gen_columns
    return module


def test_columns_are_read_with_their_descriptions(generator: ModuleType) -> None:
    assert generator.read_columns(PRINTERS, "eventColumnDefinitions", DOCUMENTS.__getitem__) == COLUMNS


def test_columns_that_differ_from_the_facts_are_not_written(generator: ModuleType) -> None:
    facts = [{key: value for key, value in column.items() if key != "description"} for column in COLUMNS]
    generator.check_facts({"events": COLUMNS, "others": COLUMNS}, {"events": facts})
    with pytest.raises(AssertionError, match="events"):
        generator.check_facts({"events": COLUMNS}, {"events": facts[1:]})
