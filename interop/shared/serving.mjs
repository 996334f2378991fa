// What the TypeScript servers share: the state of `hold`, the command line, the log.

import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

export const holding = { state: 'idle' };

/** Waits until the signal fires. */
export function hold(signal) {
    holding.state = 'holding';
    return new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
            holding.state = 'stopped';
            reject(new Error('cancelled'));
        });
    });
}

export function reply(text) {
    return { content: [{ type: 'text', text }] };
}

export const QUESTION = {
    messages: [{ role: 'user', content: { type: 'text', text: 'What is six times seven?' } }],
    maxTokens: 20
};

/** How a name may go on. */
export function names(typed) {
    return ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(typed));
}

export function greeting(name) {
    return { messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}` } }] };
}

export function note(uri, text) {
    return { contents: [{ uri: uri.href, text }] };
}

/**
 * `--stdio LOG`: serve, and write to the log that it started, and that it ended by itself.
 * `--http`: print the URL.
 */
export function main(serveStdio, handle) {
    const [wire, log] = process.argv.slice(2);
    if (wire === '--stdio' && log) {
        appendFileSync(log, 'started\n');
        // Not called when the process is killed.
        process.on('exit', () => appendFileSync(log, 'ended\n'));
        serveStdio();
    } else if (wire === '--http') {
        const server = createServer((request, response) => {
            Promise.resolve(handle(request, response)).catch(error => {
                console.error(error);
                response.destroy();
            });
        });
        server.listen(0, '127.0.0.1', () => {
            process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`);
        });
    } else {
        console.error('usage: server.mjs --stdio LOG | --http');
        process.exit(2);
    }
}

/** The whole body of a request, as JSON. */
export async function body(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    return text === '' ? undefined : JSON.parse(text);
}

/** Gives each legacy session a transport of its own. */
export function sessions(open) {
    const known = new Map();
    return async (request, response, parsed) => {
        const id = request.headers['mcp-session-id'];
        if (id === undefined) {
            const transport = await open({
                onsessioninitialized: session => known.set(session, transport),
                onsessionclosed: session => known.delete(session)
            });
            return transport.handleRequest(request, response, parsed);
        }
        const transport = known.get(id);
        if (transport === undefined) {
            response.writeHead(404).end();
            return;
        }
        return transport.handleRequest(request, response, parsed);
    };
}
