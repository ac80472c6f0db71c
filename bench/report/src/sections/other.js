import { table } from '../dom.js';
import { finished, results, short } from '../data.js';

/** A benchmark without charts of its own: its runs as they are. */
export const other = (id) => ({
    id,
    section() {
        const runs = results[id].runs.filter(finished);
        const plain = (value) => ['string', 'number', 'boolean'].includes(typeof value);
        const columns = [...new Set(runs.flatMap((run) => Object.keys(run).filter((field) => plain(run[field]))))];
        const cell = (value) => typeof value === 'number' ? short(value) : plain(value) ? String(value) : '–';
        return [table('Every run', columns.map((column) => column.replaceAll('_', ' ')), runs.map((run) => columns.map((column) => cell(run[column]))))];
    },
});
