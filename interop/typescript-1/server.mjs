// The official TypeScript SDK 1.x as a server.

import { randomUUID } from 'node:crypto';

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

import { QUESTION, body, greeting, hold, holding, main, names, note, reply, sessions } from './serving.mjs';

function build() {
    const options = { capabilities: { resources: { subscribe: true } } };
    const server = new McpServer({ name: 'interop-typescript-1', version: '1.0.0' }, options);
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
    server.registerTool('ask_model', { inputSchema: {} }, async (_, extra) => {
        const answer = await server.server.createMessage(QUESTION, { relatedRequestId: extra.requestId });
        return reply(`said ${answer.content.text}`);
    });
    server.registerTool('ask_roots', { inputSchema: {} }, async (_, extra) => {
        const { roots } = await server.server.listRoots({}, { relatedRequestId: extra.requestId });
        return reply(roots.map(root => root.uri).join(' '));
    });
    const subscribed = new Set();
    server.server.setRequestHandler(SubscribeRequestSchema, async ({ params }) => {
        subscribed.add(params.uri);
        return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, async ({ params }) => {
        subscribed.delete(params.uri);
        return {};
    });
    server.registerTool('touch', { inputSchema: {} }, async () => {
        if (subscribed.has('note://one')) await server.server.sendResourceUpdated({ uri: 'note://one' });
        server.sendToolListChanged();
        return reply('touched');
    });
    server.registerResource('one', 'note://one', {}, async uri => note(uri, 'the first note'));
    const about = new ResourceTemplate('note://about/{name}', { list: undefined });
    server.registerResource('about', about, {}, async (uri, { name }) => note(uri, `a note about ${name}`));
    const argsSchema = { name: completable(z.string(), names) };
    server.registerPrompt('greet', { argsSchema }, ({ name }) => greeting(name));
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
