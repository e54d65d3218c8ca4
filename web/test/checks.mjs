// What is checked in every browser. A page is given as a function that runs the text of an asynchronous function in it and
// gives what that returns.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** No serious finding for screen readers; gives the others. */
export async function accessible(script, where) {
  const found = await script(`${axe};
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations.map((v) => ({ id: v.id, impact: v.impact, where: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(' | ') }));`);
  const serious = found.filter((v) => ['serious', 'critical'].includes(v.impact));
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.where}`), [], where);
  return found.map((v) => `${v.impact}: ${v.id}`);
}

/** Nothing is wider than the window; gives its width. */
export async function noOverflow(script, where) {
  const [scroll, width] = await script('return [document.documentElement.scrollWidth, document.documentElement.clientWidth];');
  assert.ok(scroll <= width, `${where}: the page is ${scroll} pixels wide in a window of ${width}`);
  return width;
}
