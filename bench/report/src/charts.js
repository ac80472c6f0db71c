// The kinds of charts there are. Each draws itself anew when its width changes.

import * as Plot from '@observablehq/plot';
import { element } from './dom.js';
import { brief, short } from './data.js';
import { look } from './systems.js';

const narrow = 560;

/** A figure with a caption; draw(width) returns the chart. */
export function figure(caption, draw) {
    const holder = element('div', { class: 'chart' });
    const node = element('figure', {}, element('figcaption', {}, caption), holder);
    let drawn = 0;
    new ResizeObserver(([entry]) => {
        const width = Math.floor(entry.contentRect.width);
        if (width > 0 && width !== drawn) {
            drawn = width;
            const chart = draw(width);
            const image = chart.matches('svg') ? chart : chart.querySelector('svg:last-of-type');
            image.setAttribute('role', 'img');
            image.setAttribute('aria-label', `${caption}. The table has the same numbers.`);
            holder.replaceChildren(chart);
        }
    }).observe(holder);
    return node;
}

/** In place of a chart. */
const nothing = (caption) => element('p', { class: 'note' }, `${caption}: no run has this number.`);

/** Long names stand above their bars where there is no room beside them. */
function rowsOf(width, names) {
    const beside = Math.max(...names.map((name) => name.length)) * 7 + 20;
    const above = beside > width * 0.45;
    return {
        inset: above ? 20 : 2,
        shift: above ? 9 : 0,
        label: (rows) => above ? Plot.text(rows, { frameAnchor: 'left', y: 'name', text: 'name', dx: 2, dy: -12, fill: 'var(--text)' }) : null,
        plot: {
            width,
            height: names.length * (above ? 46 : 30) + 64,
            marginLeft: above ? 8 : beside,
            marginRight: width < narrow ? 64 : 76,
            marginBottom: 42,
            style: { background: 'none', fontSize: '12px', overflow: 'visible' },
            y: { label: null, domain: names, tickSize: 0, axis: above ? null : 'left' },
        },
    };
}

/**
 * Horizontal bars with lowest and highest.
 *
 * @param rows [{ name, spread, published }]: spread as of data.js, published bars are outlines
 * @param unit what the axis counts
 */
export function bars(caption, rows, unit, format = short) {
    const shown = rows.filter((row) => row.spread !== null);
    if (shown.length === 0) {
        return nothing(caption);
    }
    return figure(caption, (width) => {
        const layout = rowsOf(width, shown.map((row) => row.name));
        return Plot.plot({
            ...layout.plot,
            x: { label: `${unit} →`, labelOffset: 38, domain: [0, Math.max(...shown.map((row) => row.spread.max))], nice: true, grid: true, ticks: width < narrow ? 3 : 5, tickFormat: brief },
            marks: [
                Plot.barX(shown, {
                    x: (row) => row.spread.median,
                    y: 'name',
                    fill: (row) => row.published ? 'none' : look(row.look ?? row.name).kind === 'weft' ? 'var(--series-1)' : 'url(#peer)',
                    stroke: (row) => row.published ? 'var(--muted)' : 'none',
                    strokeDasharray: '4 3',
                    insetTop: layout.inset,
                    insetBottom: 2,
                }),
                Plot.ruleY(shown.filter((row) => row.spread.max > row.spread.min), {
                    x1: (row) => row.spread.min,
                    x2: (row) => row.spread.max,
                    y: 'name',
                    stroke: 'var(--text)',
                    strokeWidth: 1.5,
                    dy: layout.shift,
                }),
                layout.label(shown),
                Plot.text(shown, { x: (row) => row.spread.max, y: 'name', text: (row) => format(row.spread.median), textAnchor: 'start', dx: 6, dy: layout.shift, fill: 'var(--text)' }),
                Plot.ruleX([0], { stroke: 'var(--muted)' }),
            ],
        });
    });
}

/**
 * Bars of stacked parts, each with a pattern of its own.
 *
 * @param rows [{ name, parts: { part: value } }]
 * @param parts their names, at most three
 */
export function stacks(caption, rows, parts, unit) {
    if (rows.length === 0) {
        return nothing(caption);
    }
    const fills = ['var(--series-1)', 'url(#part-2)', 'url(#part-3)'];
    const pieces = rows.flatMap((row) => parts.map((part) => ({ name: row.name, part, value: row.parts[part] ?? 0 })));
    const total = (row) => parts.reduce((sum, part) => sum + (row.parts[part] ?? 0), 0);
    const chart = figure(caption, (width) => {
        const layout = rowsOf(width, rows.map((row) => row.name));
        return Plot.plot({
            ...layout.plot,
            x: { label: `${unit} →`, labelOffset: 38, grid: true, ticks: width < narrow ? 3 : 5, tickFormat: brief },
            color: { domain: parts, range: fills },
            marks: [
                Plot.barX(pieces, Plot.stackX({ x: 'value', y: 'name', fill: 'part', order: parts, insetTop: layout.inset, insetBottom: 2, stroke: 'var(--surface)' })),
                layout.label(rows),
                Plot.text(rows, { x: total, y: 'name', text: (row) => short(total(row)), textAnchor: 'start', dx: 6, dy: layout.shift, fill: 'var(--text)' }),
                Plot.ruleX([0], { stroke: 'var(--muted)' }),
            ],
        });
    });
    chart.querySelector('figcaption').append(legend(parts.map((part, i) => ({ name: part, fill: fills[i] }))));
    return chart;
}

