import { curves } from '../charts.js';
import { element, table } from '../dom.js';
import { groupBy, number, range, results, short, spread } from '../data.js';

export const id = 'scale';

/** From this ratio of highest to lowest on a linear axis shows nothing but the highest. */
const steep = 100;

export function section() {
    return [
        element('p', {}, 'Weft alone, one number varied at a time: where each curve bends, and why, is in docs/explanation/performance.md.'),
        ...[...groupBy(results.scale.runs, (run) => run.curve)].map(([curve, runs]) => chart(curve, runs)),
    ];
}

function chart(curve, runs) {
    const { x_label: x, y_label: y } = runs[0];
    const marks = ['weft plain', 'weft confirmed', 'weft safe', 'weft embedded', 'go'];
    const series = [...groupBy(runs, (run) => run.series)].map(([name, own], i) => ({
        name,
        look: marks[i % marks.length],
        points: [...groupBy(own, (run) => run.x)].map(([at, same]) => ({ x: at, y: spread(same, 'y') })).filter((point) => point.y !== null),
    }));
    const heights = series.flatMap(({ points }) => points.map(({ y: height }) => height.median));
    const columns = series.map(({ name }) => name);
    const values = [...new Set(runs.map((run) => run.x))].sort((a, b) => a - b);
    return element(
        'div',
        { class: 'pair' },
        curves(curve, series.map((line) => ({ ...line, points: line.points.map((point) => ({ x: point.x, y: point.y.median })) })), { x, y, logY: Math.min(...heights) > 0 && Math.max(...heights) / Math.min(...heights) > steep }),
        table(`${curve}: ${y}`, [x, ...columns], values.map((at) => [
            number(at),
            ...series.map(({ points }) => range(points.find((point) => point.x === at)?.y ?? null, short)),
        ])),
    );
}
