// A receiver of webhooks that verifies them with the library of Standard Webhooks; prints a line for each request.
// node receiver.cjs FOLDER_OF_THE_LIBRARY; the first line of the standard input is the secret.
const http = require("node:http");
const path = require("node:path");
const readline = require("node:readline");
const { Webhook } = require(path.join(process.argv[2], "node_modules", "standardwebhooks"));

let webhook;
readline.createInterface({ input: process.stdin }).on("line", (secret) => (webhook = new Webhook(secret)));

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    let verdict;
    try {
      const event = webhook.verify(Buffer.concat(pieces).toString(), request.headers);
      verdict = { ok: true, id: request.headers["webhook-id"], type: event.type, subject: event.subject };
    } catch (error) {
      verdict = { ok: false, error: error.message };
    }
    console.log(JSON.stringify(verdict));
    response.writeHead(verdict.ok ? 204 : 401).end();
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
