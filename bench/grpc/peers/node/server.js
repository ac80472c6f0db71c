// Serves api.Users with grpc-js on PORT, as its documentation shows it.
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

const definition = protoLoader.loadSync(fileURLToPath(new URL('../../users.proto', import.meta.url)), { longs: Number });
const { Users } = grpc.loadPackageDefinition(definition).api;

function get(call, callback) {
    callback(null, { id: call.request.id, email: 'dmitry.k@test.tld', name: 'Dmitry K.', rating: 228.53 });
}

function list(call) {
    for (let i = 0; i < 10; i++) {
        call.write({ id: i, email: `user${i}@test`, name: `User ${i}`, rating: i * 1.53 });
    }
    call.end();
}

const server = new grpc.Server();
server.addService(Users.service, { Get: get, List: list });
server.bindAsync(`127.0.0.1:${process.env.PORT}`, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) {
        throw error;
    }
});
process.on('SIGTERM', () => process.exit(0));
