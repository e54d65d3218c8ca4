// Walks through the page in headless Chromium: node walk.mjs FOLDER_OF_THE_PAGE GAR [SCREENSHOTS]
// Asserts what is shown, that nothing is asked of any server, that no script of a file runs and that nothing is wrong for
// screen readers; leaves screenshots behind.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { chromium } from 'playwright-core';

import * as checks from './checks.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
const [folder, gar, shots = join(folder, 'screenshots')] = process.argv.slice(2).map((p) => resolve(p));
const PATIENCE = 60_000;
const FEW = 100; // servers up to which an answer is a matter of a moment
const work = mkdtempSync(join(tmpdir(), 'gar-walk-'));
mkdirSync(shots, { recursive: true });

const run = (...words) => execFileSync(gar, words, { encoding: 'utf8', cwd: work, maxBuffer: 1 << 28 });
const json = (...words) => JSON.parse(run(...words, '--json'));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const problems = [];

async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('console', (m) => { if (m.type() === 'error') problems.push(`console: ${m.text()}`); });
  page.on('pageerror', (e) => problems.push(`page: ${e.message}`));
  page.on('request', (r) => { if (!/^(file|data|blob):/.test(r.url())) problems.push(`asked for ${r.url()}`); });
  await page.goto(url);
  return page;
}

const text = (page, selector) => page.locator(selector).innerText();
const answered = (page, matches) => page.waitForFunction(([source]) => {
  const answer = document.querySelector('#answer');
  return answer && !answer.textContent.includes('computing') && new RegExp(source).test(answer.textContent);
}, [matches.source], { timeout: PATIENCE });
const sentenceOf = (page) => text(page, '#answer .sentence:not(.first)');
const loaded = (page) => page.waitForFunction(() => document.querySelector('#curve .line') && !document.querySelector('.stale')
  && !document.querySelector('#save-csv').disabled, null, { timeout: PATIENCE });

const scriptOf = (page) => (body) => page.evaluate(`(async () => { ${body} })()`);
const noOverflow = (page, where) => checks.noOverflow(scriptOf(page), where);
const accessible = (page, where) => checks.accessible(scriptOf(page), where);

