// Builds the explorer page: node build.mjs [OUTPUT_FOLDER] [--core-only | --page-only], by default ../build/web. The core (C++) becomes
// WebAssembly with emscripten, the page is bundled with esbuild, and both go into one file, gar.html.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const MOST_BYTES = 2_000_000;
const here = dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const out = resolve(args.find((a) => !a.startsWith('-')) ?? join(here, '../build/web'));
const core = join(out, 'core');

function run(command, ...words) {
  // Debian's emscripten looks for its JavaScript tools here, and in folders of its own otherwise.
  const env = { ...process.env, NODE_PATH: process.env.NODE_PATH ?? '/usr/share/nodejs' };
  execFileSync(command, words, { stdio: ['ignore', 'inherit', 'inherit'], env });
}

function buildCore() {
  mkdirSync(core, { recursive: true });
  if (!existsSync(join(core, 'build.ninja'))) {
    run('emcmake', 'cmake', '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release', '-S', join(here, 'core'), '-B', core);
  }
  run('cmake', '--build', core, '-j', process.env.JOBS ?? '2');
}

async function bundle(entry, format) {
  const esbuild = await import('esbuild');
  const result = await esbuild.build({
    entryPoints: [join(here, 'src', entry)],
    bundle: true,
    minify: true,
    write: false,
    format,
    target: ['chrome111', 'firefox115'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    alias: { 'gar-core': join(core, 'gar_core.js') },
    external: ['fs', 'path', 'crypto'],
    legalComments: 'none',
    logLevel: 'warning',
  });
  return result.outputFiles[0].text;
}

const packed = (data) => gzipSync(data, { level: 9 }).toString('base64');

async function buildPage() {
  const wasm = packed(readFileSync(join(core, 'gar_core.wasm')));
  const worker = packed(await bundle('worker.js', 'iife'));
  // Nothing in a script may end it.
  const main = (await bundle('main.jsx', 'iife')).trim().replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
  const style = readFileSync(join(here, 'src/style.css'), 'utf8');
  const hash = createHash('sha256').update(main).digest('base64');
  const licence = readFileSync(join(here, 'node_modules/preact/LICENSE'), 'utf8').replaceAll('--', '- -');
  const parts = { STYLE: style, CORE: wasm, WORKER: worker, MAIN: main, HASH: hash, PREACT: licence };
  const page = readFileSync(join(here, 'src/page.html'), 'utf8').replace(/%([A-Z]+)%/g, (_, name) => parts[name]);
  writeFileSync(join(out, 'gar.html'), page);
  const size = Buffer.byteLength(page);
  const part = (name) => `${name.toLowerCase()} ${Math.round(parts[name].length / 1000)} kB`;
  console.log(`${join(out, 'gar.html')}: ${Math.round(size / 1000)} kB (${['CORE', 'WORKER', 'MAIN', 'STYLE'].map(part).join(', ')})`);
  if (size > MOST_BYTES) {
    console.error(`gar.html has ${size} bytes; accepted: up to ${MOST_BYTES}`);
    process.exit(1);
  }
}

if (!args.includes('--page-only')) buildCore();
if (!args.includes('--core-only')) await buildPage();
