// What a TypeScript client checks that logs in to a protected server, the same for every SDK.
//
// A client gives `main` a function that is given a URL, the revision to speak, a `Person` and perhaps
// what is known of a client that the provider knows, connects and logs in if it has to, and returns an
// object with `revision`, `list()` (tool names), `call(tool, arguments)` (text) and `close()`.

import { PHRASE, ensure, same, say, target, within } from './checks.mjs';

const ONE_CHECK = 20_000;
const CLOSING = 5000;

/** After that a token of the server with brief ones has ended, in milliseconds. */
const BRIEF = 4000;

/** A client that the provider knows, and holds to nothing. */
const VISITOR = { client_id: 'a visitor' };

/** Someone before a browser. What they are shown, they agree to. */
class Person {
    logins = 0;

    constructor(redirectUri) {
        this.redirectUri = redirectUri;
    }

    /** Follows redirects until one leads back to the client. */
    async open(url) {
        this.logins += 1;
        const cookies = new Map();
        for (let page = 0; page < 10; page += 1) {
            const cookie = [...cookies].map(pair => pair.join('=')).join('; ');
            const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
            for (const set of response.headers.getSetCookie()) {
                const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
                cookies.set(name, value);
            }
            const next = response.headers.get('location');
            ensure(next !== null, `${new URL(url).pathname}: ${response.status} ${await response.text()}`);
            url = new URL(next, url);
            if (url.href.startsWith(this.redirectUri)) {
                this.answer = url.searchParams;
                return;
            }
        }
        throw new Error('the login has too many redirects');
    }
}

/** What an SDK remembers, and how it has its user log in. */
export class Remembered {
    #known = {};

    constructor(person, metadata, client) {
        this.person = person;
        this.#known.client = client;
        const grants = { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };
        this.clientMetadata = { redirect_uris: [person.redirectUri], ...grants, ...metadata };
    }

    get redirectUrl() {
        return this.person.redirectUri;
    }

    state = () => (this.#known.state = crypto.randomUUID());
    clientInformation = () => this.#known.client;
    saveClientInformation = client => void (this.#known.client = client);
    tokens = () => this.#known.tokens;
    saveTokens = tokens => void (this.#known.tokens = tokens);
    codeVerifier = () => this.#known.verifier;
    saveCodeVerifier = verifier => void (this.#known.verifier = verifier);
    discoveryState = () => this.#known.discovery;
    saveDiscoveryState = discovery => void (this.#known.discovery = discovery);
    redirectToAuthorization = url => this.person.open(url);

    /** The answer to the login, which has to be to the one that was begun, and good news. */
    answer() {
        const { answer, logins } = this.person;
        ensure(answer.get('state') === this.#known.state, `logins: ${logins}, and this is the answer to another one`);
        ensure(answer.has('code'), `the login is refused: ${answer.get('error_description')}`);
        return answer;
    }
}

/** Does something again after a login, if that is what it takes. */
export async function again(isUnauthorized, finish, action) {
    try {
        return await action();
    } catch (error) {
        if (!isUnauthorized(error)) throw error;
        await finish();
        return action();
    }
}

const CHECKS = {
    async list(peer) {
        same((await peer.list()).toSorted(), ['echo', 'whoami'], 'listed');
    },
    async call(peer) {
        same(await peer.call('echo', { text: PHRASE }), PHRASE, 'got');
        const text = await peer.call('whoami', {});
        ensure(text.startsWith('ada, with '), `got ${text}`);
    }
};

/** In a connection of their own. */
const OWN_CHECKS = {
    /** What not everyone may do who is logged in. */
    async 'step-up'(connect, url, revision, person) {
        const peer = await connect(url, revision, person, VISITOR);
        try {
            for (let call = 0; call < 2; call += 1) same(await peer.call('write', { text: PHRASE }), PHRASE, 'got');
            same(person.logins, 2, 'logins');
        } finally {
            // How it closes is looked at elsewhere.
            await peer.close().catch(error => console.error(error));
        }
    },
    /** With a server whose tokens end soon. */
    async renew(connect, url, revision, person) {
        const peer = await connect(new URL('/brief', url), revision, person);
        try {
            await peer.call('echo', { text: PHRASE });
            await new Promise(resolve => setTimeout(resolve, BRIEF));
            same(await peer.call('echo', { text: PHRASE }), PHRASE, 'got');
            same(person.logins, 1, 'logins');
        } finally {
            // How it closes is looked at elsewhere.
            await peer.close().catch(error => console.error(error));
        }
    }
};

async function tried(name, check) {
    try {
        await within(ONE_CHECK, 'the check', check);
        say(name, 'pass');
    } catch (error) {
        console.error(error);
        say(name, 'fail', String(error));
    }
}

export async function main(connect, redirectUri) {
    const { url, revision } = target();
    const person = new Person(redirectUri);
    let peer;
    try {
        peer = await within(ONE_CHECK, 'connecting', connect(url, revision, person));
        same(person.logins, 1, 'logins');
    } catch (error) {
        console.error(error);
        say('connect', 'fail', String(error));
        process.exit(0);
    }
    say('connect', 'pass', peer.revision);
    for (const [name, check] of Object.entries(CHECKS)) await tried(name, check(peer));
    await tried('shutdown', within(CLOSING, 'closing', peer.close()));
    for (const [name, check] of Object.entries(OWN_CHECKS)) {
        await tried(name, check(connect, url, revision, new Person(redirectUri)));
    }
    // Nothing is left to do: the process has to end by itself.
}
