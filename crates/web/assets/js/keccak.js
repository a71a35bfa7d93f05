// Keccak-256 as Ethereum uses it. SHA3-256 has another padding.

const RATE = 136;

const rotate = (lane, by) => BigInt.asUintN(64, (lane << by) | (lane >> (64n - by)));

export function keccak256(bytes) {
  const padded = new Uint8Array((Math.floor(bytes.length / RATE) + 1) * RATE);
  padded.set(bytes);
  padded[bytes.length] ^= 1;
  padded[padded.length - 1] ^= 128;
  const lanes = new BigUint64Array(25);
  // Keccak's lanes are little-endian, as are all processors that run browsers.
  const state = new Uint8Array(lanes.buffer);
  for (let at = 0; at < padded.length; at += RATE) {
    for (let i = 0; i < RATE; i++) state[i] ^= padded[at + i];
    permute(lanes);
  }
  return state.slice(0, 32);
}

function permute(lanes) {
  let register = 1;
  for (let round = 0; round < 24; round++) {
    const columns = [0, 1, 2, 3, 4].map((x) => [0, 5, 10, 15, 20].reduce((sum, y) => sum ^ lanes[x + y], 0n));
    for (let i = 0; i < 25; i++) lanes[i] ^= columns[(i + 4) % 5] ^ rotate(columns[(i + 1) % 5], 1n);
    let [x, y, moved] = [1, 0, lanes[1]];
    for (let step = 1; step < 25; step++) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const lane = x + 5 * y;
      [moved, lanes[lane]] = [lanes[lane], rotate(moved, BigInt(((step * (step + 1)) / 2) % 64))];
    }
    for (let row = 0; row < 25; row += 5) {
      const old = lanes.slice(row, row + 5);
      for (let i = 0; i < 5; i++) lanes[row + i] ^= ~old[(i + 1) % 5] & old[(i + 2) % 5];
    }
    // The round constants come from a linear feedback shift register.
    for (let bit = 1n; bit < 128n; bit *= 2n) {
      register = ((register << 1) ^ ((register >> 7) * 0x71)) % 256;
      if (register & 2) lanes[0] ^= 1n << (bit - 1n);
    }
  }
}
