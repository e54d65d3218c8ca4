// The parameters of a level of the network, each with a slider on a logarithmic scale; the interval that a profile
// gives is shaded.
import { useState } from 'preact/hooks';

import { height, intervalOf, LINK, levelNames, parameterOf, SERVER, withParameter, networkText } from './network.js';
import { seconds, short, speed } from './units.js';

const RANGES = { alpha: [1e-8, 1e-1], beta: [1e-12, 1e-5], epsilon: [1e-15, 1e-7], gamma: [1e-13, 1e-8],
                 delta: [1e-13, 1e-8], mu: [1e-8, 1e-2], incast_threshold: [1, 1024] };
const WORDS = { alpha: 'latency (alpha)', beta: 'link speed (beta)', epsilon: 'incast (epsilon)',
                incast_threshold: 'senders without incast (w_t)', gamma: 'adding (gamma)', delta: 'memory access (delta)',
                mu: 'cost of a message (mu)' };
const STEPS = 1000;
const NO_LIMIT = 1e9; // senders: where a file says nothing of incast

export function toStep(name, value) {
  const [low, high] = RANGES[name];
  if (value <= 0) return 0;
  const share = (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low));
  return Math.round(1 + Math.min(1, Math.max(0, share)) * (STEPS - 1));
}

export function fromStep(name, step) {
  const [low, high] = RANGES[name];
  if (step <= 0) return name === 'incast_threshold' ? 1 : 0;
  const value = Math.exp(Math.log(low) + ((step - 1) / (STEPS - 1)) * (Math.log(high) - Math.log(low)));
  return name === 'incast_threshold' ? Math.round(value) : Number(value.toPrecision(4));
}

function words(name, value) {
  if (name === 'incast_threshold') return value >= NO_LIMIT ? 'any number' : short(value);
  if (name === 'beta') return speed(value);
  if (name === 'alpha') return seconds(value);
  if (name === 'mu') return `${seconds(value)} each`;
  return `${seconds(value)} per float`;
}

export function Sliders({ tree, profile, onChange, view, keep }) {
  const [level, setLevel] = useState(view.level ?? 0);
  const names = levelNames(tree);
  const top = height(tree.root);
  const at = Math.min(level, top);
  const shown = ['alpha', ...LINK.slice(0, 3), ...(at === 0 ? SERVER : [])]
    .filter((name) => parameterOf(tree, at, name) !== undefined);
  return (
    <fieldset id="sliders">
      <legend>Parameters of <select aria-label="level" value={at} onChange={(e) => {
        setLevel(Number(e.currentTarget.value));
        keep({ level: Number(e.currentTarget.value) });
      }}>
        {Array.from({ length: top + 1 }, (_, i) => (
          <option value={i}>{i === top ? 'the root' : `each ${names[i]} and its link`}</option>
        ))}
      </select></legend>
      {shown.map((name) => {
        const value = parameterOf(tree, at, name);
        const interval = intervalOf(profile, at, name);
        const low = interval ? (100 * toStep(name, interval.low)) / STEPS : 0;
        const high = interval ? (100 * toStep(name, interval.high)) / STEPS : 0;
        const measured = interval ? `, measured: ${words(name, interval.low)} to ${words(name, interval.high)}` : '';
        return (
          <div class="slider" key={`${at}.${name}`}>
            <label for={`p-${name}`}>{WORDS[name]}</label>
            <span class="track" style={interval ? `--low:${low}%;--high:${Math.max(high, low + 1)}%` : ''}>
              <input id={`p-${name}`} type="range" min="0" max={STEPS} value={toStep(name, value)}
                aria-valuetext={`${words(name, value)}${measured}`} title={measured ? `${WORDS[name]}${measured}` : undefined} class={interval ? 'measured' : ''}
                onInput={(e) => onChange(networkText(withParameter(tree, at, name, fromStep(name, Number(e.currentTarget.value)))),
                  `${WORDS[name]} changed`)} />
            </span>
            <output for={`p-${name}`}>{words(name, value)}</output>
          </div>
        );
      })}
      {profile && <p class="quiet">Shaded: where the profile says the value lies, with a probability of 95%.</p>}
    </fieldset>
  );
}
