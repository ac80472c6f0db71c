import { bars, percentiles } from '../charts.js';
import { element, table } from '../dom.js';
import { finished, groupBy, middleRun, number, range, references, results, spread } from '../data.js';

export const id = 'pool';

const label = (run) => `${run.preset}, pool ${run.pool ? 'on' : 'off'}`;
const presets = () => [...groupBy(results.pool.runs, label)];

export function section() {
    const all = presets();
    const series = all.map(([, own]) => ({ own, latency: middleRun(own, 'p99_ms')?.latency_ms })).filter(({ latency }) => latency);
    const looks = ['weft plain', 'weft confirmed', 'weft safe', 'go', 'pure-php'];
    return [
        element('p', {}, 'An HTTP server whose requests query a database and compute, with a pool of connections and with a connection for each query, under the five loads of a published benchmark.'),
        ...[...groupBy(all, ([, [run]]) => run.preset)].map(([preset, own]) => bars(`Requests per second: ${preset}`, own.flatMap(rows), 'requests per second', number)),
        table('The pool in numbers: median (lowest–highest)', ['load', 'requests/s', 'ceiling', 'p50 ms', 'p99 ms', 'errors', 'published/s', 'published errors'], all.map(([name, own]) => [
            name,
            range(spread(own, 'rps'), number),
            number(own[0].ceiling_rps),
            range(spread(own, 'p50_ms')),
            range(spread(own, 'p99_ms')),
            number(own.reduce((sum, run) => sum + (run.errors ?? 0), 0)),
            number(own[0].published_rps),
            `${number(own[0].published_error_percent, 1)} %`,
        ])),
        table('CPU for a request, µs: median (lowest–highest)', ['load', 'server', 'database'], all.map(([name, own]) => [
            name,
            ...['cpu_s', 'database_cpu_s'].map((field) => range(spread(own, (run) => typeof run[field] === 'number' ? run[field] * 1e6 / run.requests : null), number)),
        ])),
        element('p', { class: 'note' }, `Ceiling: what the load itself allows. Published: ${references.pool.title} (${references.pool.setting}).`),
        series.length === 0 ? null : percentiles('Latency by percentile', series.map(({ own, latency }, i) => ({ name: label(own[0]), look: looks[i], latency }))),
    ];
}

const rows = ([name, own]) => [
    { name, spread: spread(own, 'rps'), look: own[0].pool ? 'weft' : 'peer' },
    { name: `${name} (published)`, spread: one(own[0].published_rps), published: true },
];

const one = (value) => ({ median: value, min: value, max: value });
