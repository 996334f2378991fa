// The checks that a TypeScript client runs against the server, the same for every SDK.
//
// A client gives `main` a function that connects and returns an object with `revision`,
// `capabilities` (the server's), `list()` (tool names, and the names of those with an output schema),
// `call(tool, arguments, {onprogress, signal})`, `read(uri)` (text), `templates()`, `prompts()` (names),
// `prompt(name, arguments)` (text), `complete(prompt, argument, typed)` (values) and `close()`.
// `listen(uri)` and `changed()` listen, and return an object with `next()` and `close()`.

const TOOLS = [
    'add', 'ask', 'ask_model', 'ask_roots', 'count', 'echo', 'fail', 'hold', 'touch', 'was_cancelled'
];
const PATIENCE = 5000;
const ONE_CHECK = 20_000;
export const PHRASE = 'Grüße, 世界 ✓';

/** The server does not declare what the check needs. */
export class Absent extends Error {}

export function say(check, outcome, detail = '') {
    process.stdout.write(`${JSON.stringify({ check, outcome, detail })}\n`);
}

export function ensure(condition, sentence) {
    if (!condition) throw new Error(sentence);
}

export function same(got, wanted, what) {
    const [left, right] = [JSON.stringify(got), JSON.stringify(wanted)];
    ensure(left === right, `${what}: ${left}`);
}

/** What the user's model says, and where the user works. */
export const THOUGHT = { role: 'assistant', content: { type: 'text', text: 'forty-two' }, model: 'a-model' };
export const ROOTS = { roots: [{ uri: 'file:///home/ada' }] };

/** What a server says by itself, until somebody asks for it. */
export class News {
    #said = [];
    #waiting;

    say(news) {
        this.#said.push(news);
        this.#waiting?.();
    }

    async next(about) {
        for (;;) {
            const found = this.#said.findIndex(news => news.startsWith(about));
            if (found >= 0) return this.#said.splice(found, 1)[0];
            await new Promise(resolve => (this.#waiting = resolve));
        }
    }
}

/** Listens, has the server touched, and waits for what it says of that. */
async function heard(peer, listening, wanted) {
    await peer.call('touch', {});
    const news = within(PATIENCE, 'waiting', listening.next()).catch(() => 'nothing was heard');
    same(await news, wanted, 'heard');
    await listening.close();
}

function declared(present, what) {
    if (!present) throw new Absent(`the server declares no ${what}`);
}

export function text(result) {
    return (result.content ?? []).map(block => block.text ?? '').join('');
}

async function until(peer, state) {
    const deadline = performance.now() + PATIENCE;
    for (;;) {
        const found = text(await peer.call('was_cancelled', {}));
        if (found === state) return;
        ensure(performance.now() < deadline, `\`hold\` is ${found}, not ${state}`);
    }
}

const CHECKS = {
    async list(peer) {
        const { names, structured } = await peer.list();
        same(names.toSorted(), TOOLS, 'listed');
        ensure(structured.includes('add'), '`add` has no output schema');
    },
    async call(peer) {
        const result = await peer.call('echo', { text: PHRASE });
        ensure(text(result) === PHRASE && !result.isError, `got ${JSON.stringify(result)}`);
    },
    async structured(peer) {
        const result = await peer.call('add', { a: 2, b: 3 });
        same(result.structuredContent, { sum: 5 }, 'got');
    },
    async progress(peer) {
        const seen = [];
        const onprogress = ({ progress, total }) => seen.push([progress, total]);
        const result = await peer.call('count', {}, { onprogress });
        ensure(!result.isError, `got ${JSON.stringify(result)}`);
        same(seen, [[1, 3], [2, 3], [3, 3]], 'saw before the result');
    },
    async 'tool-error'(peer) {
        const result = await peer.call('fail', {});
        ensure(result.isError && text(result).includes('failed on purpose'), `got ${JSON.stringify(result)}`);
    },
    async abandon(peer) {
        const abort = new AbortController();
        const held = peer.call('hold', {}, { signal: abort.signal }).then(
            () => 'it returned',
            () => 'abandoned'
        );
        await until(peer, 'holding');
        abort.abort('no longer wanted');
        same(await held, 'abandoned', '`hold`');
        await until(peer, 'stopped');
    },
    async elicit(peer) {
        const result = await peer.call('ask', {});
        ensure(text(result) === 'hello Ada' && !result.isError, `got ${JSON.stringify(result)}`);
    },
    async sample(peer) {
        const result = await peer.call('ask_model', {});
        ensure(text(result) === 'said forty-two' && !result.isError, `got ${JSON.stringify(result)}`);
    },
    async roots(peer) {
        const result = await peer.call('ask_roots', {});
        ensure(text(result) === ROOTS.roots[0].uri && !result.isError, `got ${JSON.stringify(result)}`);
    },
    async resource(peer) {
        declared(peer.capabilities?.resources, 'resources');
        same(await peer.read('note://one'), 'the first note', 'got');
    },
    async template(peer) {
        declared(peer.capabilities?.resources, 'resources');
        const templates = await peer.templates();
        ensure(templates.includes('note://about/{name}'), `listed ${templates}`);
        same(await peer.read('note://about/ada'), 'a note about ada', 'got');
    },
    async prompt(peer) {
        declared(peer.capabilities?.prompts, 'prompts');
        const prompts = await peer.prompts();
        ensure(prompts.includes('greet'), `listed ${prompts}`);
        same(await peer.prompt('greet', { name: 'Ada' }), 'Greet Ada', 'got');
    },
    async complete(peer) {
        declared(peer.capabilities?.completions, 'completions');
        same(await peer.complete('greet', 'name', 'A'), ['Ada', 'Alan'], 'got');
    },
    async listen(peer) {
        declared(peer.capabilities?.resources?.subscribe, 'subscriptions to resources');
        await heard(peer, await peer.listen('note://one'), 'updated note://one');
    },
    async changed(peer) {
        declared(peer.capabilities?.tools?.listChanged, 'changes of its tools');
        await heard(peer, await peer.changed(), 'tools changed');
    }
};

export function within(milliseconds, what, promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${what} took too long`)), milliseconds);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** `[--revision R] (--url URL | --command WORD…)` */
export function target() {
    let words = process.argv.slice(2);
    let revision;
    if (words[0] === '--revision') [, revision, ...words] = words;
    const [kind, ...rest] = words;
    if (kind === '--url' && rest.length === 1) return { revision, url: new URL(rest[0]) };
    if (kind === '--command' && rest.length > 0) return { revision, command: rest[0], args: rest.slice(1) };
    console.error('usage: client.mjs [--revision R] (--url URL | --command WORD…)');
    process.exit(2);
}

export async function main(connect) {
    let peer;
    try {
        peer = await within(ONE_CHECK, 'connecting', connect(target()));
    } catch (error) {
        console.error(error);
        say('connect', 'fail', String(error));
        process.exit(0);
    }
    say('connect', 'pass', peer.revision);
    for (const [name, check] of Object.entries(CHECKS)) {
        try {
            await within(ONE_CHECK, 'the check', check(peer));
            say(name, 'pass');
        } catch (error) {
            console.error(error);
            say(name, error instanceof Absent ? 'absent' : 'fail', error?.message ?? String(error));
        }
    }
    try {
        await within(5000, 'closing', peer.close());
        say('shutdown', 'pass');
    } catch (error) {
        console.error(error);
        say('shutdown', 'fail', String(error));
    }
    // Nothing is left to do: the process has to end by itself.
}
