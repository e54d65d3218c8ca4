// The network as the page edits it: the text of a topology file to a tree of runs and back, changes of that tree, and
// where its nodes are drawn. A run is {name, repeat, ...parameters, children?}; a path is a list of indices of children.

export const LINK = ['beta', 'epsilon', 'incast_threshold', 'max_senders'];
export const SERVER = ['gamma', 'delta', 'mu'];
const PARAMETERS = ['alpha', ...LINK, ...SERVER];
const MOST_RUNS = 3000;

/** The tree of a topology file in our own nested form; null when it has too many different parts to draw. */
export function parseNetwork(text) {
  const file = JSON.parse(text);
  let runs = 0;
  const parameters = (node) => {
    const out = {};
    const classes = [node.class ?? []].flat();
    for (const name of PARAMETERS) {
      for (const c of classes) if (file.classes?.[c]?.[name] !== undefined) out[name] = file.classes[c][name];
      if (node[name] !== undefined) out[name] = node[name];
    }
    return out;
  };
  const expand = (node, depth) => {
    runs += 1;
    if (runs > MOST_RUNS || depth > 70) throw new RangeError('too many parts');
    if (node.ref !== undefined) {
      const { ref, ...own } = node;
      return expand({ ...file.subtrees[ref], ...own }, depth + 1);
    }
    const out = { name: node.name, repeat: node.repeat ?? 1, ...parameters(node) };
    if (node.children) out.children = node.children.map((child) => expand(child, depth + 1));
    return out;
  };
  try {
    return { name: file.name, root: expand(file.tree, 0) };
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** The text of a topology file. */
export function networkText(network) {
  return JSON.stringify({ schema: 'gar.topology/1', name: network.name, tree: { ...network.root, repeat: undefined } });
}

export function servers(node) {
  return node.repeat * (node.children ? node.children.reduce((sum, child) => sum + servers(child), 0) : 1);
}

/** Levels of links below a node: 0 for a server. */
export function height(node) {
  return node.children ? 1 + Math.max(...node.children.map(height)) : 0;
}

export function nodeAt(network, path) {
  return path.reduce((node, index) => node?.children?.[index], network.root);
}

const content = (node) => JSON.stringify({ ...node, repeat: 0 });

/** Neighbours that are equal become one run. */
function merged(children) {
  const out = [];
  for (const child of children) {
    const last = out.at(-1);
    if (last && content(last) === content(child)) {
      out[out.length - 1] = { ...last, repeat: last.repeat + child.repeat };
    } else {
      out.push(child);
    }
  }
  return out;
}

/**
 * A network in which `change` was applied to the run at `path`. `instances` says which instance of the run at each
 * step of the path is meant; null means all of them. A change that returns null removes.
 */
export function changed(network, path, instances, change) {
  const walk = (node, depth) => {
    if (depth === path.length) return change(node);
    const children = node.children.flatMap((child, index) => {
      if (index !== path[depth]) return [child];
      const instance = instances?.[depth];
      if (instance === null || instance === undefined || child.repeat === 1) {
        const whole = walk(child, depth + 1);
        return whole ? [whole] : [];
      }
      const one = walk({ ...child, repeat: 1 }, depth + 1);
      return [
        ...(instance > 0 ? [{ ...child, repeat: instance }] : []),
        ...(one ? [one] : []),
        ...(instance < child.repeat - 1 ? [{ ...child, repeat: child.repeat - 1 - instance }] : []),
      ];
    });
    // A switch without anything below it is no switch any more.
    return children.length > 0 ? { ...node, children: merged(children) } : null;
  };
  const root = walk(network.root, 0);
  return root ? { ...network, root } : null;
}

/** A link that keeps `share` of its speed. */
export function degraded(node, share) {
  return { ...node, beta: node.beta / share, epsilon: (node.epsilon ?? 0) / share };
}

/** Every node of a level (of a kind of parameter) gets a new value; those that differ keep their ratio. */
export function withParameter(network, level, name, value) {
  const before = parameterOf(network, level, name);
  const set = (node, isRoot) => {
    const out = { ...node };
    if (matches(node, level, name, isRoot)) {
      const own = node[name] ?? 0;
      out[name] = before > 0 && own > 0 ? own * (value / before) : value;
    }
    if (node.children) out.children = merged(node.children.map((child) => set(child, false)));
    return out;
  };
  return { ...network, root: set(network.root, true) };
}

function matches(node, level, name, isRoot) {
  if (height(node) !== level) return false;
  if (LINK.includes(name) && isRoot) return false;
  return !(SERVER.includes(name) && node.children);
}

/** The value of the first node of that level; undefined when there is none. */
export function parameterOf(network, level, name) {
  const find = (node, isRoot) => {
    if (matches(node, level, name, isRoot)) return node[name] ?? 0;
    for (const child of node.children ?? []) {
      const found = find(child, false);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return find(network.root, true);
}

/**
 * The interval that a profile gives for a parameter of a level; null when there is none. Its levels are those of links,
 * and alpha is that of the switch that the links end at: half of the lowest one belongs to each of the two servers of a
 * path, and nothing to a lowest switch.
 */
export function intervalOf(profile, level, name) {
  const ofLevel = name === 'alpha' ? Math.max(level - 1, 0) : level;
  const estimate = SERVER.includes(name) ? profile?.[name] : profile?.levels?.[ofLevel]?.[name];
  if (!estimate || estimate.identified === false || typeof estimate.low !== 'number' || !(estimate.high > 0)) return null;
  if (name !== 'alpha') return estimate;
  if (level === 1) return null;
  const share = level === 0 ? 0.5 : 1;
  return { ...estimate, value: share * estimate.value, low: share * estimate.low, high: share * estimate.high };
}

/** What the links of each level are called: "server", "rack". */
export function levelNames(network) {
  const names = [];
  const visit = (node, isRoot) => {
    const level = height(node);
    if (!isRoot) names[level] ??= node.name;
    for (const child of node.children ?? []) visit(child, false);
  };
  visit(network.root, true);
  return names;
}

const SLOT = 34;
const ROW = 92;
const LEAST_WIDTH = 560;

/**
 * Where nodes are drawn. Small networks are drawn whole; of long runs the first two and the last one stand for all,
 * with a gap that says how many there are. Nodes: {key, x, y, node, path, instances, first, last, depth, index}.
 */
export function layout(network, mostLeaves = 40) {
  const isWhole = servers({ ...network.root, repeat: 1 }) <= mostLeaves;
  const nodes = [];
  const links = [];
  const gaps = [];
  let slot = 0;
  const place = (node, path, instances, firstRank, depth, parent) => {
    const size = servers({ ...node, repeat: 1 });
    const own = { key: path.map((p, i) => `${p}.${instances[i]}`).join('/'), node, path, instances, depth,
                  first: firstRank, last: firstRank + size - 1, y: 30 + depth * ROW, x: 0 };
    nodes.push(own);
    if (parent) links.push({ key: own.key, from: parent, to: own });
    if (!node.children) {
      own.x = (slot += 1) * SLOT;
      return own;
    }
    const xs = [];
    let rank = firstRank;
    node.children.forEach((child, index) => {
      const each = servers({ ...child, repeat: 1 });
      const shown = isWhole || child.repeat <= 4 ? range(child.repeat) : [0, 1, null, child.repeat - 1];
      for (const instance of shown) {
        if (instance === null) {
          slot += 1;
          gaps.push({ key: `${own.key}/${index}`, x: slot * SLOT, y: 30 + (depth + 1) * ROW, path: [...path, index],
                      count: child.repeat, name: child.name });
          continue;
        }
        const at = place(child, [...path, index], [...instances, instance], rank + instance * each, depth + 1, own);
        xs.push(at.x);
      }
      rank += each * child.repeat;
    });
    own.x = (Math.min(...xs) + Math.max(...xs)) / 2;
    return own;
  };
  place(network.root, [], [], 0, 0, null);
  // Small networks stand in the middle.
  const own = (slot + 1) * SLOT;
  const width = Math.max(own, LEAST_WIDTH);
  for (const item of [...nodes, ...gaps]) item.x += (width - own) / 2;
  const deepest = Math.max(...nodes.map((n) => n.depth));
  return { nodes, links, gaps, isWhole, width, height: 60 + deepest * ROW + 20 };
}

function range(n) {
  return Array.from({ length: n }, (_, i) => i);
}

/** "rack0/server3", as the core names instances; the number is left out where a name stands once among its siblings. */
export function instanceName(network, placed) {
  let node = network.root;
  const words = [];
  placed.path.forEach((index, depth) => {
    const child = node.children[index];
    const alike = node.children.filter((c) => c.name === child.name);
    const total = alike.reduce((sum, c) => sum + c.repeat, 0);
    const before = node.children.slice(0, index).filter((c) => c.name === child.name)
      .reduce((sum, c) => sum + c.repeat, 0);
    words.push(total === 1 ? child.name : `${child.name}${before + placed.instances[depth]}`);
    node = child;
  });
  return words.join('/') || network.root.name;
}