function legend(entries) {
    return element('span', { class: 'legend' }, entries.map(({ name, fill }) => {
        const swatch = element('span');
        swatch.innerHTML = `<svg width="16" height="12" aria-hidden="true"><rect width="16" height="12" fill="${fill}"/></svg>`;
        return element('span', {}, swatch, ` ${name}`);
    }));
}

/** How a line looks: as its name says, or as it is told. */
const style = (line) => look(line.look ?? line.name);
const lineOptions = (line) => ({ stroke: style(line).color, strokeWidth: 2, strokeDasharray: style(line).dash ?? 'none' });
const markOptions = (line) => ({ symbol: style(line).symbol, stroke: style(line).color, fill: 'var(--surface)', r: 4 });

/** A line with dashes and symbols of its own, which the legend names. */
const markedLine = (line, points, channels) => [
    Plot.line(points, { ...channels, ...lineOptions(line) }),
    Plot.dot(points, { ...channels, ...markOptions(line) }),
];

function lineLegend(lines) {
    return element('span', { class: 'legend' }, lines.map((line) => {
        const swatch = element('span');
        swatch.append(Plot.plot({
            width: 34,
            height: 14,
            margin: 5,
            x: { axis: null, domain: [0, 2] },
            y: { axis: null, domain: [0, 1] },
            marks: [
                Plot.line([[0, 0.5], [2, 0.5]], lineOptions(line)),
                Plot.dot([[1, 0.5]], markOptions(line)),
            ],
            style: { background: 'none' },
        }));
        swatch.firstChild.setAttribute('aria-hidden', 'true');
        return element('span', {}, swatch, ` ${line.name}`);
    }));
}

/**
 * Latency by percentile, the slow end stretched: every mark is so many times rarer than the one before.
 *
 * @param series [{ name, latency: { p50: ms, … } }]
 */
export function percentiles(caption, series) {
    const shown = series.filter(({ latency }) => latency);
    const rarity = (percentile) => -Math.log10(1 - percentile / 100);
    const named = new Map([25, 50, 75, 90, 95, 99, 99.9].map((percentile) => [rarity(percentile), `p${percentile}`]));
    const points = ({ latency }) => Object.entries(latency)
        .map(([key, ms]) => ({ percentile: Number(key.slice(1)), ms }))
        .filter(({ percentile, ms }) => percentile >= 25 && percentile < 100 && ms > 0)
        .map((point) => ({ ...point, rarity: rarity(point.percentile) }));
    const chart = figure(caption, (width) => Plot.plot({
        width,
        height: 300,
        marginBottom: 44,
        marginLeft: 52,
        marginRight: 20,
        style: { background: 'none', fontSize: '12px', overflow: 'visible' },
        x: { label: 'percentile of requests →', labelOffset: 38, domain: [rarity(25), rarity(99.9)], ticks: [...named.keys()].filter((_, i) => width >= narrow || i % 2 === 1 || i === 6), tickFormat: (tick) => named.get(tick) },
        y: { type: 'log', label: '↑ milliseconds', grid: true, ticks: 5, tickFormat: brief },
        marks: shown.flatMap((line) => markedLine(line, points(line), { x: 'rarity', y: 'ms' })),
    }));
    chart.querySelector('figcaption').append(lineLegend(shown));
    return chart;
}

/**
 * Lines over a number that grows by factors.
 *
 * @param series [{ name, points: [{ x, y }] }]
 */
export function curves(caption, series, { x, y, logY = false }) {
    const chart = figure(caption, (width) => {
        const values = [...new Set(series.flatMap(({ points }) => points.map((point) => point.x)))].sort((a, b) => a - b);
        return Plot.plot({
            width,
            height: 300,
            marginBottom: 44,
            marginLeft: 58,
            marginRight: 20,
            style: { background: 'none', fontSize: '12px', overflow: 'visible' },
            x: { label: `${x} →`, labelOffset: 38, ticks: values.filter((_, i) => width >= narrow || i % 2 === 0).map(Math.log10), tickFormat: (tick) => brief(10 ** tick) },
            y: { type: logY ? 'log' : 'linear', label: `↑ ${y}`, grid: true, zero: !logY, ticks: 5, tickFormat: brief },
            marks: series.flatMap((line) => markedLine(line, line.points, { x: (point) => Math.log10(point.x), y: 'y' })),
        });
    });
    chart.querySelector('figcaption').append(lineLegend(series));
    return chart;
}

