// What the time of each algorithm consists of.
import { TERMS } from './colors.js';
import { seconds, short } from './units.js';

const W = 640;
const ROW = 30;
const NAME = 178;
const CUT = 4; // times the best: longer bars are cut

export function Bars({ results }) {
  const best = results[0].seconds;
  const most = Math.min(Math.max(...results.map((r) => r.seconds)), best * CUT);
  const scale = (W - NAME - 90) / (most || 1);
  const used = TERMS.filter(([term]) => results.some((r) => (r.terms[term] ?? 0) > 0));
  return (
    <figure>
      <svg viewBox={`0 0 ${W} ${results.length * ROW + 6}`} class="chart" id="bars" role="img"
           aria-label="The terms of each algorithm's time as stacked bars; the table below has the numbers.">
        {results.map((r, row) => {
          let x = NAME;
          const end = NAME + most * scale;
          return (
            <g>
              <text class="label" x={NAME - 8} y={row * ROW + 20} text-anchor="end">{r.algorithm}</text>
              {used.map(([term, , color]) => {
                const width = Math.max(0, Math.min((r.terms[term] ?? 0) * scale, end - x));
                const box = <rect class={`term ${color}`} x={x} y={row * ROW + 5} width={width} height={ROW - 10} />;
                x += width;
                return box;
              })}
              {r.seconds > most * 1.001 && <path class="cut" d={`M${end - 6},${row * ROW + 2} l8,13 l-8,13`} />}
              <text class="tick" x={Math.min(x, end) + 6} y={row * ROW + 20}>
                {r.seconds > most * 1.001 ? `${short(r.seconds / best)}x` : seconds(r.seconds)}
              </text>
            </g>
          );
        })}
      </svg>
      <figcaption class="legend">
        {used.map(([, words, color]) => <span><i class={`key ${color}`} />{words}</span>)}
      </figcaption>
      <details>
        <summary>The numbers</summary>
        <div class="scroll" tabindex="0" role="region" aria-label="Numbers of each algorithm">
          <table>
            <thead>
              <tr><th>algorithm</th><th>time</th><th>vs best</th>{used.map(([, words]) => <th>{words}</th>)}</tr>
            </thead>
            <tbody>
              {results.map((r) => (
                <tr>
                  <th scope="row">{r.algorithm}</th><td>{seconds(r.seconds)}</td>
                  <td>{best > 0 ? `${(r.seconds / best).toFixed(2)}x` : '-'}</td>
                  {used.map(([term]) => <td>{seconds(r.terms[term] ?? 0)}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
