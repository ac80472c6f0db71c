// Elements of the page.

/** element('p', { class: 'x' }, 'text', child): null children are left out. */
export function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith('on')) {
            node.addEventListener(key.slice(2), value);
        } else if (value !== null && value !== false) {
            node.setAttribute(key, value === true ? '' : value);
        }
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
}

/** The first column is text and names its row, the others are aligned right, unless kind is 'words'. */
export function table(caption, header, rows, kind = null) {
    const head = element('tr', {}, header.map((cell) => element('th', { scope: 'col' }, cell)));
    const body = rows.map((row) => element('tr', {}, row.map((cell, column) => column === 0
        ? element('th', { scope: 'row' }, cell)
        : element('td', { 'data-column': header[column] }, cell))));
    const content = element('table', { 'aria-label': caption, class: kind }, element('thead', {}, head), element('tbody', {}, body));
    // Scrolls by itself where it is too wide, with the keyboard too; what it is stays where it is.
    const scrolled = element('div', { tabindex: '0', role: 'region', 'aria-label': caption }, content);
    return element('div', { class: 'table' }, element('p', {}, caption), scrolled);
}

/** A labelled choice; calls changed with the value, at once for the first. */
export function choice(label, options, selected, changed) {
    const select = element('select', { onchange: () => changed(select.value) }, options.map((option) => element(
        'option',
        { value: option, selected: option === selected },
        option,
    )));
    return element('label', { class: 'choice' }, element('span', {}, label), select);
}

/** Where a results file comes from. */
export function origin({ machine, versions, date, command }) {
    return element(
        'details',
        {},
        element('summary', {}, 'Machine, versions and command'),
        table('Where these numbers come from', ['', ''], [
            ['machine', machine],
            ['date', date ?? 'not recorded'],
            ['command', command ?? 'not recorded'],
            ...Object.entries(versions),
        ]),
    );
}
