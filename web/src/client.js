// Questions to the core: two workers, one for what people wait for and one for what may take long. A worker that is
// busy with an outdated question may finish it if that takes a moment: starting another one takes a moment, too. After
// that it is ended and started again. The core is compiled once.

const MOMENT = 150; // milliseconds

/** An answer that was overtaken by a newer question, or cancelled. */
export class Cancelled extends Error {}

class Channel {
  constructor(module, source) {
    this.module = module;
    this.source = source;
    this.queue = [];
    this.current = null;
    this.next = 0;
    this.start();
  }

  start() {
    this.worker = new Worker(this.source);
    this.isReady = false;
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      this.fail(new Error(event.message || 'the core has stopped'));
    };
    this.worker.postMessage({ module: this.module });
  }

  restart() {
    this.worker.terminate();
    this.start();
  }

  fail(error) {
    const { current } = this;
    this.current = null;
    this.restart();
    current?.reject(error);
  }

  take(data) {
    if (data.ready) {
      this.isReady = true;
    } else if (this.current?.id === data.id) {
      const { current } = this;
      this.current = null;
      if (data.crash) {
        // Memory may be in any state now.
        this.restart();
        current.reject(new Error(`the core has stopped: ${data.crash}`));
      } else {
        current.resolve({ document: data.text, ms: data.ms });
      }
    }
    this.pump();
  }

  pump() {
    if (!this.isReady || this.current || this.queue.length === 0) return;
    this.current = this.queue.shift();
    this.current.since = performance.now();
    this.worker.postMessage({ id: this.current.id, text: this.current.text });
  }

  /** Questions of the same key replace each other. */
  ask(key, text) {
    this.cancel(key);
    return new Promise((resolve, reject) => {
      this.queue.push({ id: (this.next += 1), key, text, resolve, reject });
      this.pump();
    });
  }

  cancel(key) {
    const isOld = (one) => one.key === key;
    for (const one of this.queue.filter(isOld)) one.reject(new Cancelled());
    this.queue = this.queue.filter((one) => !isOld(one));
    if (this.current && isOld(this.current)) this.drop(this.current);
  }

  drop(outdated) {
    outdated.reject(new Cancelled());
    outdated.key = null;
    const left = Math.max(0, MOMENT - (performance.now() - outdated.since));
    setTimeout(() => {
      if (this.current !== outdated) return;
      this.current = null;
      this.restart();
    }, left);
  }
}

// Something of everything that the first answers need: browsers compile a function when it is called first.
const WARM_UP = JSON.stringify({ ask: 'predict', topology: 'tree:5x6', count: '1e5', words: true, quick: true });

export class Core {
  constructor(module, source) {
    this.quick = new Channel(module, source);
    this.slow = new Channel(module, source);
    for (const channel of [this.quick, this.slow]) channel.ask('warm-up', WARM_UP).catch(() => {});
  }

  /** Asks, and gives the parsed document with `ms`; an error document becomes an exception. */
  async ask(question, { key = question.ask, slow = false } = {}) {
    const { document, ms } = await (slow ? this.slow : this.quick).ask(key, JSON.stringify(question));
    if (question.ask === 'trace' || question.raw) return { text: document, ms };
    const parsed = JSON.parse(document);
    if (parsed.schema === 'gar.error/1') throw new Error(parsed.error);
    return { ...parsed, text: document, ms };
  }

  cancel(key) {
    this.quick.cancel(key);
    this.slow.cancel(key);
  }
}
