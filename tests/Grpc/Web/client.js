// The client of grpc-web, as a page has it, in Node: client.js MODULES ADDRESS FORMAT, with FORMAT `text` or `binary`. Prints as JSON what
// each call of api.Users brought: ids of the messages, status, message of the status.
const [modules, address, format] = process.argv.slice(2);
const load = require('module').createRequire(modules + '/');
global.XMLHttpRequest = load('xhr2');
const { GrpcWebClientBase, MethodDescriptor } = load('grpc-web');

// Both messages begin with an int64 id, field 1.
const encode = (id) => {
    const bytes = [8];
    for (; id > 127; id >>>= 7) {
        bytes.push((id & 127) | 128);
    }
    return Uint8Array.from([...bytes, id]);
};
const decode = (bytes) => {
    let id = 0;
    for (let at = 1, shift = 0; bytes[0] === 8; at++, shift += 7) {
        id |= (bytes[at] & 127) << shift;
        if (bytes[at] < 128) {
            break;
        }
    }
    return id;
};
const method = (name, type) => new MethodDescriptor(`/api.Users/${name}`, type, Object, Object, encode, decode);
const client = new GrpcWebClientBase({ format });
const metadata = { authorization: 'Bearer 1' };

const ended = (stream) => new Promise((resolve) => {
    const got = { ids: [], code: null, message: '' };
    stream.on('data', (id) => got.ids.push(id));
    stream.on('status', (status) => { got.code = status.code; got.message = status.details; });
    stream.on('error', (error) => resolve({ ...got, code: error.code, message: error.message }));
    stream.on('end', () => resolve(got));
});
const unary = (id) => client.unaryCall(`http://${address}/api.Users/Get`, id, metadata, method('Get', 'unary'))
    .then((id) => ({ ids: [id], code: 0, message: '' }), (error) => ({ ids: [], code: error.code, message: error.message }));

(async () => {
    const results = { get: await unary(228), large: await unary(300000), refused: await unary(7) };
    results.list = await ended(client.serverStreaming(`http://${address}/api.Users/List`, 0, metadata, method('List', 'server_streaming')));
    console.log(JSON.stringify(results));
})();
