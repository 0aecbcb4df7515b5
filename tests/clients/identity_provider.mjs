// An OpenID Connect provider for tests: node identity_provider.mjs MODULE PORT CLIENT SECRET SERVER
// Everybody whose name is typed may log in; the claims of a person are made of the name.
const [module, port, client, secret, server] = process.argv.slice(2)
const { default: Provider } = await import(module)
const issuer = `http://127.0.0.1:${port}`
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: client,
      client_secret: secret,
      redirect_uris: [`${server}/ui/login/oidc/real/callback`],
      backchannel_logout_uri: `${server}/api/user/login/oidc/real/logout`,
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  claims: { openid: ["sub"], profile: ["name", "preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
  features: { backchannelLogout: { enabled: true } },
  pkce: { required: () => true },
  fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options), // its own refuses 127.0.0.1
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      name: id,
      preferred_username: id,
      email: `${id}@corp.example`,
      email_verified: true,
      groups: id.startsWith("chief") ? ["chiefs"] : ["crew"],
    }),
  }),
})
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"))
