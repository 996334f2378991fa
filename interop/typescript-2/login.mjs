// The official TypeScript SDK 2.x as a client that logs in.

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { text } from './checks.mjs';
import { Remembered, again, main } from './login-checks.mjs';

const REDIRECT = 'http://127.0.0.1:1/callback';

async function connect(url, revision, person, known) {
    const authProvider = new Remembered(person, { client_name: 'typescript-2' }, known);
    const mode = revision === '2025-11-25' ? 'legacy' : 'auto';
    let client, transport;
    const open = () => {
        client = new Client({ name: 'interop-typescript-2', version: '1.0.0' }, { versionNegotiation: { mode } });
        transport = new StreamableHTTPClientTransport(url, { authProvider });
        return client.connect(transport);
    };
    const finish = () => transport.finishAuth(authProvider.answer());
    const authorized = action => again(error => error instanceof UnauthorizedError, finish, action);
    await authorized(open);
    return {
        revision: client.getNegotiatedProtocolVersion(),
        list: async () => (await client.listTools()).tools.map(tool => tool.name),
        call: async (name, input) => text(await authorized(() => client.callTool({ name, arguments: input }))),
        async close() {
            await transport.terminateSession?.();
            await client.close();
        }
    };
}

await main(connect, REDIRECT);
