// The official TypeScript SDK 1.x as a client that logs in.

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { text } from './checks.mjs';
import { Remembered, again, main } from './login-checks.mjs';

const REDIRECT = 'http://127.0.0.1:1/callback';

async function connect(url, _revision, person, known) {
    const metadata = { client_name: 'typescript-1', application_type: 'native' };
    const authProvider = new Remembered(person, metadata, known);
    let client, transport, revision;
    const open = () => {
        client = new Client({ name: 'interop-typescript-1', version: '1.0.0' });
        transport = new StreamableHTTPClientTransport(url, { authProvider });
        // The client tells its transport what was agreed on, and nobody else.
        const told = transport.setProtocolVersion.bind(transport);
        transport.setProtocolVersion = version => {
            revision = version;
            told(version);
        };
        return client.connect(transport);
    };
    const finish = () => transport.finishAuth(authProvider.answer().get('code'));
    const authorized = action => again(error => error instanceof UnauthorizedError, finish, action);
    await authorized(open);
    return {
        revision,
        list: async () => (await client.listTools()).tools.map(tool => tool.name),
        call: async (name, input) => text(await authorized(() => client.callTool({ name, arguments: input }))),
        async close() {
            await transport.terminateSession();
            await client.close();
        }
    };
}

await main(connect, REDIRECT);
