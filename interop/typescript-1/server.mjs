// The official TypeScript SDK 1.x as a server.

import { randomUUID } from 'node:crypto';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

import { body, hold, holding, main, reply, sessions } from './serving.mjs';

function build() {
    const server = new McpServer({ name: 'interop-typescript-1', version: '1.0.0' });
    server.registerTool('echo', { inputSchema: { text: z.string() } }, async ({ text }) => reply(text));
    server.registerTool(
        'add',
        { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
        async ({ a, b }) => ({ ...reply(String(a + b)), structuredContent: { sum: a + b } })
    );
    server.registerTool('count', { inputSchema: {} }, async (_, extra) => {
        const progressToken = extra._meta?.progressToken;
        for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
            await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
        }
        return reply('counted');
    });
    server.registerTool('fail', { inputSchema: {} }, async () => {
        throw new Error('failed on purpose');
    });
    server.registerTool('hold', { inputSchema: {} }, (_, extra) => hold(extra.signal));
    server.registerTool('was_cancelled', { inputSchema: {} }, async () => reply(holding.state));
    server.registerTool('ask', { inputSchema: {} }, async (_, extra) => {
        const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
        // Named, so that over HTTP the question takes the stream of this call.
        const related = { relatedRequestId: extra.requestId };
        const answer = await server.server.elicitInput({ message: 'What is your name?', requestedSchema }, related);
        return reply(answer.action === 'accept' ? `hello ${answer.content.name}` : answer.action);
    });
    server.registerResource('one', 'note://one', {}, async uri => ({
        contents: [{ uri: uri.href, text: 'the first note' }]
    }));
    return server;
}

const legacy = sessions(async hooks => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), ...hooks });
    await build().connect(transport);
    return transport;
});

main(
    () => build().connect(new StdioServerTransport()),
    async (request, response) => legacy(request, response, await body(request))
);
