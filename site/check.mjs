// Opens the site of var/site/html in Chromium, as a phone, a tablet and a desk show it, in the light and the dark scheme. It fails when
// - a request leaves the site, or gets no answer,
// - axe finds a violation of WCAG 2.1 A or AA, the contrast of text among them,
// - a page is wider than the window,
// - the text or the navigation is missing without JavaScript,
// - search, the menu of versions, the switch of schemes, the copying of code or the charts of the benchmarks do not work.
// Pictures are in var/site/screenshots.
//
//     node site/check.mjs [PAGE...]     pages by their place, such as errors/pool-exhausted/; some of each kind by default
//     node site/check.mjs --all         every page, on a phone in the dark scheme, where width and contrast are the least; no pictures

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { mkdir, readFile, readdir, rm } from 'node:fs/promises';
import { dirname, extname, join, normalize } from 'node:path';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const directory = process.env.WEFT_VAR ?? join(root, 'var');
const html = join(directory, 'site/html');
const pictures = join(directory, 'site/screenshots');
const require = createRequire(join(directory, 'site-check/package.json'));
const puppeteer = require('puppeteer-core');
const axe = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');
const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

const WIDTHS = { phone: [360, 780], tablet: [768, 1024], desk: [1366, 900] };
const SCHEMES = ['light', 'dark'];
// Milliseconds for what a script of the page does after a click.
const WAIT = 60_000;
const PAGES = ['', 'tutorials/getting-started/', 'guides/install/', 'reference/sql/', 'reference/api/pool/', 'reference/api/options/', 'explanation/performance/', 'errors/', 'errors/pool-exhausted/', 'benchmarks/'];
const TYPES = { '.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png', '.xml': 'application/xml' };

const problems = [];
const [version] = JSON.parse(await readFile(join(html, 'versions.json'), 'utf8')).map((entry) => entry.version);

const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
    try {
        const file = join(html, path.endsWith('/') ? `${path}index.html` : path);
        const body = await readFile(file);
        response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(body);
    } catch {
        response.writeHead(404).end();
    }
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await puppeteer.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'], timeout: 600_000, protocolTimeout: 600_000 });

/** Opens a page; every request must stay here and be answered. */
async function open(place, { width, height, scheme, scripts = true }) {
    const page = await browser.newPage();
    // They only end a hang: the machine may be busy.
    page.setDefaultTimeout(600_000);
    await page.setJavaScriptEnabled(scripts);
    await page.setViewport({ width, height, isMobile: width < 600, hasTouch: width < 600 });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    page.on('request', (request) => {
        if (!request.url().startsWith(origin) && !request.url().startsWith('data:') && !request.url().startsWith('blob:')) {
            problems.push(`${place}: a request leaves the site: ${request.url()}`);
        }
    });
    page.on('response', (response) => {
        // A browser may ask for /favicon.ico before it has read which icon the page names.
        if (response.status() >= 400 && new URL(response.url()).pathname !== '/favicon.ico') {
            problems.push(`${place}: ${response.url()} is ${response.status()}`);
        }
    });
    page.on('pageerror', (error) => problems.push(`${place}: ${error.message}`));
    await page.goto(`${origin}/${version}/${place}`, { waitUntil: 'networkidle0' });

    return page;
}

async function look(place, device, scheme, isPictured = true) {
    const [width, height] = WIDTHS[device];
    const page = await open(place, { width, height, scheme });
    const where = `${place || 'index'} (${device}, ${scheme})`;
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - document.documentElement.clientWidth);
    wide <= 1 || problems.push(`${where}: the page is ${wide} pixels wider than the window`);
    const chosen = await page.evaluate(() => document.body.getAttribute('data-md-color-scheme'));
    chosen === (scheme === 'dark' ? 'slate' : 'default') || problems.push(`${where}: the scheme is ${chosen}`);
    await page.evaluate(axe);
    const found = await page.evaluate(() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
    for (const violation of found.violations) {
        const node = violation.nodes[0];
        problems.push(`${where}: ${violation.id}: ${violation.nodes.length} × ${node.html.slice(0, 160)} ${node.any[0]?.message ?? node.all[0]?.message ?? violation.help}`);
    }
    isPictured && await page.screenshot({ path: join(pictures, `${(place || 'index').replaceAll('/', '_').replace(/_$/, '')}-${device}-${scheme}.png`) });
    await page.close();
}

async function everyPage() {
    const files = await readdir(join(html, version), { recursive: true });
    return files.filter((file) => file.endsWith('index.html')).map((file) => file.slice(0, -'index.html'.length)).sort();
}

async function read(place) {
    const page = await open(place, { width: 1366, height: 900, scheme: 'light', scripts: false });
    const seen = await page.evaluate(() => ({
        text: document.querySelector('article')?.innerText.length ?? 0,
        links: [...document.querySelectorAll('nav a')].filter((link) => link.offsetParent !== null).length,
        isVisible: getComputedStyle(document.querySelector('article')).visibility === 'visible',
    }));
    (seen.text > 200 && seen.isVisible && seen.links > 5) || problems.push(`${place || 'index'}: without JavaScript there are ${seen.text} letters and ${seen.links} links`);
    await page.screenshot({ path: join(pictures, 'without-javascript.png') });
    await page.close();
}

