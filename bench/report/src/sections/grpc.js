import { bars, percentiles } from '../charts.js';
import { choice, element, table } from '../dom.js';
import { groupBy, middleRun, number, range, references, results, spread } from '../data.js';

export const id = 'grpc';

const order = ['weft', 'weft-google-protobuf', 'go', 'node'];
const systems = (runs) => [...groupBy(runs, (run) => run.system)].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
const presets = () => [...groupBy(results.grpc.runs, (run) => run.preset)];

export function section() {
    const all = presets();
    const holder = element('div');
    const show = (name) => holder.replaceChildren(...preset(name, all.find(([each]) => each === name)[1]));
    show(all[0][0]);
    return [
        element('p', {}, 'One process of each server on one core. Get returns a user, List streams ten. ghz decodes every answer and is slower than the servers; h2load sends one canned request and decodes nothing.'),
        choice('Load', all.map(([name]) => name), all[0][0], show),
        holder,
    ];
}

function preset(name, runs) {
    const all = systems(runs);
    const rows = (field) => all.map(([system, own]) => ({ name: system, spread: spread(own, field) }));
    const { call, concurrency, connections } = runs[0];
    const theirs = references.grpc.rows
        .filter((row) => row.call === call && row.concurrency === concurrency && connections === 1)
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
