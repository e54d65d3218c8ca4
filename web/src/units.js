// Numbers as people read and type them.

const SI = ['', 'k', 'M', 'G', 'T', 'P', 'E'];

/** "1.445 s", "12.3 ms": four significant digits at most. */
export function seconds(value) {
  if (!Number.isFinite(value)) return '-';
  if (value === 0) return '0 s';
  const steps = [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']];
  const [unit, name] = steps.find(([u]) => Math.abs(value) >= u) ?? steps[3];
  return `${short(value / unit)} ${name}`;
}

/** Four significant digits at most, without an exponent. */
export function short(value) {
  const text = Number(value).toPrecision(4);
  return String(Number(text));
}

/** "400 MB": powers of 1000. */
export function bytes(value) {
  let rest = value;
  let i = 0;
  while (rest >= 1000 && i < SI.length - 1) {
    rest /= 1000;
    i += 1;
  }
  return `${short(rest)} ${SI[i]}B`;
}

/** "10 Gbit/s" of a time per float of 4 bytes. */
export function speed(beta) {
  if (beta <= 0) return 'unlimited';
  let bits = 32 / beta;
  let i = 0;
  while (bits >= 1000 && i < SI.length - 1) {
    bits /= 1000;
    i += 1;
  }
  return `${short(bits)} ${SI[i]}bit/s`;
}

/** "12%", "0.4%". */
export function percent(share) {
  const value = 100 * share;
  return `${Math.abs(value) < 10 ? short(Number(value.toPrecision(2))) : Math.round(value)}%`;
}

/** "1,234". */
export function count(value) {
  return value.toLocaleString('en-US');
}

const UNITS = { '': 1, B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
                KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** Bytes of "400MB", "1.5 GiB" or "4096"; null when it is none of these. */
export function parseBytes(text) {
  const match = /^\s*([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([A-Za-z]*)\s*$/.exec(text);
  if (!match || !(match[2] in UNITS)) return null;
  const value = Number(match[1]) * UNITS[match[2]];
  return value >= 1 && value <= 2 ** 62 ? Math.round(value) : null;
}

/** Whole elements of `size` bytes each that make up about so many bytes; at least one. */
export function elements(numBytes, dtype) {
  const size = { float32: 4, float64: 8, float16: 2, bfloat16: 2, int32: 4, int64: 8, int8: 1 }[dtype] ?? 4;
  return Math.max(1, Math.round(numBytes / size));
}

export const DTYPES = ['float32', 'float64', 'float16', 'bfloat16', 'int32', 'int64', 'int8'];
