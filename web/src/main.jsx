// Unpacks the core, reads what the page was given, and shows it.
import { render } from 'preact';

import { App } from './app.jsx';
import { Core } from './client.js';
import { cleaned, fromBase64, fromFragment, isLink } from './state.js';

async function unpacked(id) {
  const data = fromBase64(document.getElementById(id).textContent.trim());
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

function given() {
  try {
    return JSON.parse(document.getElementById('gar-start').textContent);
  } catch {
    return {};
  }
}

async function main() {
  const root = document.getElementById('page');
  try {
    const [wasm, worker] = await Promise.all([unpacked('gar-core'), unpacked('gar-worker')]);
    const module = await WebAssembly.compile(wasm);
    const source = URL.createObjectURL(new Blob([worker], { type: 'text/javascript' }));
    const linked = await fromFragment(location.hash);
    const start = linked ?? cleaned(given());
    const isBroken = linked === null && isLink(location.hash);
    root.replaceChildren();
    const core = new Core(module, source);
    let number = 0;
    // A link that is opened on the page begins from the start.
    const show = (state, broken) => render(<App key={number += 1} core={core} start={state} isBroken={broken} onLink={show} />, root);
    show(start, isBroken);
  } catch (error) {
    root.textContent = `This page cannot start here: ${error.message}. It needs a browser of 2023 or later with WebAssembly.`;
  }
}

main();
