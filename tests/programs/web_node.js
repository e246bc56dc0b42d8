// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A server of files and of what it is sent, or a client of it: `serve ADDRESS PORT FOLDER`, `fetch ADDRESS PORT FOLDER`.
'use strict';
const assert = require('assert');
const fs = require('fs');
const http = require('http');
const path = require('path');

const CLIENTS = 8;
const ROUNDS = 3;
const [what, address, port, folder] = process.argv.slice(2);

function answer(request, response) {
	if (request.method === 'POST')
		request.pipe(response);
	else
		fs.createReadStream(path.join(folder, path.basename(request.url))).pipe(response);
}

// What comes to this method, with a body or without.
function ask(agent, method, name, body) {
	return new Promise((resolve, reject) => {
		const request = http.request({ agent, host: address, port, method, path: `/${name}` }, (response) => {
			const pieces = [];
			response.on('data', (piece) => pieces.push(piece));
			response.on('end', () => resolve(Buffer.concat(pieces)));
			response.on('error', reject);
		});
		request.on('error', reject);
		request.end(body);
	});
}

async function fetchAll(agent, names) {
	for (const name of names) {
		const bytes = fs.readFileSync(path.join(folder, name));
		assert((await ask(agent, 'GET', name)).equals(bytes), `got ${name}`);
		assert((await ask(agent, 'POST', name, bytes)).equals(bytes), `posted ${name}`);
	}
}

async function fetchRounds() {
	const names = fs.readdirSync(folder);
	for (let round = 0; round < ROUNDS; round++) {
		const agent = new http.Agent({ keepAlive: round > 0 });
		await Promise.all(Array.from({ length: CLIENTS }, () => fetchAll(agent, names)));
		agent.destroy();
	}
	console.log('every answer is right');
}

if (what === 'serve')
	http.createServer(answer).listen(port, address);
else
	fetchRounds().catch((error) => { console.error(error); process.exit(1); });
