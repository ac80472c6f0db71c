import { bars, percentiles, ratios } from '../charts.js';
import { choice, element, origin, table } from '../dom.js';
import { bounds, groupBy, middleRun, number, range, ratiosTo, references, results, spread } from '../data.js';

export const id = 'grpc';
export const files = ['grpc', 'grpc-bounds'];

const order = ['weft', 'weft-google-protobuf', 'go', 'tonic', 'node'];
const rank = (system) => order.indexOf(system) < 0 ? order.length : order.indexOf(system);
const systems = (runs) => [...groupBy(runs, (run) => run.system)].sort(([a], [b]) => rank(a) - rank(b));
const presets = () => [...groupBy(results.grpc.runs, (run) => run.preset)];

export function section() {
    return [
        ...results.grpc ? race() : [],
        bounds ? bears(bounds, results['grpc-bounds']) : null,
    ];
}

function race() {
    const all = presets();
    const holder = element('div');
    const show = (name) => holder.replaceChildren(...preset(name, all.find(([each]) => each === name)[1]));
    // What the tile speaks of, where it was measured: a core that is kept busy.
    const [first] = all.find(([, [run]]) => run.tool === 'h2load') ?? all[0];
    show(first);
    return [
        element('p', {}, 'One process of each server on one core. Get returns a user, List streams ten. ghz decodes every answer and is slower than the servers; h2load sends one canned request and decodes nothing.'),
        overview(all),
        choice('Load', all.map(([name]) => name), first, show),
        holder,
    ];
}

function overview(all) {
    // What lasts a tenth of a second is shorter than the clock of CPU time needs.
    const long = all.filter(([name]) => !name.endsWith(', 1,000 calls, ghz')).sort(([, [a]], [, [b]]) => b.tool.localeCompare(a.tool));
    const name = ({ call, tool, concurrency, connections }) => `${call}, ${tool}, ${concurrency} on ${connections}`;
    const shapes = ['circle', 'square', 'triangle', 'diamond', 'star'];
    const rows = long.map(([, runs]) => ({ name: name(runs[0]), values: ratiosTo(runs, 'cpu_us_per_call').map(({ peer, ratio }) => ({ label: peer, ratio })) }))
        .filter(({ values }) => values.length > 0);
    const peers = [...new Set(rows.flatMap(({ values }) => values.map(({ label }) => label)))].sort((a, b) => rank(a) - rank(b));
    return element(
        'div',
        { class: 'pair' },
        ratios('Calls per CPU second: Weft against each peer (right of 1 is better), by calls at a time on connections', rows, 'times the peer', Object.fromEntries(peers.map((peer, i) => [peer, shapes[i % shapes.length]]))),
        table('Weft\'s calls per CPU second, times the peer\'s', ['call, tool, calls at a time on connections', ...peers], rows.map(({ name: load, values }) => [
            load,
            ...peers.map((peer) => {
                const value = values.find(({ label }) => label === peer);
                return value ? number(value.ratio, 2) : '–';
            }),
        ])),
    );
}

function bears({ bounds: rows, streams }, result) {
    const series = streams.map(({ streams: count, latency_ms: latency }, i) => ({ name: `${count} stream${count === 1 ? '' : 's'}`, look: ['weft plain', 'go', 'weft safe'][i % 3], latency }));
    return element(
        'div',
        {},
        element('h3', {}, 'The limits of one server of Weft'),
        table('Measured, beside what was wanted', ['what', 'measured', 'wanted', 'met'], rows, 'words'),
        series.length === 0 ? null : percentiles('Latency by percentile: Get, by the number of streams that share a connection', series),
        origin(result),
    );
}

function preset(name, runs) {
    const all = systems(runs);
    const rows = (field) => all.map(([system, own]) => ({ name: system, spread: spread(own, field) }));
    const { call, tool, concurrency, connections } = runs[0];
    // They were measured with ghz.
    const theirs = references.grpc.rows
        .filter((row) => tool === 'ghz' && row.call === call && row.concurrency === concurrency && connections === 1)
        .map((row) => ({ name: 'Swoole (published)', spread: { median: row.rps, min: row.rps, max: row.rps }, published: true, row }));
    const series = all.map(([system, own]) => ({ name: system, latency: middleRun(own, 'p99_ms')?.latency_ms })).filter((line) => line.latency);
    return [
        element('div', { class: 'pair' }, bars(`Calls per second: ${name}`, [...rows('rps'), ...theirs], 'calls per second', number), bars('CPU for a call (less is better)', rows('cpu_us_per_call'), 'µs of CPU')),
        table(`${name}: median (lowest–highest)`, ['contender', 'calls/s', 'CPU µs/call', 'p50 ms', 'p99 ms', 'RSS MiB', 'errors'], [
            ...all.map(([system, own]) => [
                system,
                range(spread(own, 'rps'), number),
                range(spread(own, 'cpu_us_per_call')),
                range(spread(own, 'p50_ms')),
                range(spread(own, 'p99_ms')),
                range(spread(own, 'rss_mib'), number),
                number(own.reduce((sum, run) => sum + (run.errors ?? 0), 0)),
            ]),
            ...theirs.map(({ name: published, row }) => [published, number(row.rps), '–', number(row.p50_ms, 2), number(row.p99_ms, 2), '–', '0']),
        ]),
        theirs.length > 0 ? element('p', { class: 'note' }, `Published: ${references.grpc.title} (${references.grpc.setting}).`) : null,
        series.length > 0 ? percentiles(`Latency by percentile: ${name}`, series) : null,
    ].filter((child) => child !== null);
}
