"""The vectors that all clients share, and more of amounts."""

from __future__ import annotations

import decimal
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell import Usdc, Wad
from foretell.signing import sign
from foretell.webhooks import VerificationError, verify
from foretell.webhooks import sign as sign_delivery

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "behaviors" / "behaviors.json").read_text(encoding="utf-8")
)
AMOUNTS = TABLE["amounts"]


def amount_of(entry: dict[str, Any]) -> type[Usdc]:
    kind: type[Usdc] = getattr(foretell, entry["type"])
    return kind


@pytest.mark.parametrize("vector", TABLE["webhooks"], ids=lambda vector: vector["id"])
def test_a_delivery_verifies_exactly_if_the_table_says_so(vector: dict[str, Any]) -> None:
    body, now = vector["body"].encode(), vector["nowMs"] / 1000
    tolerance = vector.get("toleranceMs", 300_000) / 1000
    if vector["valid"]:
        event = verify(body, vector["header"], vector["secrets"], tolerance, now=now)
        assert event == json.loads(vector["body"])
    else:
        with pytest.raises(ValueError, match=r"secret|signature"):
            verify(body, vector["header"], vector["secrets"], tolerance, now=now)


@pytest.mark.parametrize(
    ("header", "reason"), [("", "malformed"), ("t=1,v1=00", "stale"), ("t=1777464000123,v1=00", "different")]
)
def test_a_delivery_that_does_not_verify_names_the_reason(header: str, reason: str) -> None:
    with pytest.raises(VerificationError) as caught:
        verify(b"{}", header, "whsec_x", now=1777464000)
    assert caught.value.reason == reason


@pytest.mark.parametrize("vector", TABLE["signatures"], ids=lambda vector: vector["path"])
def test_a_signature_is_the_one_of_the_table(vector: dict[str, Any]) -> None:
    header = sign(vector["key"], vector["timeMs"], vector["method"], vector["path"], vector["body"].encode())
    assert header == f"t={vector['timeMs']},v1={vector['v1']}"


@pytest.mark.parametrize("vector", TABLE["deliveries"])
def test_a_delivery_of_a_test_is_signed_like_the_table(vector: dict[str, Any]) -> None:
    body, secret = vector["body"].encode(), vector["secret"]
    header = sign_delivery(body, secret, now=vector["timeMs"] / 1000)
    assert header == f"t={vector['timeMs']},v1={vector['v1']}"
    assert verify(body, sign_delivery(body, secret), secret) == json.loads(body)


def test_a_delivery_without_the_header_is_malformed() -> None:
    with pytest.raises(VerificationError, match="malformed"):
        verify(b"{}", None, "whsec_x")


@pytest.mark.parametrize("entry", AMOUNTS["rounded"], ids=lambda entry: entry["text"])
def test_rounding_down_drops_digits(entry: dict[str, Any]) -> None:
    assert str(amount_of(entry)(entry["text"]).round_down(entry["decimals"])) == entry["result"]
    with pytest.raises(ValueError, match="at least 0"):
        Wad(1).round_down(-1)


@pytest.mark.parametrize("entry", AMOUNTS["parse"] + AMOUNTS["atomic"], ids=lambda entry: entry["decimal"])
def test_an_amount_is_exact_in_both_directions(entry: dict[str, Any]) -> None:
    kind = amount_of(entry)
    amount = kind(entry["text"]) if "text" in entry else kind.from_atomic(entry["atomic"])
    assert amount.atomic == int(entry["atomic"])
    assert str(amount) == entry["decimal"]
    assert kind(str(amount)) == kind.from_atomic(entry["atomic"]) == kind(amount.to_decimal()) == amount


@pytest.mark.parametrize("entry", AMOUNTS["rejected"], ids=lambda entry: entry["text"])
def test_a_text_that_is_no_amount_is_rejected(entry: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"amount|decimals"):
        amount_of(entry)(entry["text"])


@pytest.mark.parametrize("text", [*AMOUNTS["rejectedAtomic"], "1" * 1000])
def test_a_text_that_is_no_integer_is_no_atomic_amount(text: str) -> None:
    with pytest.raises(ValueError, match="integer"):
        Usdc.from_atomic(text)


@pytest.mark.parametrize("entry", AMOUNTS["sums"], ids=lambda entry: entry["sum"])
def test_arithmetic_is_exact(entry: dict[str, Any]) -> None:
    a, b = amount_of(entry)(entry["a"]), amount_of(entry)(entry["b"])
    assert str(a + b) == entry["sum"]
    assert str(a - b) == entry["difference"]
    assert ((a > b) - (a < b), a <= b, a >= b) == (entry["order"], entry["order"] <= 0, entry["order"] >= 0)
    assert (a == b, hash(a) == hash(b)) == (entry["order"] == 0, entry["order"] == 0)


@pytest.mark.parametrize("value", [1.5, True, None, b"1"])
def test_floats_and_other_types_are_no_amounts(value: Any) -> None:
    with pytest.raises(TypeError):
        Usdc(value)
    with pytest.raises(TypeError):
        Usdc.from_atomic(value)


def test_amounts_of_different_units_do_not_mix() -> None:
    with pytest.raises(TypeError):
        Usdc(1) + Wad(1)  # type: ignore[operator]
    with pytest.raises(TypeError):
        assert Usdc(1) < Wad(1)  # type: ignore[operator]
    with pytest.raises(TypeError):
        Usdc(1) * 1.5  # type: ignore[operator]
    assert Usdc(1) != Wad(1)


def test_amounts_are_multiplied_divided_and_shown() -> None:
    assert 3 * Usdc("0.1") == Usdc("0.1") * 3 == Usdc("0.3")
    assert Usdc(1) // 3 == Usdc("0.333333")
    assert (-Usdc(1), abs(-Usdc(1)), bool(Usdc(0))) == (Usdc(-1), Usdc(1), False)
    assert repr(Usdc("25.50")) == "Usdc('25.5')"
    assert f"{Usdc('25.5'):.2f} {Usdc(2)}" == "25.50 2"


def test_a_decimal_with_more_digits_is_rounded_only_on_request() -> None:
    with pytest.raises(ValueError, match="at most 6 decimals"):
        Usdc(Decimal("0.1234567"))
    assert Usdc.from_decimal(Decimal("0.1234567")) == Usdc("0.123456")
    assert Usdc.from_decimal(Decimal("0.1234567"), decimal.ROUND_UP) == Usdc("0.123457")
    assert Usdc(Decimal("1E+2")) == Usdc(100)
    with pytest.raises(ValueError, match="amount"):
        Usdc(Decimal("Infinity"))
