// What can be taken along: a link, pictures, numbers, documents, and the commands that do the same.
import { useState } from 'preact/hooks';

import { csv, save, savePng, svgText } from './exports.js';
import { cleaned, commandLine, toFragment } from './state.js';
import { bytes, elements } from './units.js';

// The id of each picture on the page, with its name; saved as a file of the name of the id.
const PICTURES = [['curve', 'time against size'], ['bars', 'where the time goes'], ['picture', 'the network'], ['film', 'the film, at this moment']];

const MOST_LINK = 2e6; // characters that browsers take

export function Take({ core, state, view, answer, curve, net, fields }) {
  const [message, setMessage] = useState('');
  const [link, setLink] = useState('');
  const [which, setWhich] = useState('curve');
  const isWhole = curve && !curve.isStale && !curve.isPartial;
  const isDrawn = which !== 'curve' || isWhole;
  const name = which === 'picture' ? 'network' : which;
  const drawn = () => {
    const svg = document.getElementById(which);
    if (!svg) throw new Error(`${PICTURES.find(([id]) => id === which)[1]} is not on the page now`);
    return svg;
  };
  const what = { ...fields, count: String(elements(state.bytes, state.dtype)), dtype: state.dtype, model: state.model };
  const busy = async (work) => {
    try {
      setMessage('...');
      await work();
      setMessage('saved');
    } catch (error) {
      setMessage(error.message);
    }
  };
  const copy = async (text, what_) => {
    try {
      await navigator.clipboard.writeText(text);
      setMessage(`the ${what_} in the clipboard`);
    } catch {
      setMessage('copy it below');
    }
  };
  const share = async () => {
    const text = `${location.href.split('#')[0]}#${await toFragment(cleaned({ ...state, view: view.current }))}`;
    if (text.length > MOST_LINK) {
      setMessage(`the link would have ${bytes(text.length)}, more than browsers take: save the network instead`);
      return;
    }
    setLink(text);
    await copy(text, 'link is');
  };
  const commands = `${commandLine(state)}\n${commandLine(state, 'plan')}\n${commandLine(state, 'simulate')} --algo gentree+`;
  return (
    <section aria-labelledby="export-title" id="exports">
      <h2 id="export-title">Take it with you</h2>
      <p class="row">
        <button type="button" id="share" onClick={share}>Link to this</button>
        <label>Picture <select id="which" value={which} onChange={(e) => setWhich(e.currentTarget.value)}>
          {PICTURES.map(([id, name]) => <option value={id}>{name}</option>)}
        </select></label>
        <button type="button" id="save-svg" disabled={!isDrawn} onClick={() => busy(async () => save(`${name}.svg`, svgText(drawn()), 'image/svg+xml'))}>as SVG</button>
        <button type="button" id="save-png" disabled={!isDrawn} onClick={() => busy(() => savePng(`${name}.png`, drawn()))}>as PNG</button>
        <button type="button" onClick={() => busy(async () => save('curve.csv', csv(curve.rows), 'text/csv'))} id="save-csv" disabled={!isWhole}>Times as CSV</button>
        <button type="button" onClick={() => busy(async () => {
          const { text } = await core.ask({ ask: 'predict', ...what }, { key: 'export' });
          save('predict.json', text, 'application/json');
        })} id="save-json" disabled={!answer}>Answer as JSON</button>
        <button type="button" onClick={() => busy(async () => {
          const { text } = await core.ask({ ask: 'plan', ...what, raw: true }, { key: 'export' });
          save('plan.json', text, 'application/json');
        })} id="save-plan" disabled={!answer}>Plan</button>
        <button type="button" onClick={() => busy(async () => {
          const { text } = await core.ask({ ask: 'trace', ...what }, { key: 'export', slow: true });
          save('trace.json', text, 'application/json');
        })} id="save-trace" disabled={!answer}>Trace for Perfetto</button>
        <button type="button" onClick={() => save(state.name ?? 'network.json', net.network, 'application/json')} id="save-network" disabled={!net}>Network</button>
        {state.profile && <button type="button" onClick={() => save('profile.json', state.profile, 'application/json')}>Profile</button>}
        <span aria-live="polite">{message}</span>
      </p>
      {link && <p><label>Link <input class="wide" readOnly value={link} id="permalink" onFocus={(e) => e.currentTarget.select()} /></label></p>}
      <p>The same on the command line{state.network ? ', with the network saved above' : ''}:{' '}
        <button type="button" id="copy-commands" onClick={() => copy(commands, 'commands are')}>Copy</button></p>
      <pre id="command" tabindex="0">{commands}</pre>
    </section>
  );
}
