import { bars, peak, stacks, timelines } from '../charts.js';
import { choice, element, table } from '../dom.js';
import { finished, groupBy, middleRun, number, range, references, results, spread } from '../data.js';

/** The name the table of bench/bus has. */
function contender(run) {
    const alone = { sqlite: 'embedded', postgres: 'postgres' }[run.transport];
    return alone ? `${run.system} ${alone}` : run.system === 'weft' ? `weft ${run.mode}` : run.system;
}

const order = ['weft plain', 'weft confirmed', 'weft safe', 'weft batch', 'weft batch-safe', 'weft embedded', 'weft postgres', 'go', 'pure-php', 'symfony-messenger'];
const rank = (name) => order.indexOf(name) < 0 ? order.length : order.indexOf(name);
const groups = (runs) => [...groupBy(runs, contender)].sort(([a], [b]) => rank(a) - rank(b));
const commands = (runs) => Math.max(...runs.filter(finished).map((run) => run.rows));

export const id = 'bus';

export function section() {
    const runs = results.bus.runs;
    const total = number(commands(runs));
    return [
        element('p', {}, `One process takes ${total} commands off a queue, stores each in a transaction of its own, publishes an event for each, and drains the events.`
            + ' weft plain, go, pure-php and symfony-messenger give the same guarantees: no confirms, transient messages, the event published before the commit.'),
        times(runs, total),
        timesTable(runs),
        overTime(runs),
        element('div', { class: 'pair' }, rates(runs), cpu(runs)),
        element('div', { class: 'pair' }, published(runs), memory(runs)),
        results['bus-matrix'] ? matrix(results['bus-matrix'].runs) : null,
    ];
}

function times(runs, total) {
    return bars(`Seconds for ${total} commands and their events (less is better)`, rows(runs, 'seconds'), 'seconds', (value) => number(value, 2));
}

const rows = (runs, field) => groups(runs).map(([name, own]) => ({ name, spread: spread(own, field) }));

function timesTable(runs) {
    return table('The bus in numbers: median (lowest–highest)', ['contender', 'seconds', 'filling/s', 'commands/s', 'events/s', 'rows', 'lost', 'duplicates'], groups(runs).map(([name, own]) => [
        name,
        range(spread(own, 'seconds'), (value) => number(value, 2)),
        range(spread(own, 'fill_per_s'), number),
        range(spread(own, 'commands_per_s'), number),
        range(spread(own, 'events_per_s'), number),
        sum(own, 'rows'),
        sum(own, 'lost'),
        sum(own, 'duplicates'),
    ]));
}

const sum = (runs, field) => number(runs.filter(finished).reduce((total, run) => total + run[field], 0));

function overTime(runs) {
    const lines = groups(runs)
        .map(([name, own]) => ({ name, run: middleRun(own, 'seconds') }))
        .filter(({ run }) => run?.timeline)
        .map(({ name, run }) => ({ name, timeline: run.timeline, seconds: run.seconds }));
    if (lines.length === 0) {
        return null;
    }
    return element(
        'div',
        {},
        timelines('What the broker counted: the queue is filled, commands turn into events, events drain', lines),
        table('Peaks of the time lines, messages per second', ['contender', 'published', 'delivered', 'acknowledged', 'ends at, s'], lines.map(({ name, timeline, seconds }) => [
            name,
            ...['published', 'delivered', 'acknowledged'].map((series) => number(peak(timeline, series))),
            number(seconds, 2),
        ])),
        element('p', { class: 'note' }, 'Of each contender the run with the median time; RabbitMQ\'s own counters, read about five times a second. weft embedded has no broker to ask.'),
    );
}

function rates(runs) {
    const holder = element('div');
    const fields = { 'filling the queue': 'fill_per_s', 'commands': 'commands_per_s', 'events': 'events_per_s' };
    const show = (phase) => holder.replaceChildren(
        bars(`Messages per second: ${phase}`, rows(runs, fields[phase]), 'per second', number),
        table(`Messages per second: ${phase}`, ['contender', 'per second'], rows(runs, fields[phase]).map((row) => [row.name, range(row.spread, number)])),
    );
    show('commands');
    return element('div', {}, choice('Phase', Object.keys(fields), 'commands', show), holder);
}

function cpu(runs) {
    const each = (run, field) => run[field] === null ? null : run[field] * 1e6 / run.rows;
    const per = groups(runs).map(([name, own]) => ({
        name,
        parts: {
            process: spread(own, (run) => each(run, 'cpu_s'))?.median,
            broker: spread(own, (run) => each(run, 'broker_cpu_s'))?.median,
            database: spread(own, (run) => each(run, 'database_cpu_s'))?.median,
        },
    })).filter(({ parts }) => parts.process !== undefined);
    return element(
        'div',
        {},
        stacks('CPU for one command and its event, µs', per, ['process', 'broker', 'database'], 'µs of CPU'),
        table('CPU for one command and its event, µs, medians', ['contender', 'process', 'broker', 'database'], per.map(({ name, parts }) => [
            name,
            ...['process', 'broker', 'database'].map((part) => parts[part] === undefined ? '–' : number(parts[part])),
        ])),
    );
}

function memory(runs) {
    return element(
        'div',
        {},
        bars('Memory of the process at its peak', rows(runs, 'rss_mib'), 'MiB', number),
        table('Memory of the process at its peak', ['contender', 'MiB'], rows(runs, 'rss_mib').map((row) => [row.name, range(row.spread, number)])),
    );
}

function published(runs) {
    const reference = references.bus;
    const ours = groups(runs).map(([name, own]) => ({ name, spread: spread(own, (run) => run.seconds ? run.rows / run.seconds : null) }));
    const theirs = reference.rows.map((row) => ({
        name: `${row.name} (published)`,
        spread: { median: row.commands_per_s, min: row.commands_per_s, max: row.commands_per_s },
        published: true,
    }));
    return element(
        'div',
        {},
        bars('Commands per second of the whole run, beside what was published elsewhere', [...ours, ...theirs], 'commands per second', number),
        table('Commands per second of the whole run', ['contender', 'commands/s'], [...ours, ...theirs].map((row) => [row.name, range(row.spread, number)])),
        element('p', { class: 'note' }, `Published: ${reference.title} (${reference.setting}). Another machine, so the outlined bars are no race.`),
    );
}

function matrix(runs) {
    const cell = (run) => `${run.persistent ? 'persistent' : 'transient'}, confirms ${run.confirms ? 'on' : 'off'}`;
    const holder = element('div');
    const cells = [...groupBy(runs, cell).keys()];
    const systems = [...groupBy(runs, (run) => run.system)];
    const show = (wanted) => holder.replaceChildren(
        bars(`Seconds with ${wanted}`, systems.map(([name, own]) => ({ name, spread: spread(own.filter((run) => cell(run) === wanted), 'seconds') })), 'seconds', (value) => number(value, 2)),
        table('Seconds in every cell, median (lowest–highest)', ['contender', ...cells], systems.map(([name, own]) => [
            name,
            ...cells.map((each) => range(spread(own.filter((run) => cell(run) === each), 'seconds'), (value) => number(value, 2))),
        ])),
    );
    show(cells[0]);
    return element('div', {}, element('h3', {}, 'Persistent messages and publisher confirms'), choice('Messages', cells, cells[0], show), holder);
}
