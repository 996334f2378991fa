// The official TypeScript SDK 2.x as a client.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { Absent, main } from './checks.mjs';

await main(async ({ revision, url, command, args }) => {
    const mode = revision === '2025-11-25' ? 'legacy' : 'auto';
    const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } };
    const client = new Client({ name: 'interop-typescript-2', version: '1.0.0' }, options);
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada' } }));
    const transport = url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport({ command, args });
    await client.connect(transport);
    return {
        revision: client.getNegotiatedProtocolVersion(),
        async list() {
            const { tools } = await client.listTools();
            const structured = tools.filter(tool => tool.outputSchema !== undefined);
            return { names: tools.map(tool => tool.name), structured: structured.map(tool => tool.name) };
        },
        call: (name, input, options) => client.callTool({ name, arguments: input }, options),
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
