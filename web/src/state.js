// What the page shows, as one value; and that value in the fragment of the address.
import { elements } from './units.js';

export const START = {
  topology: 'tree:16x24', // a name or a generator, or
  network: null, // the text of a topology file
  name: null, // of that file
  profile: null, // the text of a profile
  bytes: 400e6,
  dtype: 'float32',
  model: 'genmodel',
  points: [], // measured: {bytes, seconds, label}
  results: null, // the text of the last file that was judged: results, a log, a plan
  view: {}, // what is looked at, see VIEW
};

const FIELDS = Object.keys(START);

export const LIBRARIES = ['openmpi', 'mpich'];
export const FILMED = ['gentree+', 'gentree', 'cps', 'hcps', 'ring', 'rhd', 'reduce-broadcast'];

const isText = (value) => typeof value === 'string' && value.length <= 300;

// What parts of the page show: each field with what it may be.
const VIEW = {
  chosen: isText, // the key of a part of the network
  level: (value) => Number.isInteger(value) && value >= 0 && value <= 64, // of the sliders
  library: (value) => LIBRARIES.includes(value),
  heat: (value) => typeof value === 'boolean', // the map has been computed
  algorithm: (value) => FILMED.includes(value),
  moment: (value) => Number.isFinite(value) && value >= 0 && value <= 1, // of the film that is there
  file: isText, // the name of the file that was judged
};

function cleanedView(given) {
  if (typeof given !== 'object' || given === null) return {};
  return Object.fromEntries(Object.entries(VIEW).filter(([field, isRight]) => Object.hasOwn(given, field) && isRight(given[field]))
    .map(([field]) => [field, given[field]]));
}

/** Only what is known, and only where it has the right type: an address comes from anywhere. */
export function cleaned(value) {
  const out = { ...START };
  if (typeof value !== 'object' || value === null) return { ...out, view: {} };
  out.view = cleanedView(value.view);
  for (const field of FIELDS) {
    const given = value[field];
    if (given === undefined || field === 'view') continue;
    if (field === 'points') {
      if (Array.isArray(given)) out.points = given.filter(isPoint).slice(0, 5000);
    } else if (field === 'bytes') {
      if (Number.isFinite(given) && given >= 1 && given <= 2 ** 62) out.bytes = given;
    } else if (given === null || typeof given === 'string') {
      if (given !== null || START[field] === null || field === 'topology') out[field] = given;
    }
  }
  if (!out.topology && !out.network && !out.profile) out.topology = START.topology;
  return out;
}

function isPoint(p) {
  return typeof p === 'object' && p !== null && Number.isFinite(p.bytes) && p.bytes > 0 && Number.isFinite(p.seconds) &&
    p.seconds > 0 && typeof p.label === 'string';
}

async function piped(data, stream) {
  const out = new Blob([data]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(out).arrayBuffer());
}

function toBase64Url(data) {
  let text = '';
  for (const byte of data) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export function fromBase64(text) {
  const raw = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(raw, (c) => c.charCodeAt(0));
}

/** The fragment, without #: only what differs from the start. */
export async function toFragment(state) {
  const short = Object.fromEntries(FIELDS.filter((f) => JSON.stringify(state[f]) !== JSON.stringify(START[f]))
    .map((f) => [f, state[f]]));
  const data = new TextEncoder().encode(JSON.stringify(short));
  return `s=${toBase64Url(await piped(data, new CompressionStream('deflate-raw')))}`;
}

const MOST_BYTES = 8e6;

/** Is this the fragment of a link to a state, whether or not it can be read? */
export const isLink = (fragment) => /^#?s=./.test(fragment);

/** The state of a fragment; null when there is none, or none that can be read. */
export async function fromFragment(fragment) {
  const match = /^#?s=([A-Za-z0-9_-]+)$/.exec(fragment);
  if (!match || match[1].length > MOST_BYTES) return null;
  try {
    const data = await piped(fromBase64(match[1]), new DecompressionStream('deflate-raw'));
    if (data.length > 2 * MOST_BYTES) return null;
    return cleaned(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return null;
  }
}

/** The fields of a question that say which network it is about. */
export function networkFields(state) {
  if (state.network) return { network: state.network, ...(state.name ? { name: state.name } : {}) };
  if (state.topology) return { topology: state.topology };
  return { profile: state.profile };
}

const shellWord = (word) => (/^[A-Za-z0-9@%+=:,./_-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The command that prints the same answer. */
export function commandLine(state, verb = 'predict') {
  const words = ['gar', verb];
  if (state.network) words.push('-t', shellWord(state.name ?? 'network.json'));
  else if (state.topology) words.push('-t', shellWord(state.topology));
  else words.push('-p', 'profile.json');
  words.push('--count', String(elements(state.bytes, state.dtype)));
  if (state.dtype !== 'float32') words.push('--dtype', state.dtype);
  if (state.model !== 'genmodel') words.push('--model', state.model);
  return words.join(' ');
}
