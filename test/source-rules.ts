/** The rules that the sources keep, as plain functions over text, so that the rules themselves are tested. */

export interface SourceFile {
  /** Path below `src/`, or below `dashboard/src/`, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

const FOUNDATION = ['host', 'core'];
const LEADER_PARTS = ['store', ...FOUNDATION];
const ALL_BUT_CLI = [
  'core',
  'host',
  'store',
  'artifact',
  'cluster',
  'dispatch',
  'schedule',
  'workflow',
  'api',
  'transport',
  'worker',
  'client',
  'sdk',
  'embedded',
  'node',
];

/** What each part of `src/` may import besides itself. Dependencies point one way. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  host: ['core'],
  store: FOUNDATION,
  artifact: FOUNDATION,
  cluster: LEADER_PARTS,
  dispatch: ['cluster', 'schedule', 'workflow', 'artifact', ...LEADER_PARTS],
  schedule: LEADER_PARTS,
  workflow: LEADER_PARTS,
  api: ['dispatch', 'cluster', 'schedule', 'workflow', 'artifact', ...LEADER_PARTS],
  transport: ['core'],
  worker: ['transport', ...FOUNDATION],
  client: ['transport', 'core'],
  sdk: ['client', 'worker', 'transport', 'core'],
  embedded: FOUNDATION,
  node: ALL_BUT_CLI,
  cli: ALL_BUT_CLI,
  'index.ts': ['sdk', 'client', 'worker', 'transport', 'core'],
  'server.ts': ['node', 'core'],
};

const IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g;
const STATEMENT = /\b(SELECT\s.*\sFROM|INSERT INTO|UPDATE [a-z_.]+ SET|DELETE FROM)\s/;

/** The part a path below `src/` belongs to: its first folder, or the file itself at the top. */
function partOf(path: string): string {
  return path.split('/')[0]!;
}

/** The path below `src/` that a relative import means; it begins with `..` when it leaves `src/`. */
function resolveImport(from: string, specifier: string): string {
  const parts = from.split('/').slice(0, -1);
  for (const step of specifier.split('/')) {
    if (step === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (step !== '.') parts.push(step);
  }
  return parts.join('/').replace(/\.js$/, '.ts');
}

/** Imports that point the wrong way, each as one line. */
export function wrongImports(files: readonly SourceFile[]): string[] {
  return files.filter(isProductCode).flatMap(({ path, text }) => {
    const part = partOf(path);
    const allowed = MAY_IMPORT[part];
    if (allowed === undefined) return [`${path}: ${part} is not a part of the design`];
    return [...text.matchAll(IMPORT)]
      .map((match) => resolveImport(path, match[1]!))
      .filter((target) => partOf(target) !== part && !allowed.includes(partOf(target)))
      .map((target) => `${path} may not import ${target}`);
  });
}

const FILES_AND_PROCESSES =
  /['"]node:(?:fs|fs\/promises|child_process|perf_hooks|process|os|net|http)['"]|\bprocess\.\w/;

const OUT_OF_DASHBOARD =
  /^(import|export)\s(type\s)?[^'"]*?from\s+['"]((?:\.\.\/)+(?:src|test|scripts)\/[^'"]+)['"]/gm;

/** What the dashboard takes from elsewhere in the repository besides types of core, which leave nothing behind in the page. */
export function wrongDashboardImports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(OUT_OF_DASHBOARD)]
      .filter(([, , type, from]) => type === undefined || !/^(\.\.\/)+src\/core\//.test(from!))
      .map(([, , , from]) => `${path} may not import ${from}`),
  );
}

/** Ways to make elements or scripts of texts: what comes from jobs is text, and stays it. */
export function textsAsMarkup(files: readonly SourceFile[]): string[] {
  const pattern =
    /\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|eval\()|\bstyle=/;
  return files.flatMap((file) => linesMatching(file, pattern));
}

/** Who asks the API without the one client, and so without its headers and its rules. */
export function strayRequests(files: readonly SourceFile[]): string[] {
  const own = ['api/client.ts', 'live/event-stream.ts'];
  return files
    .filter(({ path }) => !own.includes(path))
    .flatMap((file) => linesMatching(file, /\bfetch\(|\bXMLHttpRequest\b|\bEventSource\b/));
}

/** Files, processes and the environment in core, which is pure: they belong to `host`. */
export function impureCore(files: readonly SourceFile[]): string[] {
  return files
    .filter((file) => isProductCode(file) && partOf(file.path) === 'core')
    .flatMap((file) => linesMatching(file, FILES_AND_PROCESSES));
}

const LOADED = /^(?:import|export)\s+(?!type\b)(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]/gm;

/** Everything that is loaded together with a file, before anything of it runs: files of ours and packages. */
export function loadedWith(files: readonly SourceFile[], entry: string): Set<string> {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const loaded = new Set([entry]);
  for (const path of loaded) {
    for (const [, specifier] of (texts.get(path) ?? '').matchAll(LOADED)) {
      loaded.add(specifier!.startsWith('.') ? resolveImport(path, specifier!) : specifier!);
    }
  }
  return loaded;
}

/** Statements outside the store, each as one line. */
export function strayStatements(files: readonly SourceFile[]): string[] {
  return files
    .filter((file) => isProductCode(file) && partOf(file.path) !== 'store')
    .flatMap((file) => linesMatching(file, STATEMENT));
}

/** Intervals, which overlap themselves and outlive errors; loops belong to the one that does not. */
export function intervals(files: readonly SourceFile[]): string[] {
  return files.filter(isProductCode).flatMap((file) => linesMatching(file, /\bsetInterval\(/));
}

/** Notifications of Postgres: one per commit cost two thirds of the commit rate, so hints go from node to node. */
export function notifications(files: readonly SourceFile[]): string[] {
  return files
    .filter(isProductCode)
    .flatMap((file) => linesMatching(file, /\bpg_notify\b|\b(NOTIFY|LISTEN|UNLISTEN)\s+[a-z"*$]/));
}

/**
 * Lists that are spread into the arguments of a call, which go on the stack: a list of a hundred thousand overflows it.
 * Lists whose length stands in the source are fine: literals, constants, and arguments that are passed on.
 */
export function spreadArguments(files: readonly SourceFile[]): string[] {
  return files.filter(isProductCode).flatMap((file) => {
    const lists = [...file.text.matchAll(/\.\.\./g)].flatMap(({ index }) => {
      const open = enclosingBracket(file.text, index);
      const isCall = /[\w)\]>]\($/.test(file.text.slice(0, open + 1));
      const list = file.text.slice(index + 3, endOfItem(file.text, index + 3)).trim();
      return isCall && !isOfKnownLength(list, file.text) ? [lineAt(file, index)] : [];
    });
    return [...lists, ...linesMatching(file, /\.apply\(/)];
  });
}

const LITERAL = String.raw`\[(?:(?!\.\.\.).)*\]`;
const OF_KNOWN_LENGTH = new RegExp(`^[A-Z_]+$|^${LITERAL}$|^\\([^[]*${LITERAL} : ${LITERAL}\\)$`, 's');

/** Rest parameters are written like spread lists, and what they hold came as arguments already. */
function isOfKnownLength(list: string, text: string): boolean {
  const isRest = /^\w+: /.test(list) || (/^\w+$/.test(list) && text.includes(`(...${list}) =>`));
  return isRest || OF_KNOWN_LENGTH.test(list);
}

/** The place of the bracket that is open at a place; -1 at the top. */
function enclosingBracket(text: string, place: number): number {
  let closed = 0;
  for (let at = place - 1; at >= 0; at--) {
    if (')]}'.includes(text[at]!)) closed += 1;
    else if ('([{'.includes(text[at]!) && closed-- === 0) return at;
  }
  return -1;
}

/** The place of the comma or bracket that ends an item of a list. */
function endOfItem(text: string, place: number): number {
  let open = 0;
  for (let at = place; at < text.length; at++) {
    if ('([{'.includes(text[at]!)) open += 1;
    else if (')]}'.includes(text[at]!) && open-- === 0) return at;
    else if (text[at] === ',' && open === 0) return at;
  }
  return text.length;
}

function lineAt({ path, text }: SourceFile, place: number): string {
  const number = text.slice(0, place).split('\n').length;
  return `${path}:${number}: ${text.split('\n')[number - 1]!.trim()}`;
}

/** Tests stand beside the code and may reach across the parts. */
function isProductCode(file: SourceFile): boolean {
  return !/\.(test|test-d|fixture)\.tsx?$/.test(file.path);
}

function linesMatching({ path, text }: SourceFile, pattern: RegExp): string[] {
  return text
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : []));
}
