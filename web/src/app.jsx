// The page: what is asked on the left, what it means on the right.
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { Bars } from './bars.jsx';
import { Chart } from './chart.jsx';
import { Cancelled } from './client.js';
import { Diagnosis } from './diagnosis.jsx';
import { Heat } from './heat.jsx';
import { Movie } from './movie.jsx';
import { layout, parseNetwork } from './network.js';
import { NodePanel, Picture } from './picture.jsx';
import { Sliders } from './sliders.jsx';
import { fromFragment, isLink, networkFields } from './state.js';
import { Take } from './take.jsx';
import { bytes, count, DTYPES, elements, parseBytes, percent, seconds, short } from './units.js';

const MOST_FILE_BYTES = 12e6;
const FEW = 64; // servers up to which everything is a matter of a moment
const HUGE = 1e5; // servers above which only some algorithms are compared
const LARGE = 1000; // servers above which answers take longer than a moment
const MOMENT = 40; // milliseconds after which something is said, even if it is not the best yet
const CURVE = Array.from({ length: 14 }, (_, i) => 256 * 4 ** i); // bytes: 256 B to 17 GB
const NAMES = ['tree:16x24', 'ss24', 'ss32', 'sym384', 'sym512', 'asy384', 'cdc384', 'star:12@100Gbit/s,2us', 'leafspine:4x16x24',
               'fattree:8', 'million-servers', 'mixed-fleet', 'one-slow-link', 'small-buffers'];

/** The answer in a sentence or two. */
export function sentence(answer, networkName) {
  const { words } = answer;
  const [best] = words.rows;
  if (answer.num_ranks === 1) return `${networkName} is a single server: there is nothing to exchange.`;
  const limit = words.times_bound ? `, ${words.times_bound.toFixed(2)} times the lower limit (${words.bound_seconds}, ${words.bound})` : '';
  return `${best.algorithm}${words.best ? ` (${words.best})` : ''} is fastest: ${seconds(best.seconds)}${best.chunks > 1 ? ` in ${count(best.chunks)} chunks` : ''}${limit}.`;
}

function Answer({ answer, first, error, busy, onCancel, profile, size }) {
  // From the change to what is seen: this runs after the answer was drawn.
  const [shownMs, setShownMs] = useState(null);
  useEffect(() => {
    if (answer) setShownMs((old) => (answer.keepsTime ? old : performance.now() - answer.since));
  }, [answer]);
  const correction = profile?.corrections?.find((c) => c.from_bytes <= size && size < c.to_bytes);
  return (
    <section id="answer" data-network={answer?.topology} aria-labelledby="answer-title" aria-live="polite">
      <h2 id="answer-title" class="hidden">The answer</h2>
      {error ? <p class="error" role="alert">{error}</p> : first ? (
        <p class="sentence first">{count(first.num_ranks)} ranks: {first.words.seconds} or less ({first.best}). Looking for better plans ...</p>
      ) : answer && (
        <>
          <p class="sentence">{sentence(answer, answer.topology)}</p>
          {answer.words.why && <p class="why">{answer.words.why}.</p>}
          {answer.words.by_size && <p class="quiet">Of the classic algorithms in one piece, by size: {answer.words.by_size}.
            {answer.words.by_servers ? ` By servers: ${answer.words.by_servers}.` : ''}</p>}
          {correction && <p class="quiet">Measured AllReduces of this size take {short(correction.factor.value)} times what the
            model says.</p>}
          {answer.words.parameters && <p class="quiet">{answer.words.parameters}</p>}
        </>
      )}
      <p class="quiet status">{busy ? <>{first ? `first answer in ${Math.round(first.ms)} ms, ` : ''}computing ... <button type="button" onClick={onCancel}>Cancel</button></>
        : answer && `${count(answer.num_ranks)} ranks, answered in ${Math.round(shownMs ?? answer.ms)} ms${
          answer.firstMs ? `, a first answer in ${Math.round(answer.firstMs)} ms` : ''}`}</p>
    </section>
  );
}

