// The plan as a film: messages on links, incast as colour, the critical path; a slider goes to any moment.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { Cancelled } from './client.js';
import { Film } from './film.js';
import { layout } from './network.js';
import { FILMED } from './state.js';
import { seconds } from './units.js';

const STEPS = 1000;

/** What the last rank waits for at this moment. */
function pathWords(hop) {
  if (!hop) return '';
  // Servers that do the same are simulated as one.
  const sender = hop.from === hop.rank ? 'a server like it' : `rank ${hop.from}`;
  return hop.isMessage ? ` On the critical path: rank ${hop.rank} waits for what ${sender} sends (chunk ${hop.chunk + 1}).`
    : ` On the critical path: rank ${hop.rank} by itself.`;
}

/** The places between two servers, up and down the tree. */
function route(placed, from, to) {
  const chain = (rank) => placed.nodes.filter((n) => n.first <= rank && rank <= n.last).sort((a, b) => b.depth - a.depth);
  const up = chain(from);
  const down = chain(to);
  const isWhole = (list, rank) => list[0] && list[0].first === rank && list[0].last === rank;
  if (!isWhole(up, from) || !isWhole(down, to)) return null;
  const top = up.find((n) => down.includes(n));
  return [...up.slice(0, up.indexOf(top) + 1), ...down.slice(0, down.indexOf(top)).reverse()];
}

function along(points, share) {
  const at = share * (points.length - 1);
  const i = Math.min(points.length - 2, Math.floor(at));
  const rest = at - i;
  return { x: points[i].x + rest * (points[i + 1].x - points[i].x), y: points[i].y + rest * (points[i + 1].y - points[i].y) };
}

function Stage({ film, placed, t, tree }) {
  const active = film.at(t);
  const loadOf = new Map();
  for (const one of active) {
    for (const n of placed.nodes) {
      if (n.depth !== one.link.depth || n.depth === 0) continue;
      const isIt = n.first <= one.link.rank && one.link.rank <= n.last;
      // A class of links is shown on all that are drawn beside its first one.
      if (!isIt && one.link.alike === 1) continue;
      if (!isIt && !sameRun(placed, n, one.link)) continue;
      const old = loadOf.get(n.key);
      if (!old || one.excess > old.excess || (one.excess === old.excess && one.flows > old.flows)) loadOf.set(n.key, one);
    }
  }
  const hop = film.hop(t);
  const way = hop?.isMessage ? route(placed, hop.from, hop.rank) : null;
  return (
    <div class="scroll picture" tabindex="0" role="region" aria-label="The network while the plan runs">
      <svg viewBox={`0 0 ${placed.width} ${placed.height}`} class="network" id="film"
           style={`min-width:${Math.min(placed.width, 1400) * 0.75}px`} role="img" aria-label={`${tree.name} at ${seconds(t)}`}>
        {placed.links.map(({ key, from, to }) => {
          const one = loadOf.get(to.key);
          const kind = !one ? '' : one.excess > 0 ? 'incast' : 'busy';
          return <line key={key} class={`link ${kind}`} x1={from.x} y1={from.y} x2={to.x} y2={to.y}
                       stroke-width={one ? Math.min(9, 2 + Math.log2(1 + one.senders)) : 1.5} />;
        })}
        {way && <polyline class="critical" points={way.map((p) => `${p.x},${p.y}`).join(' ')} />}
        {placed.gaps.map((g) => <text key={g.key} class="tick" x={g.x} y={g.y + 4} text-anchor="middle">...</text>)}
        {placed.nodes.map((p) => (
          <g key={p.key} class={`node ${hop && !p.node.children && (p.first === hop.rank || p.first === hop.from) ? 'chosen' : ''}`}>
            {p.node.children ? <rect x={p.x - 13} y={p.y - 9} width="26" height="18" rx="4" />
              : <circle cx={p.x} cy={p.y} r="8" />}
          </g>
        ))}
        {film.messages(t).map((m) => {
          const points = route(placed, m.from, m.to);
          if (!points || points.length < 2) return null;
          const { x, y } = along(points, m.share);
          return <circle class={`chunk c${m.chunk % 8}`} cx={x} cy={y} r="4.5" />;
        })}
      </svg>
    </div>
  );
}

function sameRun(placed, node, link) {
  const representative = placed.nodes.find((n) => n.depth === link.depth && n.first <= link.rank && link.rank <= n.last);
  return representative && representative.path.join() === node.path.join();
}

