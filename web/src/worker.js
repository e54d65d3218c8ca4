// Runs in a worker of its own, so that the page stays alive: the core, one question at a time.
import createGar from 'gar-core';

let core = null;

function ask(text) {
  const size = core.lengthBytesUTF8(text) + 1;
  const at = core._malloc(size);
  if (at === 0) throw new Error('there is not enough memory for this question');
  core.stringToUTF8(text, at, size);
  try {
    return core.UTF8ToString(core._gar_answer(at));
  } finally {
    core._free(at);
  }
}

self.onmessage = async ({ data }) => {
  if (data.module) {
    core = await createGar({
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(data.module, imports).then((instance) => done(instance, data.module));
        return {};
      },
    });
    self.postMessage({ ready: true });
    return;
  }
  const begin = performance.now();
  try {
    const text = ask(data.text);
    self.postMessage({ id: data.id, text, ms: performance.now() - begin });
  } catch (error) {
    self.postMessage({ id: data.id, crash: String(error?.message ?? error), ms: performance.now() - begin });
  }
};
