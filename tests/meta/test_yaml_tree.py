import pytest

from kcp.meta.yaml_tree import TreeBuilder, TreeError


def make_builder(*, strict: bool = False, max_depth: int = 10, max_nodes: int = 5000) -> TreeBuilder:
    return TreeBuilder(strict=strict, max_depth=max_depth, max_nodes=max_nodes)


def plain(builder: TreeBuilder, text: str, line: int = 0) -> None:
    builder.scalar(text, None, None, plain=True, line=line)


def test_the_example_of_the_module() -> None:
    builder = make_builder()
    builder.start_document()
    builder.open_mapping(None, 0)
    plain(builder, "a")
    builder.open_sequence("x", 0)
    plain(builder, "1")
    builder.close()
    plain(builder, "b")
    builder.alias("x", 1)
    builder.close()
    value = builder.end_document()
    assert value == {"a": [1], "b": [1]}
    assert value["a"] is not value["b"]


def test_documents_share_nothing() -> None:
    builder = make_builder()
    builder.scalar("1", None, "x", plain=True, line=0)
    assert builder.end_document() == 1
    builder.start_document()
    with pytest.raises(TreeError, match="unknown anchor 'x' referenced"):
        builder.alias("x", 0)


def test_a_document_without_content_is_null() -> None:
    builder = make_builder()
    builder.start_document()
    assert builder.end_document() is None


def test_depth_is_limited_and_an_alias_brings_its_own() -> None:
    builder = make_builder(max_depth=3)
    builder.open_sequence(None, 0)
    builder.open_sequence("x", 0)
    builder.open_sequence(None, 0)
    with pytest.raises(TreeError, match="exceeded max depth of 3"):
        builder.open_mapping(None, 0)
    builder.close()
    builder.close()
    builder.alias("x", 0)
    builder.open_sequence(None, 0)
    with pytest.raises(TreeError, match="exceeded max depth of 3"):
        builder.alias("x", 0)


def test_nodes_are_limited() -> None:
    builder = make_builder(max_nodes=4)
    builder.open_sequence(None, 0)
    plain(builder, "1")
    plain(builder, "2")
    with pytest.raises(TreeError, match="more than 4 nodes"):
        plain(builder, "3")


def test_aliased_nodes_count() -> None:
    builder = make_builder(max_nodes=7)
    builder.open_sequence(None, 0)
    builder.open_sequence("x", 0)
    plain(builder, "1")
    builder.close()
    builder.alias("x", 0)
    with pytest.raises(TreeError, match="more than 7 nodes"):
        builder.alias("x", 0)


def test_many_aliases_are_refused_before_they_are_copied() -> None:
    builder = make_builder(max_nodes=10**9)
    builder.open_sequence(None, 0)
    builder.open_sequence("a0", 0)
    for _ in range(10):
        plain(builder, "1")
    builder.close()

    def multiply_by_ten(level: int) -> None:
        builder.open_sequence(f"a{level + 1}", 0)
        for _ in range(10):
            builder.alias(f"a{level}", 0)
        builder.close()

    multiply_by_ten(0)
    multiply_by_ten(1)
    with pytest.raises(TreeError, match="excessive aliasing"):
        multiply_by_ten(2)


def test_a_large_document_may_have_fewer_aliases_in_proportion() -> None:
    builder = make_builder(max_nodes=10**9)
    builder.open_sequence(None, 0)
    builder.open_sequence("x", 0)
    for _ in range(5000):
        plain(builder, "1")
    builder.close()
    for _ in range(80):  # some 400,000 nodes in all
        builder.alias("x", 0)
    with pytest.raises(TreeError, match="excessive aliasing"):
        builder.alias("x", 0)


def test_aliases_of_long_texts_are_limited() -> None:
    builder = make_builder()
    builder.open_sequence(None, 0)
    builder.scalar("x" * 1024 * 1024, None, "x", plain=False, line=0)
    for _ in range(8):
        builder.alias("x", 0)
    with pytest.raises(TreeError, match="excessive aliasing"):
        builder.alias("x", 0)
