import assert from 'node:assert/strict';
import { test } from 'node:test';

import { csv } from '../../src/exports.js';
import { Film, lastBefore } from '../../src/film.js';
import { cleaned, commandLine, fromFragment, networkFields, START, toFragment } from '../../src/state.js';
import { bytes, elements, parseBytes, percent, seconds, speed } from '../../src/units.js';

test('a state survives its way through the address', async () => {
  const state = { ...START, topology: 'star:12@100Gbit/s,2us', bytes: 12345, points: [{ bytes: 8, seconds: 1e-6, label: 'é <b>' }] };
  const fragment = await toFragment(state);
  assert.match(fragment, /^s=[A-Za-z0-9_-]+$/);
  assert.deepEqual(await fromFragment(`#${fragment}`), state);
});

test('what is looked at goes along, if it makes sense', async () => {
  const view = { chosen: '0.3/0.1', level: 1, library: 'mpich', heat: true, algorithm: 'cps', moment: 0.25, file: 'today.txt' };
  const state = { ...START, results: '# OSU', view };
  assert.deepEqual(await fromFragment(await toFragment(state)), state);
  assert.deepEqual(cleaned({ view: { chosen: 7, level: 0.5, library: 'x', heat: 1, algorithm: '<b>', moment: 2, file: 'x'.repeat(301), other: 1 } }).view, {});
  for (const odd of [null, 'x', 3, []]) assert.deepEqual(cleaned({ view: odd }).view, {});
  assert.deepEqual(START.view, {});
});

test('an address from anywhere does no harm', async () => {
  assert.equal(await fromFragment('#s=AAAA'), null);
  assert.equal(await fromFragment('#x'), null);
  assert.equal(await fromFragment(''), null);
  const hostile = cleaned({ bytes: 'x', topology: 7, points: [{ bytes: -1 }, 'x', null], __proto__: { evil: 1 }, model: ['x'] });
  assert.deepEqual(hostile, START);
  assert.deepEqual(cleaned(null), START);
});

test('the command line says the same', () => {
  assert.equal(commandLine({ ...START, bytes: 4e8 }), 'gar predict -t tree:16x24 --count 100000000');
  assert.equal(commandLine({ ...START, topology: null, network: '{}', name: "my net'.json", dtype: 'float64', bytes: 80 }, 'plan'),
               "gar plan -t 'my net'\\''.json' --count 10 --dtype float64");
  assert.deepEqual(networkFields({ ...START, network: 'text', topology: null }), { network: 'text' });
});

test('sizes are read as people write them', () => {
  assert.equal(parseBytes('400MB'), 4e8);
  assert.equal(parseBytes(' 1.5 GiB '), 1610612736);
  assert.equal(parseBytes('64K'), 65536);
  assert.equal(parseBytes('4096'), 4096);
  for (const bad of ['', 'x', '-1', '0', '1 XB', '1e99', '4 MB;']) assert.equal(parseBytes(bad), null, bad);
  assert.equal(elements(10, 'float64'), 1);
});

test('numbers are written with units', () => {
  assert.equal(seconds(1.44469), '1.445 s');
  assert.equal(seconds(0.0123), '12.3 ms');
  assert.equal(seconds(0), '0 s');
  assert.equal(seconds(5e-10), '0.5 ns');
  assert.equal(bytes(4e8), '400 MB');
  assert.equal(speed(3.2e-10), '100 Gbit/s');
  assert.equal(speed(0), 'unlimited');
  assert.equal(percent(0.123), '12%');
});

test('CSV keeps cells apart, and no cell is a formula', () => {
  const text = csv([{ bytes: 4, count: 1, results: [{ asked: '=1+1', algorithm: 'a,"b"', seconds: 1, chunks: 1, terms: { alpha: 1, beta: 0, gamma: 0, delta: 0, epsilon: 0 } }] }]);
  assert.equal(text.split('\n')[1], '4,1,"=1+1","a,""b""",1,1,1,0,0,0,0,0');
});

test('a film knows what is on the links at any moment', () => {
  const film = new Film({
    seconds: 2,
    links: [{ name: 'uplink of a', incast_threshold: 1, rank: 0, depth: 1, alike: 1 }, { name: 'b', incast_threshold: 9, rank: 1, depth: 1, alike: 1 }],
    loads: [[0.5, 0, 3, 3], [1.5, 0, 0, 0], [1, 1, 1, 1]],
    flows: [[0, 1, 0, 0, 0, 0.5, 1.5, 1]],
    stages: [{ what: 'x', begin: 0, end: 1 }],
    hops: [[true, 0, 1, 0, 0, 0, 1, 2]],
  });
  assert.deepEqual(film.at(0.2), []);
  assert.equal(film.at(0.7)[0].excess, 2);
  assert.equal(film.at(1.2).length, 2);
  assert.equal(film.at(1.6).length, 1);
  assert.deepEqual(film.messages(1), [{ from: 0, to: 1, chunk: 0, share: 0.5 }]);
  assert.equal(film.messages(1.6).length, 0);
  assert.equal(film.stages(1.5).length, 0);
  assert.equal(film.hop(1).rank, 1);
  assert.equal(film.begin(0.5, -1), 0);
  assert.equal(film.begin(0, 1), 2); // the end: there is no other stage
  film.movie.stages = [{ begin: 0, end: 1 }, { begin: 0.5, end: 2 }, { begin: 1.5, end: 2 }];
  assert.deepEqual([0, 0.5, 1, 1.5].map((t) => film.begin(t, 1)), [0.5, 1.5, 1.5, 2]);
  assert.deepEqual([0, 0.5, 1, 2].map((t) => film.begin(t, -1)), [0, 0, 0.5, 1.5]);
  assert.equal(lastBefore([], 1), -1);
});
