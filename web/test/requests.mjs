// A thousand random questions to the core as WebAssembly and to the native one: node requests.mjs CORE_FOLDER GAR_ASK [N] [SEED]
// Both answers must be the same text, byte for byte.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [folder, native, number = '1000', seed = '1'] = process.argv.slice(2);
const data = (name) => readFileSync(new URL(`../../tests/golden/data/${name}`, import.meta.url), 'utf8');

/** Mulberry32: small, and the same everywhere. */
function randomOf(start) {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x ^= x + Math.imul(x ^ (x >>> 7), 61 | x);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}
const random = randomOf(Number(seed));
const whole = (low, high) => low + Math.floor(random() * (high - low + 1));
const pick = (list) => list[whole(0, list.length - 1)];
const logarithmic = (low, high) => Number((10 ** (Math.log10(low) + random() * (Math.log10(high) - Math.log10(low)))).toPrecision(3));
const maybe = (share, value) => (random() < share ? value : {});

const FLAT = ['cps', 'hcps', 'ring', 'rhd', 'reduce-broadcast', 'recursive-doubling', 'binomial', 'gather'];
const TREE = ['gentree', 'gentree-norearrange', 'gentree+'];

function randomTree(depth) {
  const link = { beta: logarithmic(1e-11, 1e-7), epsilon: random() < 0.3 ? 0 : logarithmic(1e-14, 1e-9), incast_threshold: whole(1, 12) };
  const node = { name: pick(['a', 'rack', 'é<b>', 'node 7']), repeat: random() < 0.4 ? 1 : whole(2, 6), alpha: logarithmic(1e-7, 1e-2), ...link };
  if (depth === 0 || random() < 0.3) {
    return { ...node, gamma: logarithmic(1e-12, 1e-9), delta: logarithmic(1e-12, 1e-9), ...maybe(0.4, { mu: logarithmic(1e-8, 1e-4) }) };
  }
  return { ...node, children: children(depth - 1) };
}
// Siblings of one name become one count of instances, so their names may repeat.
function children(depth) {
  return Array.from({ length: whole(1, 3) }, (_, i) => ({ ...randomTree(depth), name: `n${i}` }));
}

function network() {
  if (random() < 0.45) {
    return { topology: pick([`star:${whole(2, 40)}`, `tree:${whole(2, 6)}x${whole(2, 8)}`, `tree:2x${whole(2, 4)}x${whole(2, 4)}`,
                             `leafspine:${whole(1, 4)}x${whole(2, 4)}x${whole(2, 6)}`, 'fattree:4', 'ss24', 'ss32', 'sym384', 'cdc384',
                             'mixed-fleet', 'one-slow-link', 'seven-servers', `star:${whole(2, 12)}@${whole(1, 400)}Gbit/s,${whole(1, 20)}us`,
                             'nonsense', 'star:0']) };
  }
  const tree = { name: 'root', alpha: logarithmic(1e-7, 1e-2), children: children(whole(0, 2)) };
  return { network: JSON.stringify({ schema: 'gar.topology/1', name: pick(['net', 'ü']), tree }), name: 'net.json' };
}
const size = () => (random() < 0.5 ? { count: String(logarithmic(1, 1e9) | 0) } : { size: `${whole(1, 999)}${pick(['kB', 'KiB', 'MB', 'MiB'])}`, dtype: 'int8' });
const model = () => maybe(0.3, { model: pick(['genmodel', 'paper', 'abc']) });
const algo = () => maybe(0.6, { algo: random() < 0.2 ? pick(['hcps:2x3', 'nonsense', 'ring,', 'hcps:~3x4']) : [pick(FLAT), pick([...FLAT, ...TREE])].join(',') });
const conditions = () => ({ ...maybe(0.2, { degrade: [`${whole(0, 3)}.uplink=${whole(1, 9) / 10}`] }), ...maybe(0.2, { slow: [`${whole(0, 3)}=${whole(1, 5)}`] }),
                            ...maybe(0.15, { jitter: String(whole(1, 20) / 100), seed: String(whole(1, 99)) }) });

/** A plan that the native core makes now; of some, something is changed, so that it is wrong. */
function freshPlan() {
  const asked = JSON.stringify({ ask: 'plan', topology: pick([`star:${whole(2, 13)}`, `tree:2x${whole(2, 5)}`]), count: String(logarithmic(1, 1e6) | 0), algo: pick([...FLAT, ...TREE]) });
  const answer = execFileSync(native, { input: `${asked}\n` });
  const plan = answer.subarray(answer.indexOf(10) + 1).toString().trimEnd();
  return random() < 0.8 ? plan : plan.replace(/"stride": ?1\b/, '"stride":2');
}

