// How contenders and series look. Colour is never the only difference: lines have marks and dashes and are named at their end, bars
// are named at the axis, and stacked parts have patterns.

const looks = [
    ['weft plain', 'weft', 1, 'circle', null],
    ['weft', 'weft', 1, 'circle', null],
    ['weft confirmed', 'weft', 2, 'square', '6 3'],
    ['weft safe', 'weft', 3, 'triangle', '2 3'],
    ['weft batch', 'weft', 4, 'cross', '8 3 2 3'],
    ['weft batch-safe', 'weft', 4, 'asterisk', '4 2'],
    ['weft embedded', 'weft', 5, 'star', '4 4'],
    ['weft postgres', 'weft', 3, 'plus', '10 3'],
    ['weft-google-protobuf', 'weft', 2, 'square', '6 3'],
    ['swoole', 'peer', 9, 'asterisk', '3 3'],
    ['roadrunner', 'peer', 7, 'square', '8 3'],
    ['frankenphp', 'peer', 8, 'triangle', '4 4'],
    ['go', 'peer', 6, 'diamond', null],
    ['tonic', 'peer', 9, 'square', '4 2'],
    ['pure-php', 'peer', 7, 'wye', '6 3'],
    ['php-fpm', 'peer', 7, 'wye', '6 3'],
    ['symfony-messenger', 'peer', 8, 'times', '2 3'],
    ['php-service-bus', 'peer', 9, 'square', '8 3'],
    ['node', 'peer', 8, 'times', '2 3'],
    ['php-builtin', 'peer', 9, 'plus', '8 3 2 3'],
];
const byName = new Map(looks.map(([name, kind, color, symbol, dash]) => [name, { kind, color: `var(--series-${color})`, symbol, dash }]));

export function look(name) {
    return byName.get(name) ?? { kind: 'peer', color: 'var(--series-9)', symbol: 'asterisk', dash: '3 3' };
}

export const isWeft = (name) => look(name).kind === 'weft';

/** Patterns for bars and their parts, once for the whole page. */
export function patterns() {
    const holder = document.createElement('div');
    holder.className = 'patterns';
    holder.innerHTML = `<svg width="0" height="0" aria-hidden="true"><defs>
        <pattern id="peer" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="6" height="6" fill="var(--peer)"/><line x1="0" y1="0" x2="0" y2="6" stroke="var(--surface)" stroke-width="2"/></pattern>
        <pattern id="part-2" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="6" height="6" fill="var(--series-6)"/><line x1="0" y1="0" x2="0" y2="6" stroke="var(--surface)" stroke-width="2"/></pattern>
        <pattern id="part-3" width="6" height="6" patternUnits="userSpaceOnUse">
            <rect width="6" height="6" fill="var(--series-3)"/><circle cx="3" cy="3" r="1.4" fill="var(--surface)"/></pattern>
        </defs></svg>`;
    return holder;
}
