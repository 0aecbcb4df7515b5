// An OpenID Connect provider for tests: node identity_provider.mjs MODULE PORT CLIENT SECRET SERVER
// Everybody whose name is typed may log in; the claims of a person are made of the name.
// GET /test/rotate signs with a new key from then on; the ones before stay listed, since a server may ask for the keys
// only after several rotations. GET /test/remove?NAME forgets a person.
import { generateKeyPairSync, randomUUID } from "node:crypto"
import { createServer } from "node:http"

const [module, port, client, secret, server] = process.argv.slice(2)
const { default: Provider } = await import(module)
const { default: MemoryAdapter } = await import(module.replace(/index\.js$/, "adapters/memory_adapter.js"))
const issuer = `http://127.0.0.1:${port}`
const removed = new Set()
const keys = []
let handle

function rotate() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
  keys.unshift({ ...privateKey.export({ format: "jwk" }), kid: randomUUID(), alg: "RS256", use: "sig" })
  handle = new Provider(issuer, { ...configuration, jwks: { keys: [...keys] } }).callback()
}

class Kept extends MemoryAdapter {} // with one store for all providers, so that what is begun goes on with other keys

const configuration = {
  adapter: Kept,
  clients: [
    {
      client_id: client,
      client_secret: secret,
      redirect_uris: [`${server}/ui/login/oidc/real/callback`],
      backchannel_logout_uri: `${server}/api/user/login/oidc/real/logout`,
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  cookies: { keys: ["a key for tests"] },
  claims: { openid: ["sub"], profile: ["name", "preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
  features: { backchannelLogout: { enabled: true } },
  pkce: { required: () => true },
  fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options), // its own refuses 127.0.0.1
  findAccount: (_context, id) =>
    removed.has(id)
      ? undefined
      : {
          accountId: id,
          claims: () => ({
            sub: id,
            name: id,
            preferred_username: id,
            email: `${id}@corp.example`,
            email_verified: true,
            groups: id.startsWith("chief") ? ["chiefs"] : ["crew"],
          }),
        },
}
rotate()
createServer((request, response) => {
  const { pathname, search } = new URL(request.url, issuer)
  if (pathname === "/test/rotate") rotate()
  else if (pathname === "/test/remove") removed.add(search.slice(1))
  else return handle(request, response)
  response.end()
}).listen(Number(port), "127.0.0.1", () => console.log("listening"))
