// One colour for each algorithm and each term, the same in all pictures; the values are in style.css, for light and dark.

const ALGORITHMS = ['gentree+', 'cps', 'hcps', 'ring', 'rhd', 'reduce-broadcast', 'gentree', 'gentree-norearrange'];

/** Name of a class for an algorithm as it is asked for, or with its factors: "hcps:8x3". */
export function colorOf(algorithm) {
  const index = ALGORITHMS.indexOf(algorithm.split(':')[0]);
  return `c${index < 0 ? ALGORITHMS.length : index}`;
}

export const TERMS = [
  ['alpha', 'latency', 't0'],
  ['beta', 'link time', 't1'],
  ['gamma', 'adding', 't2'],
  ['delta', 'memory access', 't3'],
  ['epsilon', 'incast', 't4'],
  ['mu', 'handling messages', 't5'],
];
