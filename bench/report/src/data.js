// The results inside the page, and the arithmetic on repeated runs.

const { from, titles, tiles, bounds, results, references } = JSON.parse(document.getElementById('data').textContent);

export { bounds, from, references, results, tiles, titles };

export const finished = (run) => run.failed === undefined;

/** Median, lowest and highest of a field over runs; null when no run has it. */
export function spread(runs, field) {
    const read = typeof field === 'function' ? field : (run) => run[field];
    const values = runs.map(read).filter((value) => typeof value === 'number').sort((a, b) => a - b);
    if (values.length === 0) {
        return null;
    }
    const middle = values.length >> 1;
    const median = values.length % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return { median, min: values[0], max: values.at(-1), count: values.length };
}

/** A Map of the runs by what a function says of them, in the order they come. */
export function groupBy(runs, key) {
    const groups = new Map();
    for (const run of runs) {
        const name = key(run);
        groups.has(name) ? groups.get(name).push(run) : groups.set(name, [run]);
    }
    return groups;
}

/** The run in the middle by a field: what is shown where only one can be. */
export function middleRun(runs, field) {
    const sorted = runs.filter(finished).sort((a, b) => a[field] - b[field]);
    return sorted[sorted.length >> 1];
}

/** How many times as much a unit of work costs each peer as Weft, the cheapest first: [{ peer, ratio }]. */
export function ratiosTo(runs, field) {
    const costs = [...groupBy(runs, (run) => run.system)].map(([name, own]) => ({ name, cost: spread(own, field) })).filter(({ cost }) => cost);
    const weft = costs.find(({ name }) => name === 'weft');
    return weft === undefined ? [] : costs.filter(({ name }) => !name.startsWith('weft'))
        .map(({ name, cost }) => ({ peer: name, ratio: cost.median / weft.cost.median }))
        .sort((a, b) => a.ratio - b.ratio);
}

export function number(value, decimals = 0) {
    return value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** As many decimals as a reader needs: about three digits. */
export function short(value) {
    const size = Math.abs(value);
    return number(value, size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
}

/** As an axis shows it: three digits, thousands as k. */
export function brief(value) {
    const [size, unit] = Math.abs(value) >= 1e6 ? [1e6, 'M'] : Math.abs(value) >= 1e3 ? [1e3, 'k'] : [1, ''];
    return (value / size).toLocaleString('en', { maximumSignificantDigits: 3 }) + unit;
}

export function range(spread, format = short) {
    if (spread === null) {
        return '–';
    }
    const [median, min, max] = [spread.median, spread.min, spread.max].map((value) => format(value));
    return min === max ? median : `${median} (${min}–${max})`;
}
