import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import { Cancelled, Core } from '../../src/client.js';

// Workers that answer when they are told to, and a clock that stands still.
let workers = [];
let timers = [];
class FakeWorker {
  constructor() {
    this.asked = [];
    this.isEnded = false;
    workers.push(this);
  }
  postMessage(message) {
    if (message.module) queueMicrotask(() => this.onmessage({ data: { ready: true } }));
    else this.asked.push(message);
  }
  terminate() {
    this.isEnded = true;
  }
  answer() {
    const { id, text } = this.asked.at(-1);
    this.onmessage({ data: { id, text: JSON.stringify({ schema: 'gar.test/1', asked: JSON.parse(text).n }), ms: 1 } });
  }
}

const turn = () => new Promise((done) => setImmediate(done));

/** A core that has warmed up, and its quick worker. */
async function ready() {
  const core = new Core({}, '');
  await turn();
  for (const worker of workers) worker.answer();
  await turn();
  return { core, worker: workers[0] };
}

beforeEach(() => {
  workers = [];
  timers = [];
  globalThis.Worker = FakeWorker;
  globalThis.setTimeout = (work) => timers.push(work);
});

test('an outdated question may finish while that takes a moment', async () => {
  const { core, worker } = await ready();
  const old = core.ask({ ask: 'predict', n: 1 });
  const next = core.ask({ ask: 'predict', n: 2 });
  await assert.rejects(old, Cancelled);
  assert.equal(worker.isEnded, false);
  worker.answer(); // of the old one, which nobody wants any more
  await turn();
  worker.answer();
  assert.equal((await next).asked, 2);
  for (const work of timers) work();
  assert.equal(worker.isEnded, false);
});

test('after a moment its worker is ended, and another one answers', async () => {
  const { core, worker } = await ready();
  const old = core.ask({ ask: 'predict', n: 1 });
  const next = core.ask({ ask: 'predict', n: 2 });
  await assert.rejects(old, Cancelled);
  for (const work of timers) work();
  assert.equal(worker.isEnded, true);
  await turn();
  workers.at(-1).answer();
  assert.equal((await next).asked, 2);
});

test('a question that waits is dropped at once', async () => {
  const { core, worker } = await ready();
  const first = core.ask({ ask: 'network', n: 1 });
  const waiting = core.ask({ ask: 'predict', n: 2 });
  core.cancel('predict');
  await assert.rejects(waiting, Cancelled);
  worker.answer();
  assert.equal((await first).asked, 1);
  assert.equal(worker.asked.length, 2); // the warm-up and the first
});
