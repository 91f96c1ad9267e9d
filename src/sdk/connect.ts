import { ApiClient } from '../client/api-client.js';
import { resolveCredentials } from '../client/credentials.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { HttpTransport } from '../transport/http-transport.js';
import { HttpWorkerGateway } from '../worker/http-gateway.js';
import { Punctual } from './punctual.js';

/** Where to connect to, and with which key. */
export interface ConnectOptions {
  /** Address of a node, or several; default `PUNCTUAL_URL`, then a profile or `.punctual/credentials.json`. */
  readonly url?: string | readonly string[];
  /** Default `PUNCTUAL_API_KEY`, then a profile or `.punctual/credentials.json`. */
  readonly apiKey?: string;
  /** The profile of `punctual login` to use; default `PUNCTUAL_PROFILE`. */
  readonly profile?: string;
  /** The tenant an operator's key acts for; default `default`. */
  readonly tenant?: string;
  /** How long requests are repeated while no node can serve them, in milliseconds; default 8,000. */
  readonly retryForMs?: number;
}

const OPTIONS: OptionNames<ConnectOptions> = {
  url: true,
  apiKey: true,
  profile: true,
  tenant: true,
  retryForMs: true,
};

/** Connects to a cluster; the first request opens the connection. */
export function connect(options: ConnectOptions = {}): Punctual {
  checkOptions('connect()', options, OPTIONS);
  const { urls, apiKey } = resolveCredentials(options);
  const { tenant, retryForMs } = options;
  const target = { urls, apiKey, ...(tenant !== undefined && { tenant }) };
  const transport = new ApiClient({ ...target, ...(retryForMs !== undefined && { retryForMs }) });
  const opened: HttpTransport[] = [];
  return new Punctual({
    transport,
    tenant: tenant ?? 'default',
    openGateway: () => {
      // Each worker has its own connections, so that its requests do not queue behind those of the program.
      const ownTransport = new HttpTransport(target);
      opened.push(ownTransport);
      return new HttpWorkerGateway(ownTransport);
    },
    close: async () => {
      await Promise.all([transport, ...opened].map((each) => each.close()));
    },
  });
}