async function say(what, work_) {
  const begin = performance.now();
  await work_();
  console.log(`ok  ${what} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
}

run('explore', '-t', 'tree:16x24', '--page', join(folder, 'gar.html'), '-o', 'page.html');
const url = pathToFileURL(join(work, 'page.html')).href;
let page = await open(url);

await say('the answer is that of gar predict', async () => {
  await answered(page, /fastest/);
  const onOneLine = (words) => words.replace(/\s+/g, ' ');
  for (const size of ['16 MB', '400 MB']) {
    await page.fill('#size', size);
    await page.keyboard.press('Enter');
    const truth = json('predict', '-t', 'tree:16x24', '--size', size.replace(' ', ''));
    const [best] = truth.results;
    const least = Math.min(best.whole_seconds, best.chunked_seconds);
    const expected = `${Number((least >= 1 ? least : 1000 * least).toPrecision(4))} ${least >= 1 ? 's' : 'ms'}`;
    await answered(page, new RegExp(`fastest: ${expected.replace('.', '\\.')}[ ,.]`));
    const shown = await sentenceOf(page);
    assert.ok(shown.startsWith(truth.best), shown);
    // The words by size come later, and change nothing of what was said.
    await page.waitForFunction(() => document.querySelector('#answer').textContent.includes('Of the classic algorithms in one piece, by size'));
    assert.equal(await sentenceOf(page), shown);
    const why = (await text(page, '#answer .why')).replace(/\.$/, '');
    assert.ok(onOneLine(run('predict', '-t', 'tree:16x24', '--size', size.replace(' ', ''))).includes(onOneLine(why)), why);
    await loaded(page);
    assert.equal(await page.locator('#bars .label').count(), truth.results.length);
  }
  await page.screenshot({ path: join(shots, 'wide-light.png'), fullPage: true });
});

await say('screen readers: no serious finding', async () => {
  const rest = await accessible(page, 'light');
  if (rest.length > 0) console.log(`    other findings: ${rest.join(', ')}`);
});

await say('a degraded link, and a cut one', async () => {
  const before = await sentenceOf(page);
  await page.locator('#picture [data-name="rack0"]').click();
  await page.fill('#keep', '150');
  assert.ok(await page.locator('#degrade').isDisabled());
  assert.match(await text(page, '#panel'), /a share is from 0.1 to 100 %/);
  await page.fill('#keep', '25');
  await page.click('#degrade');
  await page.waitForSelector('#edits');
  await page.waitForFunction((old) => (document.querySelector('#answer .sentence:not(.first)')?.innerText ?? old) !== old, before);
  assert.match(await text(page, '#edits'), /rack0 at 25% of what it had/);
  assert.equal(await page.locator('#picture .link.worse').count(), 1);
  await page.screenshot({ path: join(shots, 'degraded.png') });
  await page.locator('#picture [data-name="rack1"]').click();
  await page.click('#cut');
  await answered(page, /360 ranks/);
  await page.click('#undo');
  await answered(page, /384 ranks/);
  await page.click('#undo');
  await page.waitForFunction((old) => document.querySelector('#answer .sentence:not(.first)')?.innerText === old, before);
});

await say('a rack more', async () => {
  await page.locator('#picture [data-name="rack0"]').click();
  assert.match(await text(page, '#add'), /rack/);
  await page.click('#add');
  await answered(page, /408 ranks/);
  await page.click('#undo');
  await answered(page, /384 ranks/);
});

await say('a link can be clicked, too', async () => {
  const line = await page.locator('#picture .hit[data-link="rack1"]').evaluate((e) => {
    const box = e.ownerSVGElement.getScreenCTM();
    const middle = new DOMPoint((+e.getAttribute('x1') + +e.getAttribute('x2')) / 2, (+e.getAttribute('y1') + +e.getAttribute('y2')) / 2);
    const { x, y } = middle.matrixTransform(box);
    return { x, y };
  });
  await page.mouse.click(line.x, line.y + 3);
  assert.match(await text(page, '#panel legend'), /rack1/);
});

await say('the keyboard reaches the picture, the chart and the sliders', async () => {
  await page.locator('#picture [data-name="rack0"]').focus();
  await page.keyboard.press('Enter');
  assert.match(await text(page, '#panel legend'), /rack0/);
  await page.focus('#repeat');
  await page.fill('#repeat', '4');
  await page.keyboard.press('Enter');
  await page.locator('#repeat').blur();
  await answered(page, /96 ranks/);
  await page.click('#undo');
  await answered(page, /384 ranks/);
  await loaded(page);
  await page.focus('#curve');
  await page.keyboard.press('ArrowRight');
  assert.match(await text(page, '.readout'), /gentree/);
});

await say('a slider moves the answer', async () => {
  const before = await sentenceOf(page);
  await page.focus('#p-epsilon');
  for (let i = 0; i < 30; i += 1) await page.keyboard.press('PageUp');
  await page.waitForFunction((old) => (document.querySelector('#answer .sentence:not(.first)')?.innerText ?? old) !== old, before);
  assert.match(await text(page, '#edits'), /incast/);
});

await say('a link brings everything back', async () => {
  await answered(page, /fastest/);
  await page.locator('#exports #share').click();
  await page.waitForSelector('#permalink');
  const link = await page.inputValue('#permalink');
  const other = await open(link);
  await answered(other, /fastest/);
  assert.equal(await sentenceOf(other), await sentenceOf(page));
  await other.context().close();
});

await say('what is exported is what the program prints', async () => {
  page = await open(url);
  await answered(page, /fastest/);
  await loaded(page);
  await page.waitForFunction(() => !document.querySelector('#save-csv').disabled);
  const download = async (id) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.click(id)]);
    const path = join(work, file.suggestedFilename());
    await file.saveAs(path);
    return path;
  };
  assert.equal(readFileSync(await download('#save-json'), 'utf8'), run('predict', '-t', 'tree:16x24', '--size', '400MB', '--json'));
  run('verify', await download('#save-plan'));
  assert.match(readFileSync(await download('#save-svg'), 'utf8'), /^<svg [\s\S]*polyline/);
  assert.equal(readFileSync(await download('#save-png')).subarray(1, 4).toString(), 'PNG');
  for (const [which, pattern] of [['bars', /<rect/], ['picture', /<circle/]]) {
    await page.selectOption('#which', which);
    assert.match(readFileSync(await download('#save-svg'), 'utf8'), pattern);
  }
  await page.selectOption('#which', 'film');
  await page.click('#save-svg');
  await page.waitForFunction(() => document.querySelector('#exports').textContent.includes('is not on the page now'));
  await page.selectOption('#which', 'curve');
  assert.match(readFileSync(await download('#save-csv'), 'utf8'), /^bytes,count,algorithm[^\n]*\n256,64,/);
  assert.ok(JSON.parse(readFileSync(await download('#save-trace'), 'utf8')).traceEvents.length > 10);
  const network = await download('#save-network');
  assert.equal(json('topo', 'show', network).num_servers, 384);
  for (const command of (await text(page, '#command')).trim().split('\n')) {
    assert.ok(command.startsWith('gar '), command);
    run(...command.split(' ').slice(1));
  }
});

await say('a plan as a film', async () => {
  await page.fill('#topology', 'tree:2x4');
  await page.click('#load');
  await answered(page, /8 ranks/);
  await page.selectOption('#movie-algorithm', 'cps');
  await page.click('#movie-run');
  await page.waitForSelector('#scrub');
  await page.locator('#scrub').fill('250');
  const words = await text(page, '#movie-words');
  assert.match(words, /link of|senders/);
  assert.match(words, /critical path: rank/);
  assert.ok((await page.locator('#film .link.busy, #film .link.incast').count()) > 0);
  assert.ok((await page.locator('#film .chunk').count()) > 0);
  await page.locator('#movie').scrollIntoViewIfNeeded();
  await page.locator('#movie').screenshot({ path: join(shots, 'film.png') });
  await page.locator('#scrub').fill('900');
  assert.notEqual(await text(page, '#movie-words'), words);
  const last = await text(page, '#movie output');
  await page.click('#stage-before');
  assert.notEqual(await text(page, '#movie output'), last);
  await page.click('#stage-after');
  assert.match(await text(page, '#movie output'), /^(\S+ \S+) of \1$/); // there is no stage after the second one
});

await say('the heat map', async () => {
  await page.click('#heat button');
  await page.waitForFunction(() => document.querySelectorAll('table.heat tbody tr').length >= 4 && !document.querySelector('#heat button').disabled);
  assert.equal(await page.locator('table.heat thead th').count(), 9);
  await page.locator('#heat').screenshot({ path: join(shots, 'heat.png') });
});

const files = (...list) => page.setInputFiles('input[type=file]', list);
const diagnosis = (matches) => page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector('#diagnosis')?.textContent ?? ''), [matches.source]);

await say('files: a profile, a benchmark and its diagnosis, a plan', async () => {
  await files(join(root, 'tests/golden/data/profile.json'));
  await diagnosis(/measured/);
  await page.waitForSelector('#sliders input.measured');
  assert.match(await page.locator('#sliders input.measured').first().getAttribute('aria-valuetext'), /, measured: .* to /);
  await files(join(root, 'tests/golden/data/nccl.txt'));
  await diagnosis(/bandwidth is down/);
  assert.ok((await page.locator('#diagnosis .verdict-slow').count()) > 0);
  await page.waitForSelector('#curve .measured');
  await page.screenshot({ path: join(shots, 'diagnosis.png'), fullPage: true });
  run('plan', '-t', 'star:8', '--count', '1e6', '-o', 'star.json');
  await files(join(work, 'star.json'));
  await diagnosis(/every rank ends with every contribution/);
});

const drop = (name, content) => page.evaluate(([fileName, words]) => {
  const data = new DataTransfer();
  data.items.add(new File([words], fileName));
  document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
}, [name, content]);

await say('a link brings along what is looked at: a file with its verdict, a level, a part, the map, a moment of a film', async () => {
  await files(join(root, 'tests/golden/data/nccl.txt'));
  await diagnosis(/bandwidth is down/);
  await answered(page, /fastest/);
  await page.selectOption('#sliders select', '1');
  await page.locator('#picture .node').nth(2).click();
  await page.selectOption('#heat select', 'mpich');
  await page.click('#heat button');
  await page.waitForFunction(() => document.querySelector('table.heat tbody tr') && !document.querySelector('#heat button').disabled);
  await page.selectOption('#movie-algorithm', 'ring');
  await page.click('#movie-run');
  await page.waitForSelector('#scrub');
  await page.locator('#scrub').fill('400');
  const seen = async (of) => Promise.all([text(of, '#diagnosis'), of.inputValue('#sliders select'), text(of, '#panel legend'), of.inputValue('#heat select'),
    text(of, 'table.heat'), of.inputValue('#movie-algorithm'), text(of, '#movie-words'), of.inputValue('#scrub')]);
  const expected = await seen(page);
  await page.locator('#exports #share').click();
  await page.waitForSelector('#permalink');
  const other = await open(await page.inputValue('#permalink'));
  await answered(other, /fastest/);
  await other.waitForSelector('#scrub');
  await other.waitForSelector('#curve .measured');
  await other.waitForFunction((rows) => document.querySelectorAll('table.heat tbody tr').length === rows, await page.locator('table.heat tbody tr').count());
  assert.deepEqual(await seen(other), expected);
  await other.context().close();
  // A page that is open takes such a link, too.
  const third = await open(url);
  await answered(third, /384 ranks/);
  await third.evaluate((hash) => { location.hash = hash; }, new URL(await page.inputValue('#permalink')).hash);
  await answered(third, /(^|[^0-9,])4 ranks/);
  await third.waitForSelector('#diagnosis .verdict-slow');
  await third.context().close();
});

await say('several files at once: results are judged beside the network that comes with them', async () => {
  const fresh = await open(url);
  await answered(fresh, /384 ranks/);
  await fresh.setInputFiles('input[type=file]', [join(root, 'tests/golden/data/nccl.txt'), join(root, 'tests/golden/data/profile.json')]);
  await fresh.waitForFunction(() => /bandwidth is down/.test(document.querySelector('#diagnosis')?.textContent ?? ''));
  assert.doesNotMatch(await text(fresh, '#diagnosis'), /384 servers/);
  await answered(fresh, /(^|[^0-9,])4 ranks/);
  await fresh.context().close();
});

await say('files can be dropped', async () => {
  await drop('osu<b>.txt', '# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n1024    9.5\n');
  await diagnosis(/osu<b>\.txt/);
});

await say('a network that is dropped is shown', async () => {
  await drop('dropped.json', run('topo', 'convert', 'tree:3x5'));
  await answered(page, /(^|[^0-9,])15 ranks/);
});

await say('a log of NCCL says what gar nccl explain says', async () => {
  const log = join(root, 'data/nccl/two-hosts.log');
  const truth = JSON.parse(run('nccl', 'explain', log, '--json'));
  await drop('two-hosts.log', readFileSync(log, 'utf8'));
  await diagnosis(/two-hosts\.log/);
  await page.waitForSelector('#nccl');
  const lists = await page.locator('#nccl ul').evaluateAll((all) => all.map((list) => [list.previousElementSibling.textContent, [...list.children].map((i) => i.textContent)]));
  const words = (isProblem) => truth.findings.filter((f) => f.problem === isProblem).map((f) => f.words);
  assert.deepEqual(lists, [['what costs time', words(true)], ['what it does', words(false)]]);
  assert.equal(await text(page, '#nccl > p:first-child'), truth.summary);
  const cells = (label) => page.locator(`#nccl [aria-label="${label}"] tbody tr`).evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.textContent)));
  assert.deepEqual((await cells('Ways between the ranks')).map(([way, , links]) => [way, Number(links)]), truth.links.map((l) => [l.way, l.count]));
  assert.deepEqual((await cells('What NCCL took')).map((r) => [r[2], r[3], Number(r[5])]), truth.choices.map((c) => [c.algorithm, c.protocol, c.count]));
  // What is printed for people is the same: each word of it in the same order.
  const printed = run('nccl', 'explain', log).replace(/\s+/g, ' ');
  for (const sentence of [truth.summary, ...truth.findings.map((f) => f.words)]) assert.ok(printed.includes(sentence.replace(/\s+/g, ' ')), sentence);
  // The network that is guessed is taken, and answered for.
  await answered(page, /(^|[^0-9,])4 ranks/);
  assert.equal(await page.inputValue('#topology'), truth.topology);
  await page.screenshot({ path: join(shots, 'nccl.png'), fullPage: true });
  await accessible(page, 'a log of NCCL');
  // A log between the rows of nccl-tests: both are said.
  await drop('mixed.txt', readFileSync(join(root, 'tests/golden/data/nccl_mixed.txt'), 'utf8'));
  await diagnosis(/6 results of nccl-tests/);
  await page.waitForSelector('#nccl .problem, #nccl li');
  await drop('hostile.log', readFileSync(join(root, 'tests/golden/data/nccl_hostile.log'), 'utf8'));
  await diagnosis(/hostile\.log/);
  await page.waitForSelector('#nccl, #diagnosis .error');
});

