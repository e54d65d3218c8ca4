// Winners, and what an MPI library's own choice loses, for numbers of servers and sizes.
import { useEffect, useRef, useState } from 'preact/hooks';

import { Cancelled } from './client.js';
import { colorOf } from './colors.js';
import { bytes, count, percent } from './units.js';

const COUNTS = ['1e2', '1e3', '1e4', '1e5', '1e6', '1e7', '1e8', '1e9'];

/** Servers per lowest switch around `here`, at most eight of them. */
export function steps(here) {
  const out = new Set([2, 4, 8, 16, 24, 32, 64].filter((n) => n <= Math.max(2 * here, 16)));
  out.add(here);
  return [...out].filter((n) => n > 0).sort((a, b) => a - b);
}

export function Heat({ core, network, fields, model, view, keep }) {
  const [library, setLibrary] = useState(view.library ?? 'openmpi');
  const [rows, setRows] = useState([]);
  const [status, setStatus] = useState('');
  const [isRunning, setRunning] = useState(false);

  useEffect(() => {
    setRows([]);
    setStatus('');
    keep({ heat: false });
    core.cancel('heat');
  }, [network, model, library]);

  const run = async () => {
    setRunning(true);
    setRows([]);
    keep({ heat: true });
    const ask = (more) => core.ask({ ask: 'heat', ...fields, model, counts: COUNTS, library, ...more },
                                   { key: 'heat', slow: true });
    try {
      const own = await ask({});
      const list = own.servers_per_switch > 0 ? steps(own.servers_per_switch) : [0];
      const found = [];
      for (const [i, n] of list.entries()) {
        setStatus(`${i} of ${list.length} rows`);
        const row = n === 0 || n === own.servers_per_switch ? own : await ask({ servers_per_switch: n });
        if (row.num_ranks > 1) found.push(row);
        setRows([...found]);
      }
      setStatus(list[0] === 0 ? 'The lowest switches of this network differ, so the number of servers is not varied.' : '');
    } catch (error) {
      setStatus(error instanceof Cancelled ? 'cancelled' : error.message);
    }
    setRunning(false);
  };

  // A link may bring the map along.
  const isAskedFor = useRef(view.heat);
  useEffect(() => {
    if (!network || !isAskedFor.current) return;
    isAskedFor.current = false;
    run();
  }, [network]);

  const shade = (regret) => `--heat:${Math.round(Math.min(1, Math.log2(1 + (regret ?? 0)) / 2.5) * 100)}%`;
  return (
    <section aria-labelledby="heat-title" id="heat">
      <h2 id="heat-title">Servers and sizes</h2>
      <p>
        Which algorithm is fastest, and how much longer the choice of <select aria-label="library" value={library}
          onChange={(e) => {
            setLibrary(e.currentTarget.value);
            keep({ library: e.currentTarget.value });
          }}>
          <option value="openmpi">Open MPI</option>
          <option value="mpich">MPICH</option>
        </select> takes when nobody has told it otherwise.{' '}
        <button type="button" onClick={run} disabled={isRunning}>Compute</button>{' '}
        {isRunning && <button type="button" onClick={() => core.cancel('heat')}>Cancel</button>}{' '}
        <span aria-live="polite">{status}</span>
      </p>
      {rows.length > 0 && (
        <div class="scroll" tabindex="0" role="region" aria-label="Winners by servers and sizes">
          <table class="heat">
            <thead>
              <tr><th>servers</th>{rows[0].rows.map((r) => <th>{bytes(r.bytes)}</th>)}</tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  <th scope="row">{count(row.num_ranks)}</th>
                  {row.rows.map((r) => (
                    <td style={shade(r.regret)} title={`${r.best}; ${r.default} takes ${percent(r.regret ?? 0)} longer`}>
                      <i class={`key ${colorOf(r.best)}`} />{r.best}<small>+{percent(r.regret ?? 0)}</small>
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
