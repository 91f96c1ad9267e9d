import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { claimPort, claimUpPorts, markRunning, unmarkRunning } from './up-ports.js';

let folder: string;
let server: Server;
let port: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-up-'));
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as { port: number }).port;
});
afterEach(async () => {
  await new Promise<unknown>((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

/** The id of a process that has ended. */
const deadPid = (): number => spawnSync(process.execPath, ['-e', '']).pid;

it('refuses a taken port at once and names the option', async () => {
  await expect(claimUpPorts(folder, '127.0.0.1', port, 1)).rejects.toMatchObject({
    code: 'PORT_IN_USE',
    message: expect.stringContaining('--port'),
  });
});

it('says where the other `punctual up` of the folder runs when it is alive', async () => {
  await markRunning(folder, '127.0.0.1', [port]);
  server.on('connection', (socket) =>
    socket.resume().end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'),
  );
  // Also when another port is asked for, or any.
  for (const wanted of [port, 0]) {
    await expect(claimUpPorts(folder, '127.0.0.1', wanted, 1)).rejects.toMatchObject({
      code: 'ALREADY_RUNNING',
      message: expect.stringContaining(`already, at http://127.0.0.1:${port} (process ${process.pid})`),
    });
  }
});

it('does not take another program for it, whatever the note says', async () => {
  const refused = { message: expect.stringContaining('taken by another program') };
  await markRunning(folder, '127.0.0.1', [port]);
  server.on('connection', (socket) => socket.destroy());
  await expect(claimUpPorts(folder, '127.0.0.1', port, 1)).rejects.toMatchObject(refused);
  await markRunning(folder, '127.0.0.1', [port === 65_535 ? 1 : port + 1]);
  await expect(claimUpPorts(folder, '127.0.0.1', port, 1)).rejects.toMatchObject(refused);
});

it('waits for the node of a killed `punctual up` to give the port free', async () => {
  writeFileSync(
    join(folder, 'up.json'),
    JSON.stringify({ pid: deadPid(), host: '127.0.0.1', ports: [port] }),
  );
  const claimed = claimUpPorts(folder, '127.0.0.1', port, 1);
  setTimeout(() => server.close(), 150);
  expect(await claimed).toEqual([port]);
});

it('picks a free port for 0', async () => {
  expect(await claimPort('127.0.0.1', 0)).toBeGreaterThan(0);
});

it('forgets the start that ended in order', async () => {
  await markRunning(folder, '127.0.0.1', [port]);
  await unmarkRunning(folder);
  await expect(claimUpPorts(folder, '127.0.0.1', port, 1)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
});

it('claims a port for each node, and different ones for 0', async () => {
  const ports = await claimUpPorts(folder, '127.0.0.1', 0, 3);
  expect(new Set(ports).size).toBe(3);
});
