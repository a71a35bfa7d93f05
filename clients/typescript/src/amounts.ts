/** Exact amounts: integers of atomic units, never floating-point numbers. */

const ATOMIC = /^-?[0-9]+$/;

abstract class Amount<Self extends Amount<Self>> {
  /** The amount in atomic units. */
  readonly atomic: bigint;

  protected constructor(atomic: bigint) {
    this.atomic = atomic;
  }

  protected abstract readonly decimals: number;
  protected abstract of(atomic: bigint): Self;

  plus(other: Self): Self {
    return this.of(this.atomic + other.atomic);
  }

  minus(other: Self): Self {
    return this.of(this.atomic - other.atomic);
  }

  /** Multiplies with the fraction `numerator / denominator`, and rounds toward zero. */
  timesRatio(numerator: bigint, denominator: bigint): Self {
    return this.of((this.atomic * numerator) / denominator);
  }

  /** Drops the digits after the given number of decimals. The `amount` of a trade has at most 6. */
  roundDown(decimals: number): Self {
    if (!Number.isSafeInteger(decimals) || decimals < 0) throw new RangeError("decimals must be an integer of at least 0");
    const unit = 10n ** BigInt(Math.max(this.decimals - decimals, 0));
    return this.of(this.atomic - (this.atomic % unit));
  }

  /** Returns -1, 0 or 1 if this amount is smaller than, equal to or larger than `other`. */
  compare(other: Self): -1 | 0 | 1 {
    return this.atomic < other.atomic ? -1 : this.atomic > other.atomic ? 1 : 0;
  }

  /** Returns whole units as the shortest decimal string, such as `25.5`. Requests take this form. */
  toString(): string {
    const scale = 10n ** BigInt(this.decimals);
    const magnitude = this.atomic < 0n ? -this.atomic : this.atomic;
    const fraction = (magnitude % scale).toString().padStart(this.decimals, "0").replace(/0+$/, "");
    return `${this.atomic < 0n ? "-" : ""}${magnitude / scale}${fraction && `.${fraction}`}`;
  }

  /** Returns whole units, so that an amount can be put into a request. */
  toJSON(): string {
    return this.toString();
  }
}

function parseDecimal(text: string, decimals: number, name: string): bigint {
  // A number has lost digits before it gets here.
  const [, sign, whole, fraction = ""] = (typeof text === "string" && /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text)) || [];
  if (whole === undefined || fraction.length > decimals) {
    throw new RangeError(`${name} must be a decimal string with at most ${decimals} decimals`);
  }
  const magnitude = BigInt(whole + fraction.padEnd(decimals, "0"));
  return sign ? -magnitude : magnitude;
}

function parseAtomic(atomic: string | bigint, name: string): bigint {
  if (typeof atomic === "bigint") return atomic;
  if (typeof atomic !== "string" || !ATOMIC.test(atomic)) throw new RangeError(`${name} must be a string of digits`);
  return BigInt(atomic);
}

/** USDC: 6 decimals. Responses contain atomic units, requests whole USDC. */
export class Usdc extends Amount<Usdc> {
  protected readonly decimals = 6;

  /** Parses whole USDC, such as `25.00`. */
  static parse(text: string): Usdc {
    return new Usdc(parseDecimal(text, 6, "USDC"));
  }

  /** Reads millionths of a USDC, as responses contain them. */
  static fromAtomic(atomic: string | bigint): Usdc {
    return new Usdc(parseAtomic(atomic, "atomic USDC"));
  }

  protected of(atomic: bigint): Usdc {
    return new Usdc(atomic);
  }
}

/** Outcome tokens: 18 decimals ("WAD"). */
export class Wad extends Amount<Wad> {
  protected readonly decimals = 18;

  /** Parses whole tokens, such as `48.9`. */
  static parse(text: string): Wad {
    return new Wad(parseDecimal(text, 18, "tokens"));
  }

  /** Reads 1e-18 of a token, as responses contain them. */
  static fromAtomic(atomic: string | bigint): Wad {
    return new Wad(parseAtomic(atomic, "atomic tokens"));
  }

  protected of(atomic: bigint): Wad {
    return new Wad(atomic);
  }
}