function SizeInput({ state, onChange }) {
  const [text, setText] = useState(bytes(state.bytes));
  useEffect(() => setText(bytes(state.bytes)), [state.bytes]);
  const value = parseBytes(text);
  const take = () => value && onChange({ bytes: value });
  return (
    <fieldset>
      <legend>Vector</legend>
      <p class="row">
        <label>size <input id="size" size="9" value={text} aria-invalid={value === null} onInput={(e) => setText(e.currentTarget.value)}
          onBlur={take} onKeyDown={(e) => e.key === 'Enter' && take()} /></label>
        <input type="range" min="8" max="136" value={Math.round(Math.log2(state.bytes) * 4)} aria-label="size, from 4 B to 17 GB"
          aria-valuetext={bytes(state.bytes)} id="size-slider"
          onInput={(e) => onChange({ bytes: Math.round(2 ** (Number(e.currentTarget.value) / 4)) })} />
        <label>of <select value={state.dtype} onChange={(e) => onChange({ dtype: e.currentTarget.value })}>
          {DTYPES.map((d) => <option>{d}</option>)}
        </select></label>
        <label>model <select value={state.model} onChange={(e) => onChange({ model: e.currentTarget.value })}>
          <option value="genmodel">GenModel</option><option value="paper">without mu</option><option value="abc">(alpha, beta, gamma)</option>
        </select></label>
      </p>
      {value === null && <p class="error">A size is a number with a unit, such as 400MB or 64KiB.</p>}
    </fieldset>
  );
}

function NetworkInput({ state, net, onChange, onFiles }) {
  const [text, setText] = useState(state.topology ?? '');
  const box = useRef(null);
  useEffect(() => setText(state.topology ?? ''), [state.topology]);
  const take = (value) => value.trim() && onChange({ topology: value.trim(), network: null, name: null, profile: null, results: null, points: [] });
  return (
    <fieldset>
      <legend>Network</legend>
      <p class="row">
        <label>name or generator <input id="topology" list="names" size="20" value={text} onInput={(e) => setText(e.currentTarget.value)}
          ref={box} onKeyDown={(e) => e.key === 'Enter' && take(box.current.value)} /></label>
        <button type="button" id="load" onClick={() => take(box.current.value)}>Show</button>
        <datalist id="names">{NAMES.map((n) => <option value={n} />)}</datalist>
      </p>
      <p class="row"><label class="file">or a file: network, profile, plan, output of gar bench, nccl-tests or OSU, log of NCCL{' '}
        <input type="file" multiple onChange={(e) => onFiles([...e.currentTarget.files])} /></label></p>
      <p class="quiet">Files can be dropped anywhere. Nothing leaves this page.</p>
      {net && <p id="totals">{net.words[0]}</p>}
      {net?.words.length > 1 && <ul class="quiet">{net.words.slice(1).map((w) => <li>{w}</li>)}</ul>}
    </fieldset>
  );
}

const BROKEN_LINK = { name: 'this link', error: 'this link cannot be read, perhaps because a part of it is missing; what is shown is not what it led to', words: [] };

