"""Formats of strings, checked against what kube-openapi's strfmt answers."""

from __future__ import annotations

import pytest

from kcp.schema.structural.formats import find_format

CASES: dict[str, tuple[list[str], list[str]]] = {
    "uri": (
        [
            "http://x",
            "/a/b",
            "http://[::1]:80/",
            "http://u:p@h/",
            "mailto:x@y",
            "*",
            "http://a%C3/",
            "HTTP://X",
            "http://[fe80::1%25en0]/",
            "http://x?a=%zz",
            "http:///x",
            "http://h:/",
            "//h\\/p",
            "http://a:b:6/",
        ],
        [
            "",
            "%%",
            "a/b",
            "http://a b/",
            "http://h:80x/",
            "http://h/%zz",
            "http://%41/",
            ":foo",
            "http://1[::1]:80/",
            "ht\ntp://x",
            "http://[::1",
            "http://[x]/",
            "http://[fe80::1%en0]/",
            "http://u\\@h/",
            "http://[::1]x/",
        ],
    ),
    "email": (
        ["a@b.c", '"a b"@c.d', "Name <a@b.c>", "<a@b.c>", "a@[1.2.3.4]", "a@[::1]", "a@b.c (x)", "é@x.y"],
        ["", "x", ".a@b", "a..b@c", "a @b", "a@b.", "a,b@c", "<a@b", "a@[x]", "a@[1.2.3]", "Name <a@b.c >"],
    ),
    "ipv4": (
        ["1.2.3.4", "01.2.3.4", "::1.2.3.4", "::ffff:01.2.3.4", "0000000000001.2.3.4"],
        ["", "1.2.3", "256.1.1.1", "1.2.3.4.5", "1.2.3.-4", " 1.2.3.4", "::1", "x::1.2.3.4"],
    ),
    "ipv6": (["::1", "::ffff:1.2.3.4", "::"], ["x", "1::2::3", "fe80::1%eth0", "12345::", "::01.2.3.4"]),
    "cidr": (["10.0.0.0/8", "::/0", "1.2.3.4/08"], ["x", "10.0.0.0/33", "::/129", "1.2.3.4/", "1.2.3/8", "1.2.3.4/-1"]),
    "mac": (["00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301"], ["x", "00:00-5e:00:53:01", "00:00:5e"]),
    "date": (["2001-02-03", "0000-02-29"], ["x", "2001-02-29", "01-02-03", "2001-02-03 "]),
    "date-time": (
        ["2001-02-03T04:05:06Z", "2001-02-03t04:05:06.123+01:00", "2001-02-03T04:05:06x1Z", "2001-02-03T04:05:06ZTx"],
        ["x", "2001-02-03", "xT04:05:06Z", "2001-02-03T24:05:06Z", "2001-02-03T04:60:06Z", "2001-02-03T04:05:06"],
    ),
    "duration": (
        ["5m", "1h30m", "-1.5h", "+5s", "0", "5 days", "2 µs", "1us", ".5s", "5.s", "9223372036854775807ns", "1 min"],
        ["", "x", "5", ".s", "99999999999999999999 d", "5 parsecs", "3 mi"],
    ),
    "hostname": (["a", "a-b", "example.com", "é.com"], ["-", "a.b", "a_b.com", "x" * 64, "", "a" + ".bb" * 100]),
    "uuid": (["1b4d0d33-5d64-4ad2-a8a1-9c9f8a1f2a11", "1B4D0D335D644AD2A8A19C9F8A1F2A11"], ["x", ""]),
    "uuid3": (["1b4d0d33-5d64-3ad2-a8a1-9c9f8a1f2a11"], ["1b4d0d33-5d64-4ad2-a8a1-9c9f8a1f2a11"]),
    "uuid4": (["1b4d0d33-5d64-4ad2-a8a1-9c9f8a1f2a11"], ["1b4d0d33-5d64-4ad2-18a1-9c9f8a1f2a11"]),
    "uuid5": (["1b4d0d33-5d64-5ad2-a8a1-9c9f8a1f2a11"], ["1b4d0d33-5d64-4ad2-a8a1-9c9f8a1f2a11"]),
    "isbn": (["0321751043", "978-0321751041"], ["x", "0321751044"]),
    "isbn10": (["0-321-75104-3", "080442957X"], ["x", "032175104X"]),
    "isbn13": (["978 0321751041"], ["x", "9780321751042"]),
    "creditcard": (["4111-1111-1111-1111", "378282246310005"], ["x", "4111111111111112"]),
    "ssn": (["111-22-3333"], ["111223333", "111-22-33x3"]),
    "hexcolor": (["#FFFFFF", "fff"], ["#ff", "#GGG"]),
    "rgbcolor": (["rgb(255,255,255)", "rgb( 1 , 2 , 3 )"], ["rgb(256,1,1)", "rgb(00,1,1)"]),
    "byte": (["aGk=", "aG=="], ["%", "", "aGk"]),
    "password": (["", "x"], []),
    "bsonobjectid": (["507f1f77bcf86cd799439011"], ["x"]),
    "k8s-short-name": (["a", "a-b"], ["A", "-a", "x" * 64]),
    "k8s-long-name": (["a.b", "x" * 100], ["A", "a..b", "x" * 254]),
}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param(name, text, expected, id=f"{name} {text[:30]!r}")
        for name, texts in CASES.items()
        for expected, group in zip((True, False), texts, strict=True)
        for text in group
    ],
)
def test_formats_accept_what_kubernetes_accepts(name: str, text: str, expected: bool) -> None:
    check = find_format(name)
    assert check is not None
    assert check(text) is expected


def test_unknown_formats_are_not_checked() -> None:
    assert find_format("int32") is None
