// Amounts and prices as text. Amounts are BigInts in their smallest unit.

export const USDC_DECIMALS = 6;
export const TOKEN_DECIMALS = 18;

// Formats 1234500000 with 6 decimals as "1,234.50": without trailing zeros beyond `least` decimals.
export function formatUnits(units, decimals, least = 0) {
  const digits = BigInt(units).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, -decimals).replace(/\B(?=(...)+$)/g, ",");
  const fraction = digits.slice(-decimals).replace(/0+$/, "").padEnd(least, "0");
  return fraction ? `${whole}.${fraction}` : whole;
}

export const usdc = (atomic) => `${formatUnits(atomic, USDC_DECIMALS, 2)} USDC`;

export const tokens = (wad) => `${formatUnits(wad, TOKEN_DECIMALS)} tokens`;

// Formats tokens with four decimals, rounded down. Not for what a person signs.
const SHOWN_DECIMALS = 4;
const HIDDEN = 10n ** BigInt(TOKEN_DECIMALS - SHOWN_DECIMALS);
export const shortTokens = (wad) => `${formatUnits(BigInt(wad) / HIDDEN, SHOWN_DECIMALS)} tokens`;

// Parses "1234.5". Returns null for more decimals than the unit has, and for commas, which some
// readers write instead of the point.
export function parseUnits(text, decimals) {
  const [, whole, fraction = ""] = /^(\d{1,15})(?:\.(\d+))?$/.exec(text.trim()) ?? [];
  if (!whole || fraction.length > decimals) return null;
  return BigInt(whole + fraction.padEnd(decimals, "0"));
}