export function App({ core, start, isBroken, onLink }) {
  const [state, setState] = useState(start);
  const [net, setNet] = useState(null);
  const [answer, setAnswer] = useState(null);
  const [first, setFirst] = useState(null);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const [curve, setCurve] = useState(null);
  const [curveStatus, setCurveStatus] = useState('');
  const [profile, setProfile] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [found, setFound] = useState(isBroken ? BROKEN_LINK : null);
  const [edits, setEdits] = useState([]);
  const history = useRef([]);
  const run = useRef(0);
  const view = useRef({ ...start.view });
  const keep = useCallback((patch) => Object.assign(view.current, patch), []);

  const change = useCallback((patch, what) => {
    setState((old) => {
      history.current.push(old);
      if (history.current.length > 200) history.current.shift();
      return { ...old, ...patch };
    });
    if (what) setEdits((list) => [...list.filter((w) => w !== what), what].slice(-5));
    else if (patch.topology) setEdits([]);
  }, []);
  const edit = useCallback((text, what) => change({ network: text, topology: null, name: state.name ?? 'network.json' }, what), [change, state.name]);
  const undo = () => {
    const old = history.current.pop();
    if (old) setState(old);
    setEdits((list) => list.slice(0, -1));
  };

  const fields = useMemo(() => networkFields(state), [state.network, state.topology, state.profile, state.name]);
  const fieldsKey = JSON.stringify(fields);

  // The network, then its answer, then the curve.
  useEffect(() => {
    const mine = (run.current += 1);
    const isOld = () => run.current !== mine;
    const since = performance.now();
    let timer = 0;
    let firstMs = null; // after which something was said
    (async () => {
      setBusy(true);
      setFirst(null);
      setError('');
      // What nobody waits for any more would only be in the way.
      core.cancel('predict');
      core.cancel('first');
      core.cancel('flips');
      try {
        const next = await core.ask({ ask: 'network', ...fields }, { key: 'network' });
        if (isOld()) return;
        setNet(next);
        const question = { ask: 'predict', words: true, ...fields, model: state.model, dtype: state.dtype,
                           count: String(elements(state.bytes, state.dtype)) };
        if (next.num_servers > HUGE) question.algo = 'gentree+,ring,rhd,hcps';
        // What is found at once, in a few milliseconds; it is shown where the best of all takes longer than a moment.
        if (next.num_servers > FEW) {
          const algo = next.num_servers > HUGE ? 'ring,cps' : 'gentree,ring,rhd,cps';
          core.ask({ ...question, quick: true, algo }, { key: 'first' }).then((soon) => {
            const show = () => {
              if (isOld()) return;
              firstMs = performance.now() - since;
              setFirst({ ...soon, ms: firstMs });
            };
            timer = setTimeout(show, next.num_servers > LARGE ? 0 : Math.max(0, MOMENT - (performance.now() - since)));
          }).catch(() => {});
        }
        const got = await core.ask({ ...question, quick: true }, { key: 'predict' });
        clearTimeout(timer);
        core.cancel('first');
        if (isOld()) return;
        setAnswer({ ...got, since, firstMs });
        setFirst(null);
        setBusy(false);
        // Where the choice changes takes longer, and nobody has to wait for it.
        if (next.num_servers <= 1e4) {
          const whole = await core.ask(question, { key: 'flips', slow: true });
          if (!isOld()) setAnswer({ ...whole, firstMs, keepsTime: true });
        }
      } catch (problem) {
        clearTimeout(timer);
        if (!(problem instanceof Cancelled) && !isOld()) setError(problem.message);
      }
      if (!isOld()) setBusy(false);
    })();
    return () => clearTimeout(timer);
  }, [fieldsKey, state.bytes, state.dtype, state.model]);

  useEffect(() => {
    if (!net) return undefined;
    let isOld = false;
    (async () => {
      try {
        // The old one stays until there is a new one, but looks it.
        setCurve((old) => old && { ...old, isStale: true });
        setCurveStatus('computing ...');
        const ask = (sizes, more) => core.ask({ ask: 'curve', ...fields, model: state.model, ...more,
          counts: sizes.map((b) => String(b / 4)) }, { key: 'curve', slow: true });
        const most = net.num_servers <= FEW ? CURVE.length : net.num_servers <= LARGE ? 4 : 1;
        const rows = [];
        const groups = CURVE.filter((_, i) => i % most === 0).map((_, i) => CURVE.slice(i * most, (i + 1) * most));
        for (const [i, group] of groups.entries()) {
          const more = net.num_servers > HUGE ? { algo: 'gentree+,ring,rhd' } : {};
          rows.push(...(await ask(group, more)).rows);
          if (isOld) return;
          setCurve({ rows: [...rows], isPartial: i + 1 < groups.length });
          setCurveStatus(i + 1 < groups.length ? `${rows.length} of ${CURVE.length} sizes` : '');
        }
      } catch (problem) {
        if (!isOld) setCurveStatus(problem instanceof Cancelled ? 'cancelled' : problem.message);
      }
    })();
    return () => {
      isOld = true;
    };
  }, [net?.network, state.model]);

  useEffect(() => {
    if (!state.profile) {
      setProfile(null);
      return;
    }
    core.ask({ ask: 'profile', profile: state.profile, name: 'profile' }, { key: 'profile' })
      .then(setProfile).catch(() => setProfile(null));
  }, [state.profile]);

  const tree = useMemo(() => (net ? parseNetwork(net.network) : null), [net?.network]);
  const choose = (part) => {
    setChosen(part);
    keep({ chosen: part?.key });
  };
  useEffect(() => {
    // An edit makes a file of a name; what was chosen is still there.
    if (state.topology && tree) choose(null);
  }, [state.topology]);
  useEffect(() => {
    if (tree && start.view.chosen !== undefined && history.current.length === 0)
      choose(layout(tree).nodes.find((part) => part.key === start.view.chosen) ?? null);
  }, [tree]);

  /** What a plan, a log or results say beside the network of that state. */
  const judged = async (seen, text, name, beside) => {
    if (seen.kind === 'plan') {
      const proof = await core.ask({ ask: 'verify', plan: text, name }, { key: 'verify' });
      return { ...seen, rows: [], words: [...seen.words, proof.ok ? 'it is right: every rank ends with every contribution exactly once'
        : `it is wrong: ${proof.problem}`] };
    }
    if (seen.kind === 'nccl-log') return { ...seen, words: [], rows: [] };
    try {
      const by = beside.profile ? { profile: beside.profile } : networkFields(beside);
      const verdict = await core.ask({ ask: 'diagnose', results: text, name, ...by }, { key: 'diagnose' });
      // What the log says stands by itself.
      const words = verdict.words.filter((w) => !seen.nccl || !w.startsWith('the log of NCCL: '));
      return { ...seen, rows: verdict.rows, words: [...seen.words, ...words] };
    } catch (problem) {
      return { ...seen, rows: [], words: [...seen.words, problem.message] };
    }
  };
  useEffect(() => {
    if (!start.results) return;
    const name = start.view.file ?? 'results';
    (async () => {
      try {
        const seen = await core.ask({ ask: 'inspect', text: start.results, name }, { key: 'inspect' });
        setFound({ ...(await judged(seen, start.results, name, start)), name });
      } catch (problem) {
        setFound({ name, error: problem.message, words: [] });
      }
    })();
  }, []);

  const inspected = async (file) => {
    if (file.size > MOST_FILE_BYTES) {
      throw new Error(`${file.name}: has ${bytes(file.size)}; this page reads files of up to ${bytes(MOST_FILE_BYTES)}`);
    }
    const text = await file.text();
    return { name: file.name, text, seen: await core.ask({ ask: 'inspect', text, name: file.name }, { key: 'inspect' }) };
  };
  /** The state that the network, profile or results of a file lead to from that one. */
  const taken = ({ name, text, seen }, before) => {
    const turn = (patch, words) => {
      change(patch, words);
      return { ...before, ...patch };
    };
    if (seen.kind === 'topology' || seen.kind === 'measurements')
      return turn({ network: seen.network, topology: null, name, profile: null }, `network of ${name}`);
    if (seen.kind === 'profile')
      return turn({ network: seen.network, topology: null, name: 'network.json', profile: seen.profile }, `profile ${name}`);
    keep({ file: name });
    if (seen.kind === 'nccl-log' && seen.topology)
      return turn({ topology: seen.topology, network: null, name: null, profile: null, points: [], results: text }, null);
    if (seen.kind === 'nccl-log' || seen.kind === 'plan') {
      // Without the guess of a network the page keeps the one it has.
      setState((old) => ({ ...old, results: text }));
      return { ...before, results: text };
    }
    const points = seen.rows.map((r) => ({ bytes: r.bytes, seconds: r.seconds, label: r.label || r.algorithm || seen.format }));
    return turn({ points, results: text }, null);
  };
  const isNetwork = ({ seen }) => ['topology', 'measurements', 'profile'].includes(seen.kind);
  /** Of several files networks come first, so that results are judged beside them. */
  const takeFiles = async (files) => {
    const read = [];
    let failed = null;
    for (const file of files.slice(0, 20)) {
      try {
        setFound({ name: file.name, words: ['reading ...'] });
        read.push(await inspected(file));
      } catch (problem) {
        failed = { name: file.name, error: problem.message, words: [] };
      }
    }
    let now = state;
    for (const one of [...read.filter(isNetwork), ...read.filter((r) => !isNetwork(r))]) {
      now = taken(one, now);
      setFound({ ...(isNetwork(one) ? one.seen : await judged(one.seen, one.text, one.name, now)), name: one.name });
    }
    if (failed) setFound(failed);
  };
  const takeRef = useRef(takeFiles);
  takeRef.current = takeFiles;
  useEffect(() => {
    const over = (e) => e.preventDefault();
    const drop = (e) => {
      e.preventDefault();
      takeRef.current([...(e.dataTransfer?.files ?? [])]);
    };
    const hash = async () => {
      const next = await fromFragment(location.hash);
      if (next) onLink(next);
      else if (isLink(location.hash)) setFound(BROKEN_LINK);
    };
    document.addEventListener('dragover', over);
    document.addEventListener('drop', drop);
    window.addEventListener('hashchange', hash);
    return () => {
      document.removeEventListener('dragover', over);
      document.removeEventListener('drop', drop);
      window.removeEventListener('hashchange', hash);
    };
  }, []);

  const asked = { count: String(elements(state.bytes, state.dtype)), dtype: state.dtype };
  const cancel = () => {
    core.cancel('predict');
    core.cancel('network');
    setBusy(false);
  };
  return (
    <>
      <header><h1>What does AllReduce cost on this network?</h1></header>
      <main>
        <Answer answer={answer} first={busy ? first : null} error={error} busy={busy} onCancel={cancel} profile={profile} size={state.bytes} />
        <div class="left">
          <NetworkInput state={state} net={net} onChange={change} onFiles={takeFiles} />
          <Diagnosis found={found} />
          {tree ? <Picture tree={tree} chosen={chosen?.key} onChoose={choose} />
            : net && <p class="quiet">This network has too many different parts to be drawn and edited here.</p>}
          {tree && <NodePanel tree={tree} chosen={chosen} onChange={edit} />}
          {edits.length > 0 && <p id="edits">Changed: {edits.join('; ')}. <button type="button" id="undo" onClick={undo}>Undo</button></p>}
          <SizeInput state={state} onChange={change} />
          {tree && <Sliders tree={tree} profile={profile} onChange={edit} view={start.view} keep={keep} />}
        </div>
        <div class="right">
          <section aria-labelledby="curve-title">
            <h2 id="curve-title">Time against size</h2>
            {curve && <div class={curve.isStale ? 'stale' : ''}>
              <Chart rows={curve.rows} points={state.points} here={state.bytes} onSize={(b) => change({ bytes: b })} />
            </div>}
            {curveStatus && <p class="quiet" aria-live="polite">{curveStatus}{' '}
              {curveStatus.includes(' of ') && <button type="button" onClick={() => core.cancel('curve')}>Cancel</button>}</p>}
          </section>
          {answer && !error && <section aria-labelledby="bars-title" class={busy ? 'stale' : ''}><h2 id="bars-title">Where the time goes</h2>
            <Bars results={answer.words.rows} /></section>}
          <Heat core={core} network={net?.network} fields={fields} model={state.model} view={start.view} keep={keep} />
          {tree && <Movie core={core} tree={tree} fields={fields} state={state} counts={asked} view={start.view} keep={keep} />}
          <Take core={core} state={state} view={view} answer={answer} curve={curve} net={net} fields={fields} />
        </div>
      </main>
      <footer><p class="quiet">gar {answer?.gar_version ?? ''}. All of this is computed on this page: no server is asked.{' '}
        {answer?.margin > 0 ? `The margin of the best is ${percent(answer.margin)}.` : ''}</p></footer>
    </>
  );
}