function question() {
  const kind = pick(['predict', 'predict', 'curve', 'heat', 'plan', 'plan', 'simulate', 'simulate', 'movie', 'trace', 'topology', 'network', 'inspect', 'diagnose', 'verify', 'profile', 'other']);
  switch (kind) {
    case 'predict':
      return { ask: kind, ...network(), ...size(), ...model(), ...algo(), ...maybe(0.5, { words: true }), ...maybe(0.3, { quick: true }) };
    case 'curve':
      return { ask: kind, ...network(), counts: Array.from({ length: whole(1, 6) }, () => String(logarithmic(1, 1e9) | 0)), ...model(), ...algo() };
    case 'heat':
      return { ask: kind, ...network(), counts: ['1e2', '1e5', '1e7'], library: pick(['openmpi', 'mpich', 'x']), ...maybe(0.5, { servers_per_switch: whole(2, 9) }), algo: 'gentree+,ring,rhd' };
    case 'plan':
      return { ask: kind, ...network(), ...size(), ...model(), ...maybe(0.5, { algo: pick([...FLAT, ...TREE]) }), ...maybe(0.4, { explain: true }),
               ...maybe(0.3, { collective: pick(['reduce-scatter', 'allgather', 'allreduce']) }) };
    case 'simulate':
      return { ask: kind, ...network(), ...size(), ...model(), algo: pick([...FLAT, ...TREE]), ...conditions(), ...maybe(0.2, { barrier: true }) };
    case 'movie':
      return { ask: kind, topology: pick([`star:${whole(2, 9)}`, `tree:2x${whole(2, 4)}`]), ...size(), algo: pick([...FLAT, ...TREE]), ...maybe(0.5, { engine: 'flows' }) };
    case 'trace':
      return { ask: kind, topology: `tree:2x${whole(2, 4)}`, ...size(), algo: pick([...FLAT, ...TREE]) };
    case 'topology':
    case 'network':
      return { ask: kind, ...network() };
    case 'inspect':
      return { ask: kind, name: 'f', text: pick(['', '{', '<script>', '{"schema":"gar.plan/2"}', network().network ?? 'x',
                                                 '# nThread 1 nGpus 4\n# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n 1048576 262144 float sum -1 2651.0 0.40 0.59 0 2638.0 0.40 0.60 0\n']) };
    case 'verify':
      return { ask: kind, plan: freshPlan(), ...maybe(0.5, { name: 'plan.json' }), ...maybe(0.5, { seed: String(whole(1, 99)) }) };
    case 'profile':
      return { ask: kind, profile: data('profile.json'), name: 'profile.json' };
    case 'diagnose':
      if (random() < 0.5) {
        const results = pick(['nccl.txt', 'osu.txt', 'osu_full.txt', 'bench.txt']);
        return { ask: kind, results: data(results), name: results, ...(random() < 0.5 ? { profile: data('profile.json') } : { topology: pick(['star:4', 'star:8']) }) };
      }
      return { ask: kind, topology: `star:${whole(2, 8)}`, name: 'osu', results: `# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n${whole(1, 99)}    ${whole(1, 99)}.5\n1048576   ${whole(100, 99999)}.0\n` };
    default:
      return pick([{ ask: 'nothing' }, {}, { ask: 7 }, { ask: 'predict' }, { ask: 'verify' }, { ask: 'profile', profile: '{}' }, [1]]);
  }
}

async function wasmAnswers(questions) {
  const createGar = createRequire(import.meta.url)(resolve(folder, 'gar_core.js'));
  const core = await createGar({ wasmBinary: readFileSync(join(folder, 'gar_core.wasm')) });
  return questions.map((text) => {
    const length = core.lengthBytesUTF8(text) + 1;
    const at = core._malloc(length);
    core.stringToUTF8(text, at, length);
    const answer = core.UTF8ToString(core._gar_answer(at));
    core._free(at);
    return answer;
  });
}

function nativeAnswers(questions) {
  return new Promise((done, fail) => {
    const program = spawn(native, [], { stdio: ['pipe', 'pipe', 'inherit'] });
    const parts = [];
    program.stdout.on('data', (part) => parts.push(part));
    program.on('error', fail);
    program.on('close', (code) => {
      if (code !== 0) return fail(new Error(`${native} ended with ${code}`));
      const all = Buffer.concat(parts);
      const answers = [];
      for (let at = 0; at < all.length;) {
        const end = all.indexOf(10, at);
        const length = Number(all.subarray(at, end).toString());
        answers.push(all.subarray(end + 1, end + 1 + length).toString());
        at = end + 1 + length;
      }
      return done(answers);
    });
    program.stdin.end(`${questions.join('\n')}\n`);
  });
}

const questions = Array.from({ length: Number(number) }, () => JSON.stringify(question()));
const begin = performance.now();
const mine = await wasmAnswers(questions);
const middle = performance.now();
const theirs = await nativeAnswers(questions);
const end = performance.now();
let different = 0;
const kinds = {};
questions.forEach((text, i) => {
  const schema = /"schema": ?"([^"]*)"/.exec(theirs[i])?.[1] ?? (theirs[i]?.includes('traceEvents') ? 'a trace' : 'a plan');
  kinds[schema] = (kinds[schema] ?? 0) + 1;
  if (mine[i] === theirs[i]) return;
  different += 1;
  if (different > 5) return;
  let at = 0;
  while (mine[i][at] === theirs[i]?.[at] && at < mine[i].length) at += 1;
  console.error(`different: ${text.slice(0, 600)}\n  WebAssembly: ...${mine[i].slice(Math.max(0, at - 60), at + 60)}\n  native:      ...${theirs[i]?.slice(Math.max(0, at - 60), at + 60)}`);
});
console.log(Object.entries(kinds).sort().map(([name, n]) => `${n} ${name}`).join(', '));
console.log(`${questions.length} questions, ${different} answers differ; WebAssembly ${((middle - begin) / 1000).toFixed(1)} s, native ${((end - middle) / 1000).toFixed(1)} s`);
process.exit(different === 0 && theirs.length === questions.length ? 0 : 1);
