import { element, origin } from './dom.js';
import { finished, from, number, results, tiles, titles } from './data.js';
import { patterns } from './systems.js';
import * as bus from './sections/bus.js';
import * as grpc from './sections/grpc.js';
import * as http from './sections/http.js';
import { other } from './sections/other.js';
import * as pool from './sections/pool.js';
import * as rinha from './sections/rinha.js';
import * as scale from './sections/scale.js';

const sections = [bus, other('bus-noop'), http, grpc, pool, rinha, scale];
const more = { 'bus-noop': 'Messages without work', scale: 'Scale' };
const title = ({ id }) => titles[id] ?? more[id];
const there = ({ id, files = [id] }) => files.some((name) => results[name] !== undefined);

document.body.prepend(patterns());
const byId = (id) => document.getElementById(id);
byId('summary').append(summary());
byId('contents').append(...sections.filter(there).map((benchmark) => element('li', {}, element('a', { href: `#${benchmark.id}` }, title(benchmark)))));
byId('tiles').append(...Object.keys(titles).map(tile));
byId('sections').append(...sections.filter(there).map(section));
byId('footer').append(raw());

function summary() {
    return from === 'published'
        ? 'Weft beside its peers: the last published run of each benchmark. Every number comes from a file below bench/ and is printed by a command named here.'
        : 'Weft beside its peers: the last run of each benchmark on this machine. Every number comes from a file in bench/out.';
}

function tile(id) {
    const shown = tiles[id];
    const name = element('h2', {}, results[id] ? element('a', { href: `#${id}` }, titles[id]) : titles[id]);
    const body = shown
        ? [element('p', { class: 'value' }, shown.value), element('p', { class: 'claim' }, shown.claim), element('p', { class: 'detail' }, shown.detail)]
        : [element('p', { class: 'value none' }, '–'), element('p', { class: 'detail' }, results[id] ? 'The results have nothing to compare.' : `No results yet: make bench-${id}`)];
    return element('li', { class: 'tile', 'data-benchmark': id }, name, body);
}

function section(benchmark) {
    const { id } = benchmark;
    return element(
        'section',
        { id, 'aria-labelledby': `${id}-title` },
        element('h2', { id: `${id}-title` }, title(benchmark)),
        ...results[id] ? [failures(results[id])] : [],
        benchmark.section(),
        ...results[id] ? [origin(results[id])] : [],
    );
}

/** Runs that failed stand above everything else, with the log they left. */
function failures({ runs }) {
    const failed = runs.filter((run) => !finished(run));
    if (failed.length === 0) {
        return null;
    }
    const name = (run) => [run.system ?? run.contender, run.mode, run.case, run.protocol, run.preset, run.curve, run.connections && `${run.connections} connections`].filter(Boolean).join(', ');
    const log = ({ failed: reason, log: file }) => !file || reason.includes(file) ? '' : ` (log: ${file})`;
    return element(
        'div',
        { class: 'failures' },
        element('p', {}, `✗ ${number(failed.length)} of ${number(runs.length)} runs failed:`),
        element('ul', {}, failed.slice(0, 20).map((run) => element('li', {}, `${name(run)}: ${run.failed}${log(run)}`))),
    );
}

function raw() {
    const text = JSON.stringify(results, null, 2);
    const save = () => {
        const link = element('a', { href: URL.createObjectURL(new Blob([text], { type: 'application/json' })), download: 'weft-results.json' });
        link.click();
        URL.revokeObjectURL(link.href);
    };
    return element(
        'div',
        {},
        element('h2', {}, 'Raw results'),
        element('p', {}, 'Every run of every contender is inside this page. '),
        element('button', { type: 'button', onclick: save }, 'Save as weft-results.json'),
        element('details', {}, element('summary', {}, 'Show them here'), element('pre', { tabindex: '0' }, text)),
    );
}
