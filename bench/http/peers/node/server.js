// Serves the benchmark's requests with node:http on PORT and node:http2 in clear text on H2_PORT.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 });
const body = Buffer.alloc(100_000, 'x');
const select = { name: 'person', text: 'SELECT id, name, email FROM people WHERE id = $1' };

const read = { name: 'counter', text: 'SELECT id, value FROM counters WHERE id = $1' };
const write = { name: 'write', text: 'UPDATE counters SET value = $1 WHERE id = $2' };
const all = { name: 'fortunes', text: 'SELECT id, message FROM fortunes' };
const random = () => 1 + Math.floor(Math.random() * 10_000);
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text) => text.replace(/[&<>"']/g, (character) => entities[character]);

async function borrowed(work) {
    const client = await pool.connect();
    try {
        return await work(client);
    } finally {
        client.release();
    }
}

const people = (count) => borrowed(async (client) => {
    const rows = [];
    for (let i = 0; i < count; ++i) {
        rows.push((await client.query({ ...select, values: [random()] })).rows[0]);
    }
    return rows;
});

const update = () => borrowed(async (client) => {
    const row = (await client.query({ ...read, values: [random()] })).rows[0];
    row.value = random();
    await client.query({ ...write, values: [row.value, row.id] });
    return row;
});

async function fortunes() {
    const rows = [...(await pool.query(all)).rows, { id: 0, message: 'Additional fortune added at request time.' }];
    rows.sort((a, b) => Buffer.compare(Buffer.from(a.message), Buffer.from(b.message)));
    return '<!DOCTYPE html>\n<html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>\n'
        + rows.map(({ id, message }) => `<tr><td>${id}</td><td>${escape(message)}</td></tr>\n`).join('')
        + '</table></body></html>\n';
}

function send(response, type, content) {
    response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(content) });
    response.end(content);
}

function sendJson(response, value) {
    send(response, 'application/json', JSON.stringify(value));
}

async function sendFile(response, name) {
    const path = join(process.env.STATIC_DIRECTORY, basename(name));
    const { size } = await stat(path);
    response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': size });
    pipeline(createReadStream(path), response, () => {});
}

async function handle(request, response) {
    const [path, query] = request.url.split('?');
    switch (path) {
        case '/hello':
            return send(response, 'text/plain; charset=utf-8', 'Hello, World!');
        case '/json':
            return sendJson(response, { message: 'Hello, World!' });
        case '/query': {
            const id = Number(new URLSearchParams(query).get('id'));
            return sendJson(response, (await pool.query({ ...select, values: [id] })).rows[0]);
        }
        case '/queries':
            return sendJson(response, await people(Number(new URLSearchParams(query).get('count'))));
        case '/update':
            return sendJson(response, await update());
        case '/fortunes':
            return send(response, 'text/html; charset=utf-8', await fortunes());
        case '/body':
            return send(response, 'text/plain; charset=utf-8', body);
        case '/static/file.bin':
            return sendFile(response, path);
        default:
            response.writeHead(404);
            response.end();
    }
}

function listener(request, response) {
    handle(request, response).catch((error) => {
        console.error(error);
        response.writeHead(500);
        response.end();
    });
}

// The default of 5 seconds would close idle connections while they are counted.
createServer({ keepAliveTimeout: 120_000 }, listener).listen(Number(process.env.PORT), '127.0.0.1', 511);
createHttp2Server(listener).listen(Number(process.env.H2_PORT), '127.0.0.1', 511);
process.on('SIGTERM', () => process.exit(0));