async function use() {
    const page = await open('reference/pool/', { width: 1366, height: 900, scheme: 'light' });
    await page.waitForSelector('.md-version__link');
    const versions = await page.$$eval('.md-version__link', (links) => links.map((link) => link.innerText.trim()));
    versions.includes(version) || problems.push(`the menu of versions has ${versions.join(', ') || 'nothing'}`);
    await browser.defaultBrowserContext().overridePermissions(origin, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
    const button = await page.waitForSelector('article .md-clipboard, article .md-code__button');
    await page.evaluate(() => navigator.clipboard.writeText('nothing'));
    await button.evaluate((element) => element.click());
    const isCopied = async () => (await navigator.clipboard.readText()).trim() === document.querySelector('article pre > code').textContent.trim();
    await page.waitForFunction(isCopied, { polling: 100, timeout: WAIT }).catch((error) => problems.push(`the button beside the code does not copy it: ${error.message}`));
    await page.click('label[for="__search"]:not([hidden]), .md-search__input').catch(() => {});
    await page.type('.md-search__input', 'PoolExhaustedException');
    // Results of the first letters come before.
    const isFound = () => [...document.querySelectorAll('.md-search-result__item a')].slice(0, 5).some((link) => link.href.includes('pool-exhausted'));
    await page.waitForFunction(isFound, { polling: 100, timeout: WAIT }).catch((error) => problems.push(`the search for an exception does not find its page: ${error.message}`));
    await page.screenshot({ path: join(pictures, 'search.png') });
    await page.keyboard.press('Escape');
    // The first click leaves the system's scheme, the second one the light scheme.
    for (const scheme of ['default', 'slate']) {
        await page.evaluate(() => document.querySelector('form[data-md-component="palette"] label:not([hidden])').click());
        const isChosen = (wanted) => document.body.getAttribute('data-md-color-scheme') === wanted;
        await page.waitForFunction(isChosen, { polling: 100, timeout: WAIT }, scheme).catch((error) => problems.push(`the switch of schemes does not choose ${scheme}: ${error.message}`));
    }
    await page.close();
}

/** Every other version in the menu leads to its pages. */
async function switchVersions() {
    const others = JSON.parse(await readFile(join(html, 'versions.json'), 'utf8')).map((entry) => entry.version).filter((other) => other !== version);
    for (const other of others) {
        const page = await open('', { width: 1366, height: 900, scheme: 'light' });
        const link = await page.waitForSelector(`.md-version__link[href*="/${other}/"]`);
        await Promise.all([page.waitForNavigation(), link.evaluate((element) => element.click())]);
        new URL(page.url()).pathname.startsWith(`/${other}/`) || problems.push(`version ${other} of the menu leads to ${page.url()}`);
        await page.close();
    }
}

/** The charts are one page of their own, which tests/Bench/ReportTest.php looks at closely. */
async function charts() {
    const page = await open('benchmarks/', { width: 360, height: 780, scheme: 'light' });
    const link = await page.$('article a[href$="charts.html"]');
    if (link === null) {
        problems.push('no link leads from the benchmarks to their charts');
    } else {
        await Promise.all([page.waitForNavigation({ waitUntil: 'networkidle0' }), link.evaluate((element) => element.click())]);
        const drawn = await page.$$eval('figure svg[role=img]', (all) => all.length);
        drawn > 5 || problems.push(`the charts of the benchmarks are ${drawn}`);
        const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - document.documentElement.clientWidth);
        wide <= 1 || problems.push(`the charts are ${wide} pixels wider than the window`);
        await page.screenshot({ path: join(pictures, 'charts-phone-light.png') });
        await Promise.all([page.waitForNavigation(), page.click('header p a')]);
        new URL(page.url()).pathname.endsWith('/benchmarks/') || problems.push(`the charts lead back to ${page.url()}`);
    }
    await page.close();
}

try {
    await rm(pictures, { recursive: true, force: true });
    await mkdir(pictures, { recursive: true });
    const isAll = process.argv[2] === '--all';
    for (const place of isAll ? await everyPage() : []) {
        await look(place, 'phone', 'dark', false);
    }
    const pages = isAll ? [] : process.argv.length > 2 ? process.argv.slice(2) : PAGES;
    for (const place of pages) {
        for (const device of Object.keys(WIDTHS)) {
            for (const scheme of SCHEMES) {
                await look(place, device, scheme);
            }
        }
        await read(place);
    }
    await use();
    await switchVersions();
    await charts();
} finally {
    await browser.close();
    server.close();
}
const different = [...new Set(problems)];
different.forEach((problem) => console.error(problem));
console.log(`${(await readdir(pictures)).length} pictures in ${pictures}, ${different.length} problems`);
process.exitCode = different.length === 0 ? 0 : 1;
