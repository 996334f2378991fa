// The official TypeScript SDK 1.x as a client.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { Absent, main } from './checks.mjs';

await main(async ({ url, command, args }) => {
    const options = { capabilities: { elicitation: { form: {} } } };
    const client = new Client({ name: 'interop-typescript-1', version: '1.0.0' }, options);
    client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ada' } }));
    const transport = url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport({ command, args });
    let revision;
    // The client tells its transport what was agreed on, and nobody else.
    const told = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = version => {
        revision = version;
        told?.(version);
    };
    await client.connect(transport);
    return {
        revision,
        async list() {
            const { tools } = await client.listTools();
            const structured = tools.filter(tool => tool.outputSchema !== undefined);
            return { names: tools.map(tool => tool.name), structured: structured.map(tool => tool.name) };
        },
        call: (name, input, options) => client.callTool({ name, arguments: input }, undefined, options),
        async read(uri) {
            if (!client.getServerCapabilities()?.resources) throw new Absent('the server declares no resources');
            return (await client.readResource({ uri })).contents[0].text;
        },
        async close() {
            await transport.terminateSession?.();
            await client.close();
        }
    };
});
