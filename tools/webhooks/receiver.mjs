// A receiver that writes down what comes, a line each: `node receiver.mjs FILE`. It says its URL on the first line that it
// prints, and answers 200 once a delivery is written.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const [file] = process.argv.slice(2);

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const delivery = { headers: request.headers, body: Buffer.concat(chunks).toString("base64") };
    appendFileSync(file, `${JSON.stringify(delivery)}\n`);
    response.writeHead(200).end();
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/hook`));
