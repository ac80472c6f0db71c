// Makes one HTML file with everything in it: node build.mjs FILE <results.json, which bench/src/Report/HtmlPage.php writes.

import { build } from 'esbuild';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const read = (path) => readFileSync(join(here, path), 'utf8');

const bundle = await build({
    entryPoints: [join(here, 'src/main.js')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    legalComments: 'inline',
});
const { documentation, ...results } = JSON.parse(readFileSync(0, 'utf8'));
const data = JSON.stringify({ ...results, references: JSON.parse(read('references.json')) });
const parts = {
    documentation: documentation === null ? '' : `<p><a href="${documentation}">Benchmarks in the documentation</a></p>`,
    style: read('src/style.css'),
    // Inside a script element neither its end nor the start of a comment may stand.
    data: data.replaceAll('<', '\\u003c'),
    script: bundle.outputFiles[0].text.replaceAll('</script', '<\\/script'),
};
const html = read('src/page.html').replace(/\{\{(\w+)\}\}/g, (_, part) => parts[part]);

const file = resolve(process.argv[2]);
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, html);
