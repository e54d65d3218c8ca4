// The page in headless Firefox, through its Marionette protocol: node firefox.mjs PAGE [SCREENSHOT]
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { accessible, noOverflow } from './checks.mjs';

const [page, shot = join(dirname(resolve(process.argv[2])), 'screenshots/firefox.png')] = process.argv.slice(2);
const PATIENCE = 120_000;
const profile = mkdtempSync(join(tmpdir(), 'gar-firefox-'));
const downloads = join(profile, 'downloads');
mkdirSync(downloads);
writeFileSync(join(profile, 'user.js'), [
  ['marionette.port', 0], ['app.update.enabled', false], ['browser.shell.checkDefaultBrowser', false], ['datareporting.policy.dataSubmissionEnabled', false],
  ['toolkit.telemetry.enabled', false], ['network.captive-portal-service.enabled', false], ['network.connectivity-service.enabled', false],
  ['services.settings.server', 'data:,'], ['browser.safebrowsing.malware.enabled', false], ['browser.safebrowsing.phishing.enabled', false],
  ['browser.download.folderList', 2], ['browser.download.dir', downloads], ['browser.download.useDownloadDir', true],
  ['browser.download.always_ask_before_handling_new_types', false], ['browser.download.alwaysOpenPanel', false],
  ['devtools.console.stdout.content', true], ['browser.dom.window.dump.enabled', true],
].map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`).join('\n'));
const firefox = spawn(process.env.FIREFOX ?? '/usr/bin/firefox-esr',
                      ['--headless', '--no-remote', '--marionette', '-remote-allow-system-access', '--profile', profile],
                      { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, HOME: profile, MOZ_HEADLESS: '1' } });
const wrong = []; // what the page writes to the console
firefox.stdout.setEncoding('utf8').on('data', (lines) => {
  // What Firefox itself cannot reach (its settings) begins with a name of its own.
  wrong.push(...lines.split('\n').filter((line) => /^console\.error(?!: RS?Loader|: RemoteSettings)|JavaScript error: (file|blob):/.test(line)));
});

async function waitFor(what, find) {
  const end = performance.now() + PATIENCE;
  while (performance.now() < end) {
    const found = await find();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`${what} did not come`);
}

/** Messages are LENGTH:[0, id, command, parameters] and LENGTH:[1, id, error, result]. */
class Marionette {
  constructor(port) {
    this.socket = connect(port, '127.0.0.1');
    this.buffer = Buffer.alloc(0);
    this.waiting = new Map();
    this.next = 0;
    this.hello = new Promise((done, fail) => {
      this.greeted = done;
      this.socket.on('error', fail);
    });
    this.socket.on('data', (data) => this.take(data));
  }

  take(data) {
    this.buffer = Buffer.concat([this.buffer, data]);
    for (;;) {
      const colon = this.buffer.indexOf(58);
      if (colon < 0) return;
      const length = Number(this.buffer.subarray(0, colon).toString());
      if (this.buffer.length < colon + 1 + length) return;
      const message = JSON.parse(this.buffer.subarray(colon + 1, colon + 1 + length).toString());
      this.buffer = this.buffer.subarray(colon + 1 + length);
      if (!Array.isArray(message)) {
        this.greeted(message);
        continue;
      }
      const [, id, error, result] = message;
      const { resolve: done, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) reject(new Error(`${error.error}: ${error.message}`));
      else done(result && 'value' in result ? result.value : result);
    }
  }

  send(command, parameters = {}) {
    const id = (this.next += 1);
    const text = JSON.stringify([0, id, command, parameters]);
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    return new Promise((done, reject) => this.waiting.set(id, { resolve: done, reject }));
  }

  script(text, ...args) {
    return this.send('WebDriver:ExecuteScript', { script: text, args });
  }

  /** The text of an asynchronous function. */
  async work(text) {
    const { value, error } = await this.send('WebDriver:ExecuteAsyncScript', { args: [], scriptTimeout: PATIENCE, script: `
      const done = arguments[arguments.length - 1];
      (async () => { ${text} })().then((value) => done({ value }), (error) => done({ error: String(error?.stack ?? error) }));` });
    if (error) throw new Error(error);
    return value;
  }

  /** A setting of the browser itself. */
  async set(name, number) {
    await this.send('Marionette:SetContext', { value: 'chrome' });
    await this.script('Services.prefs.setIntPref(arguments[0], arguments[1])', name, number);
    await this.send('Marionette:SetContext', { value: 'content' });
  }
}

try {
  const port = await waitFor('the port of Firefox', () => {
    try {
      return Number(readFileSync(join(profile, 'MarionetteActivePort'), 'utf8'));
    } catch {
      return 0;
    }
  });
  const browser = new Marionette(port);
  await browser.hello;
  await browser.send('WebDriver:NewSession', {});
  await browser.send('WebDriver:SetWindowRect', { width: 1280, height: 1000 });
  const url = pathToFileURL(resolve(page)).href;
  await browser.send('WebDriver:Navigate', { url });
  const sentence = () => browser.script('return document.querySelector("#answer .sentence:not(.first)")?.textContent ?? ""');
  const first = await waitFor('the answer', sentence);
  assert.match(first, /fastest/);
  await waitFor('the chart', () => browser.script('return document.querySelectorAll("#curve .line").length > 3'));
  console.log(`ok  Firefox answers: ${first}`);

  await browser.script(`const box = document.querySelector('#topology'); box.value = 'tree:2x4';
    box.dispatchEvent(new Event('input', { bubbles: true })); document.querySelector('#load').click();`);
  await waitFor('eight ranks', async () => /[^0-9,]8 ranks/.test(await browser.script('return document.querySelector("#answer").textContent')));
  await browser.script(`document.querySelector('#movie-run').click()`);
  await waitFor('the film', () => browser.script('return !!document.querySelector("#scrub")'));
  await browser.script(`const s = document.querySelector('#scrub'); s.value = 300; s.dispatchEvent(new Event('input', { bubbles: true }));`);
  await waitFor('messages', () => browser.script('return document.querySelectorAll("#film .link.busy, #film .link.incast").length > 0'));
  console.log('ok  a film in Firefox');

  await browser.script(`const data = new DataTransfer();
    data.items.add(new File(['<script>window.evil = 1</' + 'script>'], '<img src=x onerror=window.evil=1>'));
    document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));`);
  await waitFor('a message', () => browser.script('return !!document.querySelector("#diagnosis .error")'));
  assert.equal(await browser.script('return window.evil ?? window.wrappedJSObject?.evil ?? null'), null);
  console.log('ok  a hostile file in Firefox');

  await browser.script(`document.querySelector('#exports #share').click()`);
  const link = await waitFor('the link', () => browser.script('return document.querySelector("#permalink")?.value ?? ""'));
  await browser.send('WebDriver:Navigate', { url: 'about:blank' });
  await browser.send('WebDriver:Navigate', { url: link });
  await waitFor('the same network', async () => /[^0-9,]8 ranks/.test(await browser.script('return document.querySelector("#answer")?.textContent ?? ""')));
  console.log('ok  a link in Firefox');

  const answers = async (what, pattern) => waitFor(what, async () => pattern.test(await browser.script('return document.querySelector("#answer").textContent')));
  const before = await sentence();
  await browser.script(`document.querySelector('#picture [data-name="rack1"]').dispatchEvent(new MouseEvent('click', { bubbles: true }))`);
  await waitFor('the panel', () => browser.script('return !!document.querySelector("#cut")'));
  await browser.script('document.querySelector("#cut").click()');
  await answers('four ranks', /[^0-9,]4 ranks/);
  await browser.script('document.querySelector("#undo").click()');
  await answers('eight ranks again', /[^0-9,]8 ranks/);
  await waitFor('the answer from before', async () => (await sentence()) === before);
  console.log('ok  a cut link in Firefox');

  await browser.script(`const s = document.querySelector('#p-alpha'); s.value = 900; s.dispatchEvent(new Event('input', { bubbles: true }));`);
  await waitFor('another answer', async () => (await sentence()) !== before);
  await waitFor('the edit', () => browser.script('return /latency/.test(document.querySelector("#edits")?.textContent ?? "")'));
  console.log('ok  a slider in Firefox');

  await waitFor('the chart', () => browser.script('const b = document.querySelector("#save-csv"); return !b.disabled && !document.querySelector(".stale")'));
  await browser.script('document.querySelector("#save-csv").click()');
  const csv = await waitFor('the file', () => {
    const name = readdirSync(downloads).find((n) => n === 'curve.csv');
    return name && readFileSync(join(downloads, name), 'utf8');
  });
  assert.match(csv, /^bytes,count,algorithm[^\n]*\n256,64,/);
  console.log('ok  an export in Firefox');

  const script = (body) => browser.work(body);
  mkdirSync(dirname(shot), { recursive: true });
  const picture = async (name) => writeFileSync(name, Buffer.from(await browser.send('WebDriver:TakeScreenshot', { full: true }), 'base64'));
  await noOverflow(script, 'wide');
  await accessible(script, 'light');
  await picture(shot);
  await browser.set('layout.css.prefers-color-scheme.content-override', 0);
  await waitFor('the dark', () => browser.script('return matchMedia("(prefers-color-scheme: dark)").matches'));
  await browser.send('WebDriver:SetWindowRect', { width: 400, height: 900 });
  await waitFor('a narrow window', () => browser.script('return innerWidth <= 500'));
  const width = await noOverflow(script, 'narrow');
  await accessible(script, 'dark');
  await picture(shot.replace(/\.png$/, '-narrow-dark.png'));
  assert.deepEqual(wrong, []);
  await browser.script('console.error("seen")');
  await waitFor('what is written to the console', () => wrong.length === 1 && wrong[0].includes('seen'));
  console.log(`ok  light and dark, wide and ${width} pixels, screen readers, nothing in the console of Firefox`);
  await browser.send('Marionette:Quit', { flags: ['eForceQuit'] }).catch(() => {});
  browser.socket.destroy();
} finally {
  firefox.kill();
  await new Promise((done) => {
    if (firefox.exitCode !== null || firefox.signalCode !== null) done();
    else firefox.once('exit', done);
  });
  rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
