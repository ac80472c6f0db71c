import { bars, percentiles, ratios } from '../charts.js';
import { choice, element, table } from '../dom.js';
import { groupBy, middleRun, number, range, ratiosTo, results, spread } from '../data.js';

export const id = 'http';

const order = ['weft', 'swoole', 'roadrunner', 'frankenphp', 'go', 'node', 'php-fpm', 'php-builtin'];
const of = (wanted) => results.http.runs.filter((run) => Object.entries(wanted).every(([field, value]) => run[field] === value));
const systems = (runs) => [...groupBy(runs, (run) => run.system)].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));

export function section() {
    const cases = [...new Set(results.http.runs.map((run) => run.case))];
    const protocols = [...new Set(results.http.runs.map((run) => run.protocol))];
    const connections = [...new Set(results.http.runs.map((run) => run.connections))].sort((a, b) => a - b);
    const wanted = { case: cases[0], protocol: protocols[0], connections: connections.includes(64) ? 64 : connections[0] };
    const holder = element('div');
    const show = () => holder.replaceChildren(...discipline(wanted));
    const choose = (field, convert = (value) => value) => (value) => {
        wanted[field] = convert(value);
        show();
    };
    show();
    return [
        element('p', {}, 'One process of each server on one core, the load generator (wrk, h2load) on the other.'),
        overview(cases, protocols, connections),
        element('fieldset', { class: 'choices' }, element('legend', {}, 'One load in detail'),
            choice('Request', cases, wanted.case, choose('case')),
            choice('Protocol', protocols, wanted.protocol, choose('protocol')),
            choice('Connections', connections.map(String), String(wanted.connections), choose('connections', Number))),
        holder,
        idle(),
    ];
}

function overview(cases, protocols, connections) {
    const shapes = ['circle', 'square', 'triangle', 'diamond', 'star'];
    const symbols = Object.fromEntries(connections.map((count, i) => [`${count} connection${count === 1 ? '' : 's'}`, shapes[i % shapes.length]]));
    const rows = cases.flatMap((name) => protocols.map((protocol) => ({
        name: `${name}, ${protocol}`,
        values: connections.map((count, i) => ({ label: Object.keys(symbols)[i], ...ratiosTo(of({ case: name, protocol, connections: count }), 'cpu_us_per_request')[0] }))
            .filter(({ ratio: value }) => value !== undefined),
    }))).filter(({ values }) => values.length > 0);
    return element(
        'div',
        { class: 'pair' },
        ratios('Requests per CPU second: Weft against the best peer (right of 1 is better)', rows, 'times the best peer', symbols),
        table('Weft\'s requests per CPU second, times the best peer\'s', ['load', ...Object.keys(symbols)], rows.map(({ name, values }) => [
            name,
            ...Object.keys(symbols).map((label) => {
                const value = values.find((each) => each.label === label);
                return value ? `${number(value.ratio, 2)} (${value.peer})` : '–';
            }),
        ])),
    );
}

function discipline(wanted) {
    const all = systems(of(wanted));
    const rows = (field) => all.map(([name, own]) => ({ name, spread: spread(own, field) }));
    const what = `${wanted.case}, ${wanted.protocol}, ${wanted.connections} connections`;
    if (all.length === 0) {
        return [element('p', {}, `Nobody was measured with ${what}.`)];
    }
    return [
        element('div', { class: 'pair' }, bars(`Requests per second: ${what}`, rows('rps'), 'requests per second', number), bars('CPU for a request (less is better)', rows('cpu_us_per_request'), 'µs of CPU')),
        table(`${what}: median (lowest–highest)`, ['contender', 'requests/s', 'CPU µs/request', 'p50 ms', 'p99 ms', 'RSS MiB', 'errors'], all.map(([name, own]) => [
            name,
            range(spread(own, 'rps'), number),
            range(spread(own, 'cpu_us_per_request')),
            range(spread(own, 'p50_ms')),
            range(spread(own, 'p99_ms')),
            range(spread(own, 'rss_mib'), number),
            number(own.reduce((sum, run) => sum + (run.errors ?? 0), 0)),
        ])),
        latency(what, all),
    ];
}

function latency(what, all) {
    const series = all.map(([name, own]) => ({ name, latency: middleRun(own, 'p99_ms')?.latency_ms })).filter((line) => line.latency);
    return series.length === 0 ? null : percentiles(`Latency by percentile: ${what}`, series);
}

function idle() {
    const rows = results.http.idle.filter((run) => run.kib_per_connection !== null);
    const one = (value) => ({ median: value, min: value, max: value });
    return rows.length === 0 ? null : element(
        'div',
        { class: 'pair' },
        bars(`Memory of an idle connection, ${number(rows[0].connections)} of them (less is better)`, rows.map((run) => ({ name: run.system, spread: one(run.kib_per_connection) })), 'KiB'),
        table('Idle connections', ['contender', 'connections', 'KiB each'], results.http.idle.map((run) => [
            run.system,
            number(run.connections),
            run.kib_per_connection === null ? run.failed : number(run.kib_per_connection, 1),
        ])),
    );
}
