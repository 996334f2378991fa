// The official TypeScript SDK 2.x as a server.

import { randomUUID } from 'node:crypto';

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
    McpServer,
    ResourceTemplate,
    acceptedContent,
    completable,
    createMcpHandler,
    inputRequired,
    inputResponse,
    isLegacyRequest
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

import { QUESTION, body, greeting, hold, holding, main, names, note, reply, sessions } from './serving.mjs';

const NAME = z.object({ name: z.string() });

/** `tell` tells everyone who listens; without it, the one client of this server is told. */
function build(tell) {
    const options = { capabilities: { resources: { subscribe: true } } };
    const server = new McpServer({ name: 'interop-typescript-2', version: '1.0.0' }, options);
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
    server.registerTool('ask_model', { inputSchema: z.object({}) }, async (_, ctx) => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, 'model');
        if (answer.kind === 'sampling') return reply(`said ${answer.result.content.text}`);
        return inputRequired({ inputRequests: { model: inputRequired.createMessage(QUESTION) } });
    });
    server.registerTool('ask_roots', { inputSchema: z.object({}) }, async (_, ctx) => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, 'roots');
        if (answer.kind === 'roots') return reply(answer.roots.map(root => root.uri).join(' '));
        return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    });
    server.server.setRequestHandler('resources/subscribe', async () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', async () => ({}));
    server.registerTool('touch', { inputSchema: z.object({}) }, async () => {
        if (tell) {
            tell().resourceUpdated('note://one');
            tell().toolsChanged();
        } else {
            await server.server.sendResourceUpdated({ uri: 'note://one' });
            server.sendToolListChanged();
        }
        return reply('touched');
    });
    server.registerResource('one', 'note://one', {}, async uri => note(uri, 'the first note'));
    const about = new ResourceTemplate('note://about/{name}', { list: undefined });
    server.registerResource('about', about, {}, async (uri, { name }) => note(uri, `a note about ${name}`));
    const argsSchema = z.object({ name: completable(z.string(), names) });
    server.registerPrompt('greet', { argsSchema }, ({ name }) => greeting(name));
    return server;
}

const handler = createMcpHandler(() => build(() => handler.notify), { legacy: 'reject' });
const modern = toNodeHandler(handler);
const legacy = sessions(async hooks => {
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), ...hooks });
    await build().connect(transport);
    return transport;
});

main(
    () => serveStdio(() => build()),
    async (request, response) => {
        const parsed = await body(request);
        const old = await isLegacyRequest(await toWebRequest(request, parsed));
        return old ? legacy(request, response, parsed) : modern(request, response, parsed);
    }
);
