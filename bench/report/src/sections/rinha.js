import { bars, percentiles } from '../charts.js';
import { choice, element, table } from '../dom.js';
import { number, references, results } from '../data.js';

export const id = 'rinha';

const titles = { single: 'inserts one by one', shared: 'inserts that share statements' };
const one = (value) => ({ median: value, min: value, max: value });

export function section() {
    const { runs, limited, scale } = results.rinha;
    const stored = [
        ...runs.map((run) => ({ name: `weft, ${run.inserts} inserts`, look: 'weft', spread: one(run.people) })),
        ...references.rinha.rows.map((row) => ({ name: `${row.name} (published)`, spread: one(row.people), published: true })),
    ];
    return [
        element('p', {}, `Two instances behind nginx with PostgreSQL, ${limited ? 'within 1.5 CPU and 3.0 GB together' : 'without limits on this machine'}, under the contest's load from Gatling.`),
        scale === 1 ? bars(`People stored, of ${number(runs[0].expected_people)} that are valid`, stored, 'people', number) : element('p', { class: 'note' }, `A shortened load (${number(scale, 2)} of it): no comparison with the contest.`),
        table('Published: people stored and p99', ['entry', 'people', 'transactions', 'p99 ms'], [
            ...runs.map((run) => [`weft, ${run.inserts} inserts`, number(run.people), number(run.transactions), number(run.p99_ms)]),
            ...references.rinha.rows.map((row) => [row.name, number(row.people), '–', number(row.p99_ms)]),
        ]),
        element('p', { class: 'note' }, `Published: ${references.rinha.title} (${references.rinha.setting}).`),
        measured(runs),
    ];
}

function measured(runs) {
    const holder = element('div');
    const names = runs.map((run) => titles[run.inserts]);
    const show = (name) => holder.replaceChildren(...details(runs[names.indexOf(name)]));
    show(names[0]);
    return element('div', {}, choice('Inserts', names, names[0], show), holder);
}

function details(run) {
    const all = [{ request: 'all', ...run }, ...run.kinds];
    const looks = ['weft plain', 'go', 'pure-php', 'weft safe', 'symfony-messenger'];
    const series = all.filter((kind) => kind.latency_ms).map((kind, i) => ({ name: kind.request, look: looks[i], latency: kind.latency_ms }));
    return [
        series.length === 0 ? '' : percentiles('Latency by percentile', series),
        table('Requests, milliseconds', ['request', 'number', 'mean', 'p50', 'p75', 'p95', 'p99', 'max'], all.map((kind) => [
            kind.request,
            number(kind.requests),
            number(kind.mean_ms, 1),
            ...['p50_ms', 'p75_ms', 'p95_ms', 'p99_ms', 'max_ms'].map((field) => number(kind[field])),
        ])),
        bars('CPU used on average, of 1.5', run.parts.map((part) => ({ name: part.name, look: part.name.startsWith('api') ? 'weft' : 'peer', spread: one(part.mean_cpus) })), 'CPUs'),
        table('The four parts', ['part', 'CPU limit', 'mean', 'CPU s', 'throttled s', 'MiB limit', 'peak MiB'], run.parts.map((part) => [
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
