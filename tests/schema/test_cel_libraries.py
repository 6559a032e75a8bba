"""The functions that Kubernetes adds to the language."""

from __future__ import annotations

from typing import Any

import pytest

from kcp.schema.cel import authorization
from kcp.schema.cel.engine import Environment, EvaluationError, activate
from kcp.schema.cel.types import AUTHORIZER, DYN, RESOURCE_CHECK

ENVIRONMENT = Environment({"x": DYN, "authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK})


def evaluate(expression: str, x: Any = None) -> Any:  # noqa: ANN401 - any value of the language
    return ENVIRONMENT.compile(expression).evaluate(activate({"x": x}))


@pytest.mark.parametrize(
    "expression",
    [
        # lists
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()",
        "[1, 2].sum() == 3 && [0.5, 1.5].sum() == 2.0 && [duration('1h'), duration('1m')].sum() == duration('61m')",
        "[2, 1].min() == 1 && ['a', 'b'].max() == 'b'",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(7) == -1",
        "[1].lastIndexOf(7) == -1 && 'abc'.indexOf('c') == 2 && [true].indexOf(true) == 0",
        "[dyn(1), true].indexOf(true) == 1",
        # regular expressions
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
        "'1 22 333'.findAll('[0-9]+') == ['1', '22', '333'] && '1 22'.findAll('[0-9]+', 1) == ['1']",
        "'1 22'.findAll('[0-9]+', 0) == []",
        # URLs
        "isURL('https://x.test/p') && !isURL('x') && isURL('/path')",
        "url('https://x.test:80/p/q?a=1&b=2&a=3#f').getQuery() == {'a': ['1', '3'], 'b': ['2']}",
        "url('https://[::1]:80/p').getHostname() == '::1' && url('https://[::1]:80/p').getPort() == '80'",
        "url('https://[::1]/p').getHostname() == '::1' && url('https://[::1]/').getPort() == ''",
        "url('https://x.test:80/p').getHost() == 'x.test:80' && url('https://x.test/p').getPort() == ''",
        "url('HTTPS://x.test/').getScheme() == 'https' && url('https://x.test/a%20b').getEscapedPath() == '/a%20b'",
        "url('https://x') == url('https://x')",
        # quantities
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1k') == quantity('1000')",
        "quantity('0') == quantity('0m') && quantity('1').isLessThan(quantity('1001m'))",
        "isQuantity('10Mi') && !isQuantity('10Foo') && sign(quantity('-1')) == -1 && sign(quantity('0')) == 0",
        "quantity('50k').add(20).asInteger() == 50020 && quantity('50k').sub(quantity('20k')) == quantity('30k')",
        "quantity('50k').sub(20) == quantity('49980') && quantity('1').add(quantity('2')) == quantity('3')",
        "quantity('1.5').asApproximateFloat() == 1.5 && !quantity('1.5').isInteger() && quantity('2').isInteger()",
        "quantity('1').compareTo(quantity('2')) == -1 && quantity('2').compareTo(quantity('2')) == 0",
        # addresses
        "ip('192.168.0.1').family() == 4 && ip('::1').family() == 6 && string(ip('::0001')) == '::1'",
        "isIP('127.0.0.1') && !isIP('127.0.0.1.') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1')",
        "ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback() && ip('224.0.0.1').isLinkLocalMulticast()",
        "ip('ff02::1').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('192.168.0.1').isGlobalUnicast()",
        "!ip('255.255.255.255').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "!cidr('10.0.0.0/8').containsIP('::1') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8')) && !cidr('10.0.0.0/16').containsCIDR('10.0.0.0/8')",
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.0/8').prefixLength() == 8 && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
        "isCIDR('::/0') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/33') && !isCIDR('::ffff:1.2.3.4/120')",
        # formats
        "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('A').hasValue()",
        "format.dns1123Label().validate('A').value()[0].startsWith('a lowercase RFC 1123 label')",
        "!format.dns1123LabelPrefix().validate('my-').hasValue() && format.dns1123Label().validate('my-').hasValue()",
        "format.named('uuid').hasValue() && !format.named('nothing').hasValue()",
        "format.named('dns1123Label').value().validate('A').hasValue()",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "format.uri().validate('x').value() == ['parse \"x\": invalid URI for request']",
        "!format.date().validate('2020-01-31').hasValue() && !format.byte().validate('YQ==').hasValue()",
        "[format.labelValue(), format.qualifiedName(), format.dns1035Label()].all(f, !f.validate('a').hasValue())",
        # semantic versions
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))",
        "semver('1.0.0-rc.2').compareTo(semver('1.0.0-rc.11')) == -1 && semver('1.0.0+a') == semver('1.0.0+b')",
        "semver('1.0.0-1').isLessThan(semver('1.0.0-a')) && semver('1.0.0-a').isLessThan(semver('1.0.0-a.b'))",
        "isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.02', true) && !isSemver('1-a', true)",
        "semver('v01.0', true) == semver('1.0.0') && semver('1.00.0', true) == semver('1.0.0')",
    ],
)  # fmt: skip
def test_it_is_true_that(expression: str) -> None:
    assert evaluate(expression) is True


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("[].max()", "max called on empty list"),
        ("dyn([]).min()", "min called on empty list"),
        ("[dyn(1), 'a'].min()", "no such overload"),
        ("[dyn(1), 'a'].sum()", "no such overload"),
        ("[dyn(1), 'a'].isSorted()", "no such overload"),
        ("[9223372036854775807, 1].sum()", "integer overflow"),
        ("'x'.find('(')", "Illegal regex: error parsing regexp: missing closing ): `(`"),
        ("url('x')", 'URL parse error during conversion from string: parse "x": invalid URI for request'),
        ("url('')", 'URL parse error during conversion from string: parse "": empty url'),
        (
            "quantity('x')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        (
            "ip('x')",
            'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
        ),
        ("ip('fe80::1%a')", 'IP address "fe80::1%a" with zone value is not allowed'),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("cidr('x')", "netip.ParsePrefix(\"x\"): no '/'"),
        ("cidr('x/1')", 'netip.ParsePrefix("x/1"): ParseAddr("x"): unable to parse IP'),
        ("cidr('1.2.3.4/x')", 'bad bits after slash: "x"'),
        ("cidr('1.2.3.4/99')", "prefix length out of range"),
        ("cidr('fe80::1%a/8')", "IPv6 zones cannot be present in a prefix"),
        ("semver('')", "Version string empty"),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("semver('1.02.3')", 'Minor number must not contain leading zeroes "02"'),
        ("semver('1.a.3')", 'Invalid character(s) found in minor number "a"'),
        ("semver('.1.2')", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("semver('1.2.99999999999999999999')", "value out of range"),
        ("semver('1.2.3-')", "Prerelease is empty"),
        ("semver('1.2.3-01')", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("semver('1.2.3-ä')", 'Invalid character(s) found in prerelease "ä"'),
        ("semver('1.2.3+')", "Build meta data is empty"),
        ("semver('1.2.3+ä')", 'Invalid character(s) found in build meta data "ä"'),
        ("semver('1-a', true)", "short version cannot contain PreRelease/Build meta data"),
        ("dyn(quantity('1')).compareTo(dyn(semver('1.0.0')))", "no such overload"),
    ],
)
def test_errors(expression: str, why: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(expression)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000000000).size() > 0",
        "lists.range(300).map(x, lists.range(5000)).size() > 0",
        "x" + ".replace('a', 'aaaaaaaaaa')" * 12 + ".size() > 0",
        "lists.range(9000).map(y, x).join('" + "z" * 20000 + "').size() > 0",
    ],
    ids=["range", "ranges", "replace", "join"],
)
def test_no_expression_can_take_all_memory(expression: str) -> None:
    with pytest.raises(EvaluationError, match="operation cancelled: actual cost limit exceeded"):
        evaluate(expression, x="a" * 10)
    assert evaluate("lists.range(3)") == [0, 1, 2]


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("lists.range(-1)", []),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'aaa'.replace('a', 'b', -1)", "bbb"),
        ("'aaa'.replace('a', 'b', 0)", "aaa"),
        ("'ab'.replace('', '-')", "-a-b-"),
        ("['a', 'b'].join()", "ab"),
        ("['a', 'b'].join('-')", "a-b"),
        ("[dyn(null), dyn(false), dyn(0), dyn(0u), dyn(0.0), dyn(''), dyn({})].size() + ['a'].join().size()", 8),
    ],
)
def test_functions_with_a_budget_work_as_others(expression: str, result: object) -> None:
    assert evaluate(expression) == result