await say('hostile files: a message, no script, and the page lives', async () => {
  const evil = '<img src=x onerror="window.evil=1"><script>window.evil=1</script>';
  const link = { beta: 1e-9, epsilon: 0, incast_threshold: 9 };
  const node = { alpha: 1e-6, ...link, gamma: 1e-10, delta: 1e-10 };
  const hostile = [
    { name: `${evil.replaceAll('/', '')}.json`, mimeType: 'application/json', buffer: Buffer.from(JSON.stringify({
      schema: 'gar.topology/1', name: evil, tree: { name: 'r', alpha: 0, children: [{ name: '<script>window.evil=1<\\script>', repeat: 3, ...node }] } })) },
    { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from(`# allreduce ${evil}\n# size count type redop root time algbw busbw #wrong\n`) },
    { name: 'deep.json', mimeType: 'application/json', buffer: Buffer.from('['.repeat(200_000)) },
    { name: 'empty', mimeType: 'text/plain', buffer: Buffer.from('') },
    { name: 'zeros', mimeType: 'text/plain', buffer: Buffer.alloc(5_000_000) },
  ];
  for (const file of hostile) {
    await files(file);
    await page.waitForFunction((name) => {
      const box = document.querySelector('#diagnosis');
      return box?.querySelector('h3').textContent === name && !box.textContent.includes('reading ...');
    }, file.name);
  }
  const big = join(work, 'nothing.bin');
  writeFileSync(big, Buffer.alloc(100 << 20));
  await files(big);
  await diagnosis(/nothing\.bin: has 104\.9 MB/);
  rmSync(big);
  let number = 0;
  for (const kind of readdirSync(join(root, 'tests/fuzz/corpus'))) {
    const corpus = join(root, 'tests/fuzz/corpus', kind);
    const all = statSync(corpus).isDirectory() ? readdirSync(corpus) : [];
    for (const name of all.slice(0, 12)) {
      await files({ name, mimeType: 'text/plain', buffer: readFileSync(join(corpus, name)) });
      await page.waitForFunction((shown) => {
        const box = document.querySelector('#diagnosis');
        return box?.querySelector('h3').textContent === shown && !box.textContent.includes('reading ...');
      }, name);
      number += 1;
    }
  }
  console.log(`    ${number} files of the fuzz corpora`);
  assert.equal(await page.evaluate(() => window.evil), undefined);
  await page.fill('#topology', 'star:5');
  await page.click('#load');
  await answered(page, /5 ranks/);
});