export function Movie({ core, tree, fields, state, counts, view, keep }) {
  const [algorithm, setAlgorithm] = useState(view.algorithm ?? 'gentree+');
  const [film, setFilm] = useState(null);
  const [t, setT] = useState(0);
  const [isPlaying, setPlaying] = useState(false);
  const [status, setStatus] = useState('');
  const [isBusy, setBusy] = useState(false);
  const frame = useRef(0);

  useEffect(() => {
    setFilm(null);
    setPlaying(false);
    setStatus('');
    core.cancel('movie');
  }, [tree, state.bytes, state.model, state.dtype]);

  useEffect(() => {
    if (!isPlaying || !film) return undefined;
    let last = performance.now();
    const tick = (now) => {
      const more = ((now - last) / 12000) * film.seconds;
      last = now;
      setT((old) => {
        if (old + more >= film.seconds) setPlaying(false);
        return Math.min(film.seconds, old + more);
      });
      frame.current = requestAnimationFrame(tick);
    };
    frame.current = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame.current);
  }, [isPlaying, film]);

  const placed = useMemo(() => tree && layout(tree), [tree]);
  const run = async (moment = 0) => {
    setBusy(true);
    setStatus('simulating');
    try {
      const movie = await core.ask({ ask: 'movie', ...fields, ...counts, model: state.model, algo: algorithm,
                                     ...(placed?.isWhole ? { engine: 'flows' } : {}) }, { key: 'movie', slow: true });
      setFilm(new Film(movie));
      setT(moment * movie.seconds);
      setStatus(movie.recorded_all ? '' : 'Too much happens to show all of it: the film has the first 20,000 events of each kind.');
    } catch (error) {
      setStatus(error instanceof Cancelled ? '' : error.message);
    }
    setBusy(false);
  };
  // A link may bring a moment of the film along, once.
  useEffect(() => {
    const { moment } = view;
    delete view.moment;
    if (moment !== undefined) run(moment);
  }, []);
  useEffect(() => {
    keep({ moment: film && film.seconds > 0 ? Math.round((1e4 * t) / film.seconds) / 1e4 : undefined });
  }, [film, t]);
  const goTo = (time) => {
    setPlaying(false);
    setT(time);
  };
  const active = film ? film.at(t) : [];
  const worst = active.reduce((a, b) => (!a || b.excess > a.excess || (b.excess === a.excess && b.senders > a.senders) ? b : a), null);
  const stages = film ? film.stages(t) : [];
  return (
    <section aria-labelledby="movie-title" id="movie">
      <h2 id="movie-title">The plan as a film</h2>
      <p>
        <label>Simulate <select value={algorithm} id="movie-algorithm" onChange={(e) => {
          setAlgorithm(e.currentTarget.value);
          keep({ algorithm: e.currentTarget.value });
          setFilm(null);
        }}>
          {FILMED.map((name) => <option>{name}</option>)}
        </select></label>{' '}
        <button type="button" id="movie-run" onClick={() => run()} disabled={isBusy}>Run</button>{' '}
        {isBusy && <button type="button" onClick={() => core.cancel('movie')}>Cancel</button>}{' '}
        <span aria-live="polite">{status}</span>
      </p>
      {film && placed && (
        <>
          <Stage film={film} placed={placed} t={t} tree={tree} />
          <p class="row">
            <button type="button" onClick={() => { if (t >= film.seconds) setT(0); setPlaying(!isPlaying); }}>
              {isPlaying ? 'Pause' : 'Play'}
            </button>
            <button type="button" id="stage-before" onClick={() => goTo(film.begin(t, -1))}>Previous stage</button>
            <button type="button" id="stage-after" onClick={() => goTo(film.begin(t, 1))}>Next stage</button>
            <label class="grow">time <input type="range" id="scrub" min="0" max={STEPS} value={Math.round((t / film.seconds) * STEPS)}
              aria-valuetext={seconds(t)} onInput={(e) => goTo((Number(e.currentTarget.value) / STEPS) * film.seconds)} /></label>
            <output>{seconds(t)} of {seconds(film.seconds)}</output>
          </p>
          <div class="gantt" aria-hidden="true">
            {film.movie.stages.map((s, i) => (
              <i style={`left:${(100 * s.begin) / film.seconds}%;width:${Math.max(0.3, (100 * (s.end - s.begin)) / film.seconds)}%;top:${(i % 6) * 8}px`}
                class={s.half === 'allgather' ? 'gather' : ''} title={s.what} />
            ))}
            <b style={`left:${(100 * t) / film.seconds}%`} />
          </div>
          <p id="movie-words" aria-live="off">
            {stages.map((s) => `${s.what} (${s.half})`).join('; ') || 'between stages'}
            {worst ? `. ${worst.link.name}: ${worst.senders} sender${worst.senders === 1 ? '' : 's'} at once${worst.excess > 0
              ? `, ${worst.excess} more than it takes without incast` : ''}` : ''}.{pathWords(film.hop(t))}
          </p>
          <p class="legend"><span><i class="key busy-key" />carries messages</span><span><i class="key incast-key" />incast: more senders than w_t</span>
            <span><i class="key dot-key" />a message, its colour is its chunk</span><span><i class="key chosen-key" />on the critical path</span></p>
          <details><summary>What limits each stage</summary>
            <ul>{film.movie.stages.map((s) => <li>{s.what} ({s.half}), {seconds(s.end - s.begin)}: {s.bottleneck}</li>)}</ul>
          </details>
        </>
      )}
    </section>
  );
}
