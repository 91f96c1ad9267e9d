// Writes docs/openapi.json from the routes of the built program. Run it after a change of the HTTP API.
import { readFile, writeFile } from 'node:fs/promises';

const { openApiText } = await import('../dist/api/http/openapi.js');
const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
await writeFile(new URL('../docs/openapi.json', import.meta.url), await openApiText(version));