await say('what makes no sense is said', async () => {
  await page.fill('#topology', 'tree:<b>x');
  await page.click('#load');
  await page.waitForSelector('#answer .error');
  await page.fill('#topology', 'ss24');
  await page.click('#load');
  await answered(page, /24 ranks/);
});

await say('narrow and dark', async () => {
  const narrow = await open(url, { viewport: { width: 400, height: 800 }, colorScheme: 'dark' });
  await answered(narrow, /fastest/);
  await loaded(narrow);
  await noOverflow(narrow, 'narrow');
  await narrow.screenshot({ path: join(shots, 'narrow-dark.png'), fullPage: true });
  await accessible(narrow, 'dark');
  await narrow.context().close();
  const dark = await open(url, { colorScheme: 'dark' });
  await answered(dark, /fastest/);
  await loaded(dark);
  await noOverflow(dark, 'wide');
  await dark.screenshot({ path: join(shots, 'wide-dark.png') });
  await dark.context().close();
});

await say('a network that was measured is inside of its page', async () => {
  run('explore', '-p', join(root, 'data/profiles/june.json'), '--size', '64MiB', '--page', join(folder, 'gar.html'), '-o', 'measured.html');
  const measured = await open(pathToFileURL(join(work, 'measured.html')).href);
  await answered(measured, /fastest/);
  const truth = json('predict', '-p', join(root, 'data/profiles/june.json'), '--size', '64MiB');
  assert.ok((await sentenceOf(measured)).startsWith(truth.best));
  await measured.waitForSelector('#sliders input.measured');
  await measured.context().close();
});

