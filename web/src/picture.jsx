// The network as a picture. Nodes are buttons: what is chosen can be changed in the panel below.
import { useState } from 'preact/hooks';

import { changed, degraded, instanceName, layout, networkText, nodeAt, servers } from './network.js';
import { count, short, speed } from './units.js';

function widthOf(beta) {
  return beta > 0 ? Math.max(1.5, Math.min(8, 1.5 + Math.log10(32 / beta / 1e8))) : 8;
}

/** The slowest link of a level tells what is degraded. */
function usual(placed) {
  const out = new Map();
  for (const { node, depth } of placed.nodes) {
    if (!out.has(depth) || (node.beta ?? 0) < out.get(depth)) out.set(depth, node.beta ?? 0);
  }
  return out;
}

export function Picture({ tree, chosen, onChoose, loads }) {
  const placed = layout(tree);
  const best = usual(placed);
  const load = (placedNode) => loads?.(placedNode) ?? '';
  const label = (p) => `${p.node.children ? '' : `${p.first}: `}${instanceName(tree, p)}${p.node.children ? `, ${count(servers({ ...p.node, repeat: 1 }))} servers`
    : ''}${p.depth > 0 ? `, link ${speed(p.node.beta ?? 0)}` : ''}`;
  return (
    <div class="scroll picture" tabindex="0" role="region" aria-label="Picture of the network">
      <svg viewBox={`0 0 ${placed.width} ${placed.height}`} id="picture" class="network"
           style={`min-width:${Math.min(placed.width, 1400) * 0.75}px`} role="group" aria-label="The network">
        {placed.links.map(({ key, from, to }) => (
          <line key={key} class={`link ${to.node.beta > 1.01 * best.get(to.depth) ? 'worse' : ''} ${load(to)}`}
                x1={from.x} y1={from.y} x2={to.x} y2={to.y} stroke-width={widthOf(to.node.beta)} />
        ))}
        {placed.links.map(({ key, from, to }) => (
          <line key={key} class="hit" x1={from.x} y1={from.y} x2={to.x} y2={to.y} role="button" tabindex="-1"
                data-link={instanceName(tree, to)} aria-label={`link of ${label(to)}`} onClick={() => onChoose(to)}>
            <title>{`link of ${label(to)}`}</title>
          </line>
        ))}
        {placed.gaps.map((g) => (
          <text key={g.key} class="tick" x={g.x} y={g.y + 4} text-anchor="middle">...
            <title>{`${count(g.count)} times ${g.name}`}</title>
          </text>
        ))}
        {placed.nodes.map((p) => (
          <g key={p.key} class={`node ${chosen === p.key ? 'chosen' : ''}`} tabindex="0" role="button"
             data-name={instanceName(tree, p)} aria-pressed={chosen === p.key} aria-label={label(p)} onClick={() => onChoose(p)}
             onKeyDown={(e) => (e.key === 'Enter' || e.key === ' ') && (e.preventDefault(), onChoose(p))}>
            <title>{label(p)}</title>
            {p.node.children ? <rect x={p.x - 13} y={p.y - 9} width="26" height="18" rx="4" />
              : <circle cx={p.x} cy={p.y} r="9" />}
            <text class="name" x={p.x} y={p.y + (p.node.children ? -14 : 24)} text-anchor="middle">
              {p.node.children ? instanceName(tree, p).split('/').at(-1) : p.first}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

export function NodePanel({ tree, chosen, onChange }) {
  const [share, setShare] = useState('50');
  if (!chosen) return <p class="quiet">Choose a switch or a server in the picture to change it or its link.</p>;
  const node = nodeAt(tree, chosen.path);
  if (!node) return null;
  const name = instanceName(tree, chosen);
  const apply = (instances, change, what) => {
    const next = changed(tree, chosen.path, instances, change);
    if (next) onChange(networkText(next), what);
  };
  const isRoot = chosen.path.length === 0;
  const many = node.repeat > 1 || chosen.path.some((_, i) => nodeAt(tree, chosen.path.slice(0, i + 1)).repeat > 1);
  const isShare = Number(share) >= 0.1 && Number(share) <= 100;
  const toShare = () => Number(share) / 100;
  const setRepeat = (value) => {
    const n = Math.round(Number(value));
    if (n >= 1 && n <= 1e6) apply(null, (one) => ({ ...one, repeat: n }), `${n} x ${node.name}`);
  };
  return (
    <fieldset id="panel">
      <legend>{name}{node.children ? ` (${count(servers({ ...node, repeat: 1 }))} servers)` : ''}</legend>
      {isRoot ? <p class="quiet">The root has no link of its own.</p> : (
        <>
          <p class="row">
            <label>how many of these <input type="number" min="1" max="1000000" value={node.repeat} id="repeat"
              onChange={(e) => setRepeat(e.currentTarget.value)} /></label>
            <input type="range" min="1" max={Math.max(64, 2 * node.repeat)} value={node.repeat}
              aria-label={`number of ${node.name}`} onInput={(e) => setRepeat(e.currentTarget.value)} />
            <button type="button" id="add" onClick={() => setRepeat(node.repeat + 1)}>add one more {node.name}</button>
          </p>
          <p class="row">
            <span>link {speed(node.beta ?? 0)}</span>
            <label>keep <input type="number" min="0.1" max="100" value={share} id="keep"
              onInput={(e) => setShare(e.currentTarget.value)} /> %</label>
            <button type="button" id="degrade" disabled={!isShare} onClick={() => apply(chosen.instances, (one) => degraded(one, toShare()),
              `${name} at ${short(100 * toShare())}% of what it had`)}>of what this link has</button>
            {many && <button type="button" disabled={!isShare} onClick={() => apply(null, (one) => degraded(one, toShare()),
              `all like ${name} at ${short(100 * toShare())}% of what they had`)}>of all like it</button>}
            {!isShare && <span role="alert">a share is from 0.1 to 100 %</span>}
            <button type="button" id="cut" onClick={() => apply(chosen.instances, () => null, `${name} cut off`)}>cut this link</button>
          </p>
        </>
      )}
    </fieldset>
  );
}
