// Time against size, both logarithmic: a line for each algorithm, the winner's band behind, measured points on top.
import { useState } from 'preact/hooks';

import { colorOf } from './colors.js';
import { bytes, seconds } from './units.js';

const W = 640;
const H = 360;
const LEFT = 64;
const RIGHT = 12;
const TOP = 14;
const BOTTOM = 40;

const log = Math.log10;

function decades(from, to) {
  const out = [];
  for (let e = Math.ceil(log(from) - 1e-9); e <= log(to) + 1e-9; e += 1) out.push(10 ** e);
  return out;
}

/** Rows of a curve document to a line per asked algorithm. */
export function lines(rows) {
  const out = new Map();
  for (const row of rows) {
    for (const r of row.results) {
      if (!out.has(r.asked)) out.set(r.asked, []);
      out.get(r.asked).push({ bytes: row.bytes, seconds: r.seconds, algorithm: r.algorithm });
    }
  }
  return [...out].map(([name, points]) => ({ name, points }));
}

export function Chart({ rows, points, here, onSize }) {
  const [at, setAt] = useState(null);
  const all = lines(rows);
  if (rows.length < 2) return <p class="quiet">...</p>;
  const x0 = rows[0].bytes;
  const x1 = rows.at(-1).bytes;
  // Lines that are far off would press the others together.
  const best = rows.map((r) => r.results[0].seconds);
  const ys = [...best, ...rows.map((r) => r.lower_bound_seconds), ...points.map((p) => p.seconds),
              ...all.flatMap((l) => l.points.map((p, i) => Math.min(p.seconds, best[i] * 100)))].filter((y) => y > 0);
  if (ys.length === 0) return <p class="quiet" id="curve-empty">Every size takes no time here, so there are no curves to draw.</p>;
  const y0 = Math.min(...ys) / 1.3;
  const y1 = Math.max(...ys) * 1.3;
  const X = (b) => LEFT + ((log(b) - log(x0)) / (log(x1) - log(x0))) * (W - LEFT - RIGHT);
  const Y = (s) => H - BOTTOM - ((log(Math.max(s, y0)) - log(y0)) / (log(y1) - log(y0))) * (H - TOP - BOTTOM);
  const edge = (i) => Math.sqrt(rows[i].bytes * rows[i + 1].bytes);
  const shown = at === null ? null : rows[at];
  const nearest = (clientX, target) => {
    const box = target.getBoundingClientRect();
    const b = 10 ** (log(x0) + (((clientX - box.left) / box.width) * W - LEFT) / (W - LEFT - RIGHT) * (log(x1) - log(x0)));
    return rows.reduce((k, r, i) => (Math.abs(log(r.bytes / b)) < Math.abs(log(rows[k].bytes / b)) ? i : k), 0);
  };
  const key = (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move) {
      setAt(Math.min(rows.length - 1, Math.max(0, (at ?? Math.floor(rows.length / 2)) + move)));
      event.preventDefault();
    } else if (event.key === 'Enter' && shown) onSize(shown.bytes);
  };
  return (
    <figure>
      <svg viewBox={`0 0 ${W} ${H}`} class="chart" id="curve" role="img" tabindex="0" onKeyDown={key}
           aria-label="Time against size, a line for each algorithm. Arrow keys read the values, Enter takes the size."
           onPointerMove={(e) => setAt(nearest(e.clientX, e.currentTarget))}
           onClick={(e) => onSize(rows[nearest(e.clientX, e.currentTarget)].bytes)}>
        {rows.map((r, i) => {
          const from = i === 0 ? x0 : edge(i - 1);
          const to = i === rows.length - 1 ? x1 : edge(i);
          return <rect class={`band ${colorOf(r.results[0].asked)}`} x={X(from)} width={X(to) - X(from)} y={TOP}
                       height={H - TOP - BOTTOM} />;
        })}
        {decades(x0, x1).map((b) => (
          <g>
            <line class="grid" x1={X(b)} x2={X(b)} y1={TOP} y2={H - BOTTOM} />
            <text class="tick" x={X(b)} y={H - BOTTOM + 16} text-anchor="middle">{bytes(b)}</text>
          </g>
        ))}
        {decades(y0, y1).map((s) => (
          <g>
            <line class="grid" x1={LEFT} x2={W - RIGHT} y1={Y(s)} y2={Y(s)} />
            <text class="tick" x={LEFT - 6} y={Y(s) + 4} text-anchor="end">{seconds(s)}</text>
          </g>
        ))}
        <text class="tick" x={(W + LEFT) / 2} y={H - 6} text-anchor="middle">size of the vector</text>
        <polyline class="bound" points={rows.filter((r) => r.lower_bound_seconds > 0)
          .map((r) => `${X(r.bytes)},${Y(r.lower_bound_seconds)}`).join(' ')} />
        {all.map((l) => (
          <polyline class={`line ${colorOf(l.name)}`}
                    points={l.points.filter((p, i) => p.seconds <= best[i] * 100)
                      .map((p) => `${X(p.bytes)},${Y(p.seconds)}`).join(' ')} />
        ))}
        {points.filter((p) => p.bytes >= x0 && p.bytes <= x1).map((p) => (
          <circle class="measured" cx={X(p.bytes)} cy={Y(p.seconds)} r="4">
            <title>{`${p.label || 'measured'}: ${bytes(p.bytes)}, ${seconds(p.seconds)}`}</title>
          </circle>
        ))}
        {here >= x0 && here <= x1 && <line class="here" x1={X(here)} x2={X(here)} y1={TOP} y2={H - BOTTOM} />}
        {shown && <line class="cursor" x1={X(shown.bytes)} x2={X(shown.bytes)} y1={TOP} y2={H - BOTTOM} />}
      </svg>
      <figcaption>
        <span class="legend">
          {all.map((l) => <span><i class={`key ${colorOf(l.name)}`} />{l.name}</span>)}
          <span><i class="key bound-key" />lower limit</span>
          {points.length > 0 && <span><i class="key dot-key" />measured</span>}
        </span>
        <span class="readout" aria-live="polite">
          {shown ? `${bytes(shown.bytes)}: ${shown.results.slice(0, 4)
            .map((r) => `${r.algorithm} ${seconds(r.seconds)}`).join(', ')}`
            : 'The colour behind the lines is that of the fastest, and of the simplest of equal ones.'}
        </span>
      </figcaption>
    </figure>
  );
}
