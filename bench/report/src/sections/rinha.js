import { bars, percentiles } from '../charts.js';
import { element, table } from '../dom.js';
import { number, references, results } from '../data.js';

export const id = 'rinha';

const one = (value) => ({ median: value, min: value, max: value });

export function section() {
    const { runs, parts, people, expected_people: expected, limited, scale } = results.rinha;
    const all = [{ request: 'all', ...results.rinha }, ...runs];
    const looks = ['weft plain', 'go', 'pure-php', 'weft safe', 'symfony-messenger'];
    const series = all.filter((run) => run.latency_ms).map((run, i) => ({ name: run.request, look: looks[i], latency: run.latency_ms }));
    const stored = [
        { name: 'weft', spread: one(people) },
        ...references.rinha.rows.map((row) => ({ name: `${row.name} (published)`, spread: one(row.people), published: true })),
    ];
    return [
        element('p', {}, `Two instances behind nginx with PostgreSQL, ${limited ? 'within 1.5 CPU and 3.0 GB together' : 'without limits on this machine'}, under the contest's load from Gatling.`),
        scale === 1 ? bars(`People stored, of ${number(expected)} that are valid`, stored, 'people', number) : element('p', { class: 'note' }, `A shortened load (${number(scale, 2)} of it): no comparison with the contest.`),
        table('Published: people stored and p99', ['entry', 'people', 'p99 ms'], [
            ['weft', number(people), number(results.rinha.p99_ms)],
            ...references.rinha.rows.map((row) => [row.name, number(row.people), number(row.p99_ms)]),
        ]),
        element('p', { class: 'note' }, `Published: ${references.rinha.title} (${references.rinha.setting}).`),
        series.length === 0 ? null : percentiles('Latency by percentile', series),
        table('Requests, milliseconds', ['request', 'number', 'mean', 'p50', 'p75', 'p95', 'p99', 'max'], all.map((run) => [
            run.request,
            number(run.requests),
            number(run.mean_ms, 1),
            ...['p50_ms', 'p75_ms', 'p95_ms', 'p99_ms', 'max_ms'].map((field) => number(run[field])),
        ])),
        bars('CPU used on average, of 1.5', parts.map((part) => ({ name: part.name, look: part.name.startsWith('api') ? 'weft' : 'peer', spread: one(part.mean_cpus) })), 'CPUs'),
        table('The four parts', ['part', 'CPU limit', 'mean', 'CPU s', 'throttled s', 'MiB limit', 'peak MiB'], parts.map((part) => [
                part.name,
                number(part.cpus, 2),
                number(part.mean_cpus, 2),
                number(part.cpu_s, 1),
                number(part.throttled_s, 1),
                number(part.memory_limit_mib),
                number(part.peak_memory_mib),
            ])),
    ];
}
