"""Exact amounts of USDC and outcome tokens.

A string, an `int` or a `Decimal` counts whole units, and `from_atomic` takes the integers of the API's answers.
Floats are rejected, because they cannot hold most amounts exactly.

>>> Usdc("25.10") + Usdc.from_atomic("400000")
Usdc('25.5')
>>> Usdc("25.10").atomic
25100000
"""

from __future__ import annotations

import decimal
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Usdc", "Wad"]

_DECIMAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?")
_INTEGER = re.compile(r"-?[0-9]+")
# More digits than any amount of the contracts (256 bits) has, so that outside text cannot cost much time.
_MOST_CHARACTERS = 120


class _Amount:
    """An exact amount, stored as an integer of its smallest unit."""

    __slots__ = ("_atomic",)
    _atomic: int
    DECIMALS: ClassVar[int]

    def __init__(self, value: str | int | Decimal) -> None:
        self._atomic = self._parse(value)

    @classmethod
    def from_atomic(cls, value: str | int) -> Self:
        """The amount of this many smallest units, as the API's answers count: `"25000000"` is 25 USDC."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise TypeError(f"an atomic amount must be a str or an int, not {type(value).__name__}")
        if isinstance(value, str) and (len(value) > _MOST_CHARACTERS or not _INTEGER.fullmatch(value)):
            raise ValueError(f"an atomic amount must be an integer, got {value[:60]!r}")
        amount = cls.__new__(cls)
        amount._atomic = int(value)
        return amount

    @classmethod
    def from_decimal(cls, value: Decimal, rounding: str = decimal.ROUND_DOWN) -> Self:
        """The amount closest to `value`, with a rounding of the module `decimal`; by default toward zero."""
        with decimal.localcontext() as context:
            context.prec = _MOST_CHARACTERS * 2
            return cls(value.quantize(Decimal(1).scaleb(-cls.DECIMALS), rounding=rounding))

    @property
    def atomic(self) -> int:
        """The amount in smallest units."""
        return self._atomic

    def to_decimal(self) -> Decimal:
        """The amount in whole units, exactly."""
        digits = tuple(int(digit) for digit in str(abs(self._atomic)))
        return Decimal((int(self._atomic < 0), digits, -self.DECIMALS))

    def round_down(self, decimals: int) -> Self:
        """The amount without the digits after this many decimals. The `amount` of a trade has at most 6."""
        if decimals < 0:
            raise ValueError("decimals must be at least 0")
        unit = 10 ** max(self.DECIMALS - decimals, 0)
        rounded = abs(self._atomic) // unit * unit
        return self._with(rounded if self._atomic > 0 else -rounded)

    @classmethod
    def _parse(cls, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
            raise TypeError(f"an amount must be a str, an int or a Decimal, not {type(value).__name__}")
        text = format(value, "f") if isinstance(value, Decimal) else str(value)
        found = _DECIMAL.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
        if found is None:
            raise ValueError(f"an amount must be a decimal number such as 25.00, got {text[:60]!r}")
        sign, whole, fraction = found[1], found[2], (found[3] or "").rstrip("0")
        if len(fraction) > cls.DECIMALS:
            raise ValueError(f"{cls.__name__} has at most {cls.DECIMALS} decimals, got {text!r}")
        return int(sign + whole + fraction.ljust(cls.DECIMALS, "0"))

    def _with(self, atomic: int) -> Self:
        amount = type(self).__new__(type(self))
        amount._atomic = atomic
        return amount

    def __add__(self, other: Self) -> Self:
        return self._with(self._atomic + other._atomic) if type(other) is type(self) else NotImplemented

    def __sub__(self, other: Self) -> Self:
        return self._with(self._atomic - other._atomic) if type(other) is type(self) else NotImplemented

    def __mul__(self, factor: int) -> Self:
        return self._with(self._atomic * factor) if type(factor) is int else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Self:
        return self._with(self._atomic // divisor) if type(divisor) is int else NotImplemented

    def __neg__(self) -> Self:
        return self._with(-self._atomic)

    def __abs__(self) -> Self:
        return self._with(abs(self._atomic))

    def __bool__(self) -> bool:
        return self._atomic != 0

    def __eq__(self, other: object) -> bool:
        return self._atomic == other._atomic if isinstance(other, _Amount) and type(other) is type(self) else False

    def __lt__(self, other: Self) -> bool:
        return self._atomic < other._atomic if type(other) is type(self) else NotImplemented

    def __le__(self, other: Self) -> bool:
        return self._atomic <= other._atomic if type(other) is type(self) else NotImplemented

    def __gt__(self, other: Self) -> bool:
        return self._atomic > other._atomic if type(other) is type(self) else NotImplemented

    def __ge__(self, other: Self) -> bool:
        return self._atomic >= other._atomic if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._atomic))

    def __str__(self) -> str:
        whole, fraction = divmod(abs(self._atomic), 10**self.DECIMALS)
        text = f"{whole}.{fraction:0{self.DECIMALS}d}".rstrip("0").rstrip(".")
        return f"-{text}" if self._atomic < 0 else text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __format__(self, spec: str) -> str:
        return format(self.to_decimal(), spec) if spec else str(self)


class Usdc(_Amount):
    """An amount of USDC, exact to a millionth."""

    __slots__ = ()
    DECIMALS = 6


class Wad(_Amount):
    """An amount of outcome tokens, exact to 1e-18."""

    __slots__ = ()
    DECIMALS = 18
