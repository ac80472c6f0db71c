import { bars, peak, stacks, timelines } from '../charts.js';
import { choice, element, origin, table } from '../dom.js';
import { finished, groupBy, middleRun, number, range, references, results, spread } from '../data.js';

/** The name the table of bench/bus has. */
function contender(run) {
    const alone = { sqlite: 'embedded', postgres: 'postgres' }[run.transport];
    return alone ? `${run.system} ${alone}` : run.system === 'weft' ? `weft ${run.mode}` : run.system;
}

const order = ['weft plain', 'weft confirmed', 'weft safe', 'weft batch', 'weft batch-safe', 'weft embedded', 'weft postgres', 'go', 'pure-php', 'symfony-messenger', 'php-service-bus'];
const rank = (name) => order.indexOf(name) < 0 ? order.length : order.indexOf(name);
const groups = (runs) => [...groupBy(runs, contender)].sort(([a], [b]) => rank(a) - rank(b));
const commands = (runs) => Math.max(...runs.filter(finished).map((run) => run.rows));

export const id = 'bus';
export const files = ['bus', 'bus-matrix'];

export function section() {
    return [
        ...results.bus ? race(results.bus.runs) : [],
        results['bus-matrix'] ? matrix(results['bus-matrix']) : null,
    ];
}

function race(runs) {
    if (!runs.some(finished)) {
        return [];
    }
    const total = number(commands(runs));
    return [
        element('p', {}, `One process takes ${total} commands off a queue, stores each in a transaction of its own, publishes an event for each, and drains the events.`
            + ' weft plain, go, pure-php and symfony-messenger give the same guarantees: no confirms, transient messages, the event published before the commit.'),
        times(runs, total),
        timesTable(runs),
        guaranteesTable(runs),
        overTime(runs),
        element('div', { class: 'pair' }, rates(runs), cpu(runs)),
        element('div', { class: 'pair' }, published(runs), memory(runs)),
    ];
}

/** What a contender promises: whoever promises less has less to do. */
function guarantees({ system, mode, transport, persistent, confirms }) {
    if (transport !== 'rabbitmq') {
        return { brief: 'durable, once', messages: `on disk, in ${transport === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, confirms: 'the commit is one', crash: 'nothing: message, row and event share a commit' };
    }
    const messages = persistent ? 'persistent' : 'transient';
    if (mode === 'safe' || mode === 'batch-safe') {
        return { brief: `${messages}, confirms, once`, messages: `${messages}, quorum queue`, confirms: 'on', crash: 'nothing: inbox and outbox share the commit of the row' };
    }
    return {
        brief: `${messages}, ${confirms ? 'confirms' : 'no confirms'}`,
        messages: `${messages}, durable classic queue`,
        confirms: confirms ? 'on' : 'off',
        crash: system === 'weft' && confirms ? 'an event can get lost after its row' : 'an event can be out without its row',
    };
}

function guaranteesTable(runs) {
    return table('What each contender promises', ['contender', 'messages', 'publisher confirms', 'what a crash leaves behind'], groups(runs).map(([name, [run]]) => {
        const { messages, confirms, crash } = guarantees(run);
        return [name, messages, confirms, crash];
    }), 'words');
}

function times(runs, total) {
    const promised = groups(runs).map(([name, own]) => ({ name: `${name} (${guarantees(own[0]).brief})`, look: name, spread: spread(own, 'seconds') }));
    return bars(`Seconds for ${total} commands and their events (less is better)`, promised, 'seconds', (value) => number(value, 2));
}

const rows = (runs, field) => groups(runs).map(([name, own]) => ({ name, spread: spread(own, field) }));

function timesTable(runs) {
    return table('The bus in numbers: median (lowest–highest)', ['contender', 'seconds', 'filling/s', 'commands/s', 'events/s', 'rows', 'lost', 'twice'], groups(runs).map(([name, own]) => [
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
        element('p', { class: 'note' }, 'Of each contender the run with the median time; RabbitMQ\'s own counters, read about five times a second. weft embedded and weft postgres have no broker to ask.'),
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

function matrix(result) {
    const { runs } = result;
    if (!runs.some(finished)) {
        return null;
    }
    const cell = (run) => `${run.persistent ? 'persistent' : 'transient'}, confirms ${run.confirms ? 'on' : 'off'}`;
    const holder = element('div');
    const strictness = (name) => (name.startsWith('persistent') ? 2 : 0) + (name.endsWith('on') ? 1 : 0);
    const cells = [...groupBy(runs, cell).keys()].sort((a, b) => strictness(a) - strictness(b));
    const systems = [...groupBy(runs, (run) => run.system)].sort(([a], [b]) => (a === 'weft' ? -1 : rank(a)) - (b === 'weft' ? -1 : rank(b)));
    const show = (wanted) => holder.replaceChildren(
        bars(`Seconds for ${number(commands(runs))} commands with ${wanted} (less is better)`, systems.map(([name, own]) => ({ name, spread: spread(own.filter((run) => cell(run) === wanted), 'seconds') })), 'seconds', (value) => number(value, 2)),
        table('Seconds in every cell, median (lowest–highest)', ['contender', ...cells], systems.map(([name, own]) => [
            name,
            ...cells.map((each) => range(spread(own.filter((run) => cell(run) === each), 'seconds'), (value) => number(value, 2))),
        ])),
    );
    show(cells[0]);
    return element('div', {}, element('h3', {}, 'Persistent messages and publisher confirms'), choice('Messages', cells, cells[0], show), holder, origin(result));
}
