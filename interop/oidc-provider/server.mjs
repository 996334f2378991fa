// A certified OpenID provider, over TLS: whoever comes is logged in and consents at once.
//
// `server.mjs FOLDER [SCOPE…]`: the folder has `server.pem` and `server.key`, what TLS is spoken with, and
// `signer.json`, the public key of a client that signs. The scopes are those that it lists itself, besides
// OpenID's own. It prints its issuer. What it was asked is at `/seen`: no secret is in it.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';

import Provider, { errors } from 'oidc-provider';

const [folder, ...scopes] = process.argv.slice(2);
if (folder === undefined) {
    console.error('usage: server.mjs FOLDER [SCOPE…]');
    process.exit(2);
}
// Nobody reads more of the standard output than the issuer.
console.info = console.error;

const file = name => readFileSync(join(folder, name));

/** How long tokens are good for at the resource whose tokens end soon, in seconds. */
const BRIEF = 3;

/** Each has every character that has a meaning somewhere. */
const SECRET = 'a secret: 100% +/&=?';

/** What tokens are like, by the path of the resource that they are for. */
const RESOURCES = {
    '/mcp': { accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } },
    '/other': { accessTokenFormat: 'jwt', jwt: { sign: { alg: 'PS256' } } },
    '/brief': { accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } }, accessTokenTTL: BRIEF },
    '/bound': { accessTokenFormat: 'jwt', jwt: { sign: { alg: 'EdDSA' } }, accessTokenTTL: BRIEF },
    '/opaque': { accessTokenFormat: 'opaque' }
};

function resource(_ctx, indicator) {
    const { protocol, hostname, pathname } = new URL(indicator);
    const found = RESOURCES[pathname];
    if (protocol !== 'https:' || hostname !== '127.0.0.1' || found === undefined) {
        throw new errors.InvalidTarget();
    }
    return { scope: 'read write', audience: indicator, ...found };
}

function key(alg, type, options) {
    const { privateKey } = generateKeyPairSync(type, options);
    return { ...privateKey.export({ format: 'jwk' }), alg, kid: alg, use: 'sig' };
}

const ALONE = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] };

const configuration = {
    clients: [
        { client_id: 'a robot', client_secret: SECRET, ...ALONE },
        { client_id: 'a poster', client_secret: SECRET, token_endpoint_auth_method: 'client_secret_post', ...ALONE },
        {
            client_id: 'a signer',
            token_endpoint_auth_method: 'private_key_jwt',
            token_endpoint_auth_signing_alg: 'ES256',
            jwks: { keys: [JSON.parse(file('signer.json'))] },
            ...ALONE
        },
        // Whoever is known without having registered, and so is held to no scopes.
        {
            client_id: 'a visitor',
            token_endpoint_auth_method: 'none',
            application_type: 'native',
            grant_types: ['authorization_code', 'refresh_token'],
            redirect_uris: ['http://127.0.0.1:1/callback', 'https://client.example/callback']
        },
        // Ours, which asks about tokens.
        { client_id: 'a server', client_secret: SECRET, grant_types: [], response_types: [], redirect_uris: [] }
    ],
    jwks: {
        keys: [
            key('RS256', 'rsa', { modulusLength: 2048 }),
            key('PS256', 'rsa', { modulusLength: 2048 }),
            key('ES256', 'ec', { namedCurve: 'P-256' }),
            key('EdDSA', 'ed25519')
        ]
    },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    cookies: { keys: [randomBytes(32).toString('hex')] },
    features: {
        clientCredentials: { enabled: true },
        clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
        devInteractions: { enabled: false },
        dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true },
        introspection: { enabled: true },
        registration: { enabled: true },
        resourceIndicators: { enabled: true, getResourceServerInfo: resource },
        revocation: { enabled: true }
    },
    // Documents of clients are on this machine, where the provider would not look by itself.
    fetch: (url, { dispatcher: _, ...options }) => fetch(url, options),
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    pkce: { required: () => true },
    rotateRefreshToken: true,
    scopes: ['openid', 'offline_access', ...scopes]
};

/** Logs in and consents to everything. */
async function interact(provider, request, response) {
    const { prompt, grantId, params, session } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login') {
        return provider.interactionFinished(request, response, { login: { accountId: 'ada' } });
    }
    const who = { accountId: session.accountId, clientId: params.client_id };
    const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant(who);
    const { missingOIDCScope, missingResourceScopes } = prompt.details;
    if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
    for (const [indicator, scopes] of Object.entries(missingResourceScopes ?? {})) {
        grant.addResourceScope(indicator, scopes.join(' '));
    }
    const consent = { grantId: await grant.save() };
    return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

/** What was asked, and how that ended. */
const seen = [];

async function look(ctx, next) {
    await next();
    const { route, params, client } = ctx.oidc ?? {};
    if (route === undefined) return;
    seen.push({
        route,
        status: ctx.status,
        error: ctx.body?.error,
        client: client?.clientId ?? ctx.body?.client_id,
        name: client?.clientName ?? ctx.body?.client_name,
        grant: params?.grant_type,
        scope: params?.scope,
        resource: params?.resource,
        challenge: params?.code_challenge_method,
        proof: ctx.get('dpop') !== ''
    });
}

let handle;
const server = createServer({ cert: file('server.pem'), key: file('server.key') }, (request, response) => {
    handle(request, response).catch(error => {
        console.error(error);
        response.destroy();
    });
});
server.listen(0, '127.0.0.1', () => {
    const issuer = `https://127.0.0.1:${server.address().port}`;
    const provider = new Provider(issuer, configuration);
    provider.on('server_error', (_ctx, error) => console.error(error));
    provider.use(look);
    const answer = provider.callback();
    handle = async (request, response) => {
        if (request.url.startsWith('/interaction/')) return interact(provider, request, response);
        if (request.url !== '/seen') return answer(request, response);
        response.setHeader('content-type', 'application/json').end(JSON.stringify(seen));
    };
    process.stdout.write(`${issuer}\n`);
});
