import assert from 'node:assert/strict';
import { test } from 'node:test';

import { changed, degraded, instanceName, intervalOf, layout, levelNames, networkText, parameterOf, parseNetwork, servers, withParameter }
  from '../../src/network.js';

const FILE = {
  schema: 'gar.topology/1',
  name: 'two levels',
  classes: { far: { alpha: 1e-3 }, cable: { beta: 1e-9, epsilon: 1e-12, incast_threshold: 9 } },
  subtrees: { rack: { class: ['far', 'cable'], children: [
    { name: 'server', repeat: 24, alpha: 2e-3, beta: 4e-9, epsilon: 0, incast_threshold: 9, gamma: 1e-10, delta: 1e-10 }] } },
  tree: { name: 'root', alpha: 5e-3, children: [{ ref: 'rack', name: 'rack', repeat: 16 }] },
};
const network = () => parseNetwork(JSON.stringify(FILE));

test('references, classes and repetitions become one tree', () => {
  const tree = network();
  assert.equal(servers(tree.root), 384);
  const [rack] = tree.root.children;
  assert.equal(rack.repeat, 16);
  assert.equal(rack.alpha, 1e-3);
  assert.equal(rack.beta, 1e-9);
  assert.deepEqual(levelNames(tree), ['server', 'rack']);
});

test('what was written is read back as the same tree', () => {
  const tree = network();
  assert.deepEqual(parseNetwork(networkText(tree)), tree);
});

test('one of many changes and the others stay', () => {
  const tree = changed(network(), [0], [3], (rack) => degraded(rack, 0.5));
  assert.deepEqual(tree.root.children.map((c) => c.repeat), [3, 1, 12]);
  assert.equal(tree.root.children[1].beta, 2e-9);
  assert.equal(tree.root.children[1].epsilon, 2e-12);
  assert.equal(servers(tree.root), 384);
});

test('a change of a server in one rack takes that rack apart', () => {
  const tree = changed(network(), [0, 0], [2, 5], (server) => degraded(server, 0.25));
  assert.deepEqual(tree.root.children.map((c) => c.repeat), [2, 1, 13]);
  assert.deepEqual(tree.root.children[1].children.map((c) => c.repeat), [5, 1, 18]);
});

test('a cut link takes away what is below; the last one leaves nothing', () => {
  assert.equal(servers(changed(network(), [0], [0], () => null).root), 360);
  assert.equal(changed(network(), [0], null, () => null), null);
});

test('what becomes equal again is one run again', () => {
  const once = changed(network(), [0], [3], (rack) => ({ ...rack, beta: 2e-9 }));
  const back = changed(once, [1], [0], (rack) => ({ ...rack, beta: 1e-9 }));
  assert.deepEqual(back, network());
});

test('a slider moves a whole level and keeps the differences within it', () => {
  const uneven = changed(network(), [0], [0], (rack) => ({ ...rack, beta: 3e-9 }));
  const moved = withParameter(uneven, 1, 'beta', 6e-9);
  assert.equal(parameterOf(moved, 1, 'beta'), 6e-9);
  assert.ok(Math.abs(moved.root.children[1].beta - 2e-9) < 1e-20);
  assert.equal(parameterOf(moved, 0, 'beta'), 4e-9);
  assert.equal(parameterOf(moved, 2, 'beta'), undefined);
});

test('instances are called as the core calls them', () => {
  const uneven = changed(network(), [0], [3], (rack) => degraded(rack, 0.5));
  assert.equal(instanceName(uneven, { path: [1], instances: [0] }), 'rack3');
  assert.equal(instanceName(uneven, { path: [2, 0], instances: [0, 7] }), 'rack4/server7');
  assert.equal(instanceName(uneven, { path: [], instances: [] }), 'root');
});

test('long runs are drawn by some of their nodes, with the right ranks', () => {
  const placed = layout(network());
  assert.equal(placed.isWhole, false);
  assert.ok(placed.nodes.length < 40);
  const last = placed.nodes.at(-1);
  assert.equal(last.last, 383);
  assert.equal(placed.gaps.length, 4);
  assert.equal(layout(changed(network(), [0], null, (r) => ({ ...r, repeat: 1 }))).nodes.filter((n) => !n.node.children).length, 24);
});

test('intervals of a profile belong to the levels of its links', () => {
  const between = (low) => ({ value: 1.5 * low, low, high: 2 * low });
  const profile = { levels: [{ alpha: between(4), beta: between(1) }, { alpha: between(6), beta: between(2) }], gamma: between(3), mu: { low: 0, high: 1, identified: false } };
  assert.deepEqual(intervalOf(profile, 1, 'beta'), between(2));
  assert.deepEqual(intervalOf(profile, 0, 'gamma'), between(3));
  assert.deepEqual(intervalOf(profile, 0, 'alpha'), between(2)); // one of the two servers of a path
  assert.equal(intervalOf(profile, 1, 'alpha'), null);
  assert.deepEqual(intervalOf(profile, 2, 'alpha'), between(6)); // the root, at which the links of level 1 end
  assert.equal(intervalOf(profile, 0, 'mu'), null);
  assert.equal(intervalOf(null, 0, 'beta'), null);
  const nothing = { value: 0, low: 0, high: 4e-10, identified: true };
  assert.deepEqual(intervalOf({ levels: [{ epsilon: nothing }] }, 0, 'epsilon'), nothing);
  assert.equal(intervalOf({ delta: { value: 1, low: 0, high: null, identified: true } }, 0, 'delta'), null);
});

test('a network with too many different parts is not drawn', () => {
  const children = Array.from({ length: 4000 }, (_, i) => ({ name: `s${i}`, alpha: 0, beta: i, epsilon: 0, incast_threshold: 1 }));
  assert.equal(parseNetwork(JSON.stringify({ name: 'x', tree: { name: 'root', children } })), null);
});