await say('one server, which takes no time', async () => {
  const alone = await open(`${url}`);
  await answered(alone, /fastest/);
  await alone.fill('#topology', 'star:1');
  await alone.click('#load');
  await alone.waitForSelector('#curve-empty');
  assert.equal(await alone.locator('#curve').count(), 0);
  await alone.context().close();
});

await say('an address from anywhere', async () => {
  const odd = await open(`${url}#s=AAAA`);
  await answered(odd, /fastest/);
  assert.match(await text(odd, '#diagnosis'), /this link cannot be read/);
  await odd.context().close();
});

await say('a report: nothing loaded, nothing run', async () => {
  writeFileSync(join(work, 'today.txt'), readFileSync(join(root, 'tests/golden/data/nccl.txt')));
  run('report', join(root, 'data/measurements/15-cubic.json'), 'today.txt', '-o', 'report.html', '--title', '<script>window.evil=1</script>');
  const report = pathToFileURL(join(work, 'report.html')).href;
  for (const [name, options] of [['report-light', {}], ['report-dark-narrow', { colorScheme: 'dark', viewport: { width: 400, height: 800 } }]]) {
    const shown = await open(report, options);
    await shown.waitForSelector('svg');
    assert.equal(await shown.evaluate(() => window.evil), undefined);
    await noOverflow(shown, name);
    await accessible(shown, name);
    await shown.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
    await shown.context().close();
  }
});

