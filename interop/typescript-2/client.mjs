// The official TypeScript SDK 2.x as a client.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { News, ROOTS, THOUGHT, main } from './checks.mjs';

await main(async ({ revision, url, command, args }) => {
    const mode = revision === '2025-11-25' ? 'legacy' : 'auto';
    const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
    const options = { capabilities, versionNegotiation: { mode } };
    const client = new Client({ name: 'interop-typescript-2', version: '1.0.0' }, options);
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada' } }));
    client.setRequestHandler('sampling/createMessage', async () => THOUGHT);
    client.setRequestHandler('roots/list', async () => ROOTS);
    // Fed by a listen stream, or by a legacy server of its own accord.
    const news = new News();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => news.say(`updated ${params.uri}`));
    client.setNotificationHandler('notifications/tools/list_changed', () => news.say('tools changed'));
    const transport = url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport({ command, args });
    await client.connect(transport);
    const modern = client.getNegotiatedProtocolVersion() !== '2025-11-25';
    const listen = async filter => {
        const stream = await client.listen(filter);
        return () => stream.close();
    };
    return {
        revision: client.getNegotiatedProtocolVersion(),
        capabilities: client.getServerCapabilities(),
        async list() {
            const { tools } = await client.listTools();
            const structured = tools.filter(tool => tool.outputSchema !== undefined);
            return { names: tools.map(tool => tool.name), structured: structured.map(tool => tool.name) };
        },
        call: (name, input, options) => client.callTool({ name, arguments: input }, options),
        async read(uri) {
            return (await client.readResource({ uri })).contents[0].text;
        },
        async templates() {
            const { resourceTemplates } = await client.listResourceTemplates();
            return resourceTemplates.map(template => template.uriTemplate);
        },
        async prompts() {
            return (await client.listPrompts()).prompts.map(prompt => prompt.name);
        },
        async prompt(name, input) {
            return (await client.getPrompt({ name, arguments: input })).messages[0].content.text;
        },
        async complete(name, argument, typed) {
            const found = await client.complete({
                ref: { type: 'ref/prompt', name },
                argument: { name: argument, value: typed }
            });
            return found.completion.values;
        },
        async listen(uri) {
            const next = () => news.next('updated');
            if (modern) return { next, close: await listen({ resourceSubscriptions: [uri] }) };
            await client.subscribeResource({ uri });
            return { next, close: () => client.unsubscribeResource({ uri }) };
        },
        async changed() {
            const next = () => news.next('tools');
            if (!modern) return { next, close: async () => {} };
            return { next, close: await listen({ toolsListChanged: true }) };
        },
        async close() {
            await transport.terminateSession?.();
            await client.close();
        }
    };
});