const phases = [
    { name: 'published', color: 'var(--series-1)', dash: 'none' },
    { name: 'delivered', color: 'var(--series-6)', dash: '7 3' },
    { name: 'acknowledged', color: 'var(--series-3)', dash: '2 2' },
];

/**
 * Messages per second as the broker counted them, one row for each contender, all on one time axis.
 *
 * @param contenders [{ name, timeline, seconds }]
 */
export function timelines(caption, contenders) {
    const points = contenders.flatMap(({ name, timeline }) => phases.flatMap((phase) => rates(timeline, phase.name).map((point) => ({ name, phase: phase.name, ...point }))));
    const chart = figure(caption, (width) => Plot.plot({
        width,
        height: contenders.length * 112 + 64,
        marginLeft: 52,
        marginRight: 16,
        marginTop: 24,
        marginBottom: 44,
        style: { background: 'none', fontSize: '12px', overflow: 'visible' },
        x: { label: 'seconds since the process started →', labelOffset: 38, grid: true, nice: true, ticks: width < narrow ? 5 : 10 },
        y: { label: null, grid: true, ticks: 3, tickFormat: brief },
        fy: { label: null, domain: contenders.map(({ name }) => name), axis: null, padding: 0.3 },
        marks: [
            Plot.ruleY([0], { stroke: 'var(--muted)' }),
            Plot.ruleX(contenders, { x: 'seconds', fy: 'name', stroke: 'var(--text)', strokeWidth: 1.5 }),
            ...phases.map((phase) => Plot.line(points.filter((point) => point.phase === phase.name), {
                x: 'second', y: 'rate', fy: 'name', stroke: phase.color, strokeDasharray: phase.dash, strokeWidth: 2, curve: 'step-before',
            })),
            Plot.text(contenders, { fy: 'name', frameAnchor: 'top-left', text: ({ name, seconds }) => `${name}: ends at ${short(seconds)} s`, dy: -16, fontWeight: 700, fill: 'var(--text)' }),
        ],
    }));
    chart.querySelector('figcaption').append(element('span', { class: 'legend' }, phases.map(({ name, color, dash }) => {
        const swatch = element('span');
        swatch.innerHTML = `<svg width="28" height="10" aria-hidden="true"><line x1="0" x2="28" y1="5" y2="5" stroke="${color}" stroke-width="2.5" stroke-dasharray="${dash}"/></svg>`;
        return element('span', {}, swatch, ` ${name} per second`);
    })));
    return chart;
}

/** Differences of counts as rates, each at the end of its interval; the first also at its start. */
function rates(timeline, name) {
    const ends = timeline.seconds.slice(1).map((second, i) => ({
        second,
        rate: (timeline[name][i + 1] - timeline[name][i]) / (second - timeline.seconds[i]),
    }));
    return [{ ...ends[0], second: timeline.seconds[0] }, ...ends];
}

/** The highest rate of a series, for the table beside a time line. */
export function peak(timeline, name) {
    return Math.max(...rates(timeline, name).map(({ rate }) => rate));
}

/**
 * One dot for each value on a scale of ratios, 1 being a draw.
 *
 * @param rows [{ name, values: [{ label, ratio }] }]
 */
export function ratios(caption, rows, unit, symbols) {
    if (rows.length === 0) {
        return nothing(caption);
    }
    const dots = rows.flatMap(({ name, values }) => values.map((value) => ({ name, ...value })));
    const labels = Object.keys(symbols);
    const chart = figure(caption, (width) => {
        const layout = rowsOf(width, rows.map((row) => row.name));
        return Plot.plot({
            ...layout.plot,
            x: { type: 'log', label: `${unit} →`, labelOffset: 38, inset: 8, grid: true, tickFormat: (value) => `${brief(value)}×`, ticks: width < narrow ? 3 : 5 },
            marks: [
                Plot.ruleX([1], { stroke: 'var(--text)', strokeDasharray: '4 3' }),
                layout.label(rows),
                Plot.dot(dots, { x: 'ratio', y: 'name', symbol: ({ label }) => symbols[label], stroke: 'var(--series-1)', strokeWidth: 1.8, fill: 'var(--surface)', r: 5, dy: layout.shift }),
            ],
            symbol: { type: 'identity' },
        });
    });
    chart.querySelector('figcaption').append(element('span', { class: 'legend' }, labels.map((label) => {
        const swatch = element('span');
        swatch.append(Plot.plot({
            width: 16, height: 16, margin: 0, x: { axis: null, domain: [0, 1] }, y: { axis: null, domain: [0, 1] },
            symbol: { type: 'identity' },
            marks: [Plot.dot([[0.5, 0.5]], { symbol: symbols[label], stroke: 'var(--series-1)', strokeWidth: 1.8, r: 5 })],
        }));
        swatch.firstChild.setAttribute('aria-hidden', 'true');
        return element('span', {}, swatch, ` ${label}`);
    })));
    return chart;
}