// From the change to the answer that is seen, as the page says it. Other tests do not run meanwhile; a moment is 100 ms.
const times = [];
await say('times to answer', async () => {
  const to = async (network, ranks) => {
    await page.fill('#topology', network);
    await page.click('#load');
    await page.waitForSelector(`#answer[data-network="${network}"]`);
    await answered(page, new RegExp(`(^|[^0-9,])${ranks} ranks`));
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 50)); }));
    const [, last, , first] = /answered in (\d+) ms(, a first answer in (\d+) ms)?/.exec(await text(page, '#answer'));
    return { last: Number(last), first: Number(first ?? last) };
  };
  for (const [network, ranks] of [['ss24', '24'], ['sym384', '384'], ['cdc384', '384'], ['star:1000', '1,000'], ['star:997', '997'], ['tree:25x40', '1,000'], ['tree:8x125', '1,000'],
    ['tree:4x16x16', '1,024'],
    ['tree:10x100x10', '10,000'], ['million-servers', '1,000,000']]) {
    const servers = Number(ranks.replaceAll(',', ''));
    for (const size of servers <= 1024 ? ['256 kB', '400 MB'] : ['400 MB']) {
      const ms = [];
      const firsts = [];
      for (let i = 0; i < (servers <= 1024 ? 5 : 1); i += 1) {
        await to('star:2', '2');
        await page.fill('#size', size);
        await page.locator('#size').blur();
        await to('star:3', '3');
        const { last, first } = await to(network, ranks);
        ms.push(last);
        firsts.push(first);
      }
      const middle = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
      const median = middle(ms);
      times.push({ network, servers, size, ms, median, first: middle(firsts) });
      console.log(`    ${network}, ${size}: ${median} ms (${ms.join(', ')}), something after ${middle(firsts)} ms`);
    }
  }
  writeFileSync(join(folder, 'times.json'), `${JSON.stringify(times, null, 1)}\n`);
});
const slow = times.filter((t) => t.servers <= FEW && t.median > 100).map((t) => `${t.network}, ${t.size}: ${t.median} ms`);

await browser.close();
rmSync(work, { recursive: true });
assert.deepEqual(problems, []);
assert.deepEqual(slow, [], 'answers that take longer than 100 ms');
console.log(`all well; screenshots in ${shots}`);
