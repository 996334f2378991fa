// The official TypeScript SDK 1.x as a client.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';

import { News, ROOTS, THOUGHT, main } from './checks.mjs';

await main(async ({ url, command, args }) => {
    const options = { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } };
    const client = new Client({ name: 'interop-typescript-1', version: '1.0.0' }, options);
    client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ada' } }));
    client.setRequestHandler(CreateMessageRequestSchema, async () => THOUGHT);
    client.setRequestHandler(ListRootsRequestSchema, async () => ROOTS);
    const news = new News();
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => news.say(`updated ${params.uri}`));
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => news.say('tools changed'));
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
        capabilities: client.getServerCapabilities(),
        async list() {
            const { tools } = await client.listTools();
            const structured = tools.filter(tool => tool.outputSchema !== undefined);
            return { names: tools.map(tool => tool.name), structured: structured.map(tool => tool.name) };
        },
        call: (name, input, options) => client.callTool({ name, arguments: input }, undefined, options),
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
            await client.subscribeResource({ uri });
            return { next: () => news.next('updated'), close: () => client.unsubscribeResource({ uri }) };
        },
        changed: async () => ({ next: () => news.next('tools'), close: async () => {} }),
        async close() {
            await transport.terminateSession?.();
            await client.close();
        }
    };
});
