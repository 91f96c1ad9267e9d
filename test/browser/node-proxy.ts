import { createServer, request, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A proxy before a node: it shows the node below a path, and can be cut off. */
export class NodeProxy {
  readonly #sockets = new Set<Socket>();
  #isCut = false;
  /** The headers of all requests, by their addresses. */
  readonly requests: { readonly url: string; readonly headers: Readonly<Record<string, unknown>> }[] = [];

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(target: string, prefix = ''): Promise<NodeProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer((asked, answer) => {
      const url = asked.url!;
      proxy.requests.push({ url, headers: asked.headers });
      if (!url.startsWith(prefix)) return void answer.writeHead(404).end('elsewhere');
      const path = url.slice(prefix.length) || '/';
      const passed = request(
        { hostname, port, path, method: asked.method, headers: asked.headers },
        (from) => {
          answer.writeHead(from.statusCode!, from.headers);
          answer.flushHeaders();
          from.pipe(answer);
        },
      );
      passed.on('error', () => answer.destroy());
      answer.on('close', () => passed.destroy());
      asked.pipe(passed);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const proxy = new NodeProxy(
      server,
      `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    );
    server.on('connection', (socket) => {
      proxy.#sockets.add(socket);
      socket.once('close', () => proxy.#sockets.delete(socket));
      if (proxy.#isCut) socket.destroy();
    });
    onTestFinished(() => proxy.stop());
    return proxy;
  }

  /** Breaks every connection, and takes no new one. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  private async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
