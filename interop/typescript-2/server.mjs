// The official TypeScript SDK 2.x as a server.

import { randomUUID } from 'node:crypto';

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { McpServer, acceptedContent, createMcpHandler, inputRequired, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

import { body, hold, holding, main, reply, sessions } from './serving.mjs';

const NAME = z.object({ name: z.string() });

function build() {
    const server = new McpServer({ name: 'interop-typescript-2', version: '1.0.0' });
    server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, async ({ text }) => reply(text));
    server.registerTool(
        'add',
        { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
        async ({ a, b }) => ({ ...reply(String(a + b)), structuredContent: { sum: a + b } })
    );
    server.registerTool('count', { inputSchema: z.object({}) }, async (_, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
        }
        return reply('counted');
    });
    server.registerTool('fail', { inputSchema: z.object({}) }, async () => {
        throw new Error('failed on purpose');
    });
    server.registerTool('hold', { inputSchema: z.object({}) }, (_, ctx) => hold(ctx.mcpReq.signal));
    server.registerTool('was_cancelled', { inputSchema: z.object({}) }, async () => reply(holding.state));
    // The SDK asks in whichever way the client's revision has.
    server.registerTool('ask', { inputSchema: z.object({}) }, async (_, ctx) => {
        const user = acceptedContent(ctx.mcpReq.inputResponses, 'user', NAME);
        if (user !== undefined) return reply(`hello ${user.name}`);
        const question = inputRequired.elicit({ message: 'What is your name?', requestedSchema: NAME });
        return inputRequired({ inputRequests: { user: question } });
    });
    server.registerResource('one', 'note://one', {}, async uri => ({
        contents: [{ uri: uri.href, text: 'the first note' }]
    }));
    return server;
}

const modern = toNodeHandler(createMcpHandler(build, { legacy: 'reject' }));
const legacy = sessions(async hooks => {
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), ...hooks });
    await build().connect(transport);
    return transport;
});

main(
    () => serveStdio(build),
    async (request, response) => {
        const parsed = await body(request);
        const old = await isLegacyRequest(await toWebRequest(request, parsed));
        return old ? legacy(request, response, parsed) : modern(request, response, parsed);
    }
);