def test_only_texts_are_joined() -> None:
    with pytest.raises(EvaluationError, match="no such overload"):
        evaluate("x.join()", x=[1])


def test_no_pattern_can_stop_the_server() -> None:
    assert evaluate("x.find('^(a+)+$')", x="a" * 100_000 + "b") == ""


class TestAuthorizer:
    @pytest.fixture
    def asked(self) -> list[authorization.Check]:
        return []

    def evaluate(self, asked: list[authorization.Check], expression: str) -> Any:  # noqa: ANN401
        def answer(check: authorization.Check) -> tuple[bool, str]:
            asked.append(check)
            return check.verb == "get", f"verb {check.verb}"

        values = {
            "authorizer": authorization.make_authorizer(),
            "authorizer.requestResource": authorization.make_resource_check("g", "things", "status", "ns", "a"),
        }
        return ENVIRONMENT.compile(expression).evaluate(activate(values, answer))

    @pytest.mark.parametrize(
        ("check", "question"),
        [
            (
                "group('apps').resource('deployments').subresource('scale').namespace('x').name('y')",
                authorization.Check("get", None, "", "apps", "deployments", "scale", "x", "y"),
            ),
            ("path('/healthz')", authorization.Check("get", path="/healthz")),
            (
                "serviceAccount('ns', 'sa').group('').resource('pods').fieldSelector('a=b').labelSelector('c')",
                authorization.Check("get", ("ns", "sa"), resource="pods"),
            ),
            ("serviceAccount('ns', 'sa').path('/x')", authorization.Check("get", ("ns", "sa"), "/x")),
            ("requestResource", authorization.Check("get", None, "", "g", "things", "status", "ns", "a")),
        ],
    )
    def test_builds_questions(
        self, asked: list[authorization.Check], check: str, question: authorization.Check
    ) -> None:
        assert self.evaluate(asked, f"authorizer.{check}.check('get').allowed()") is True
        assert asked == [question]

    def test_decisions_have_a_reason_and_no_error(self, asked: list[authorization.Check]) -> None:
        check = "authorizer.path('/x').check('put')"
        assert self.evaluate(asked, f"{check}.reason()") == "verb put"
        assert self.evaluate(asked, f"{check}.allowed() || {check}.errored()") is False
        assert self.evaluate(asked, f"{check}.error()") == ""

    @pytest.mark.parametrize(
        ("expression", "why"),
        [
            ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
            ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
            ("authorizer.serviceAccount('ns', 'A').path('/').check('get').allowed()", "Invalid service account name"),
            (
                "authorizer.serviceAccount('A', 'a').path('/').check('get').allowed()",
                "Invalid service account namespace",
            ),
        ],
    )
    def test_minds_its_arguments(self, asked: list[authorization.Check], expression: str, why: str) -> None:
        with pytest.raises(EvaluationError, match=why):
            self.evaluate(asked, expression)
