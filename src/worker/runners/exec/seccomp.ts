/**
 * A filter of calls to the kernel, for programs in bubblewrap: what they have no business with, and what most holes of the kernel were
 * in, fails with EPERM. All else is allowed, because a list of what all languages and libraries need would never be complete.
 */

/** The numbers of the refused calls: of x64 and of arm64; null where a processor has none. */
// biome-ignore format: a table is read by the line
const REFUSED: Readonly<Record<string, readonly [x64: number | null, arm64: number | null]>> = {
  acct: [163, 89], add_key: [248, 217], adjtimex: [159, 171], bpf: [321, 280], clock_adjtime: [305, 266],
  clock_settime: [227, 112], delete_module: [176, 106], finit_module: [313, 273], fsconfig: [431, 431],
  fsmount: [432, 432], fsopen: [430, 430], fspick: [433, 433], init_module: [175, 105], io_uring_enter: [426, 426],
  io_uring_register: [427, 427], io_uring_setup: [425, 425], ioperm: [173, null], iopl: [172, null],
  kexec_file_load: [320, 294], kexec_load: [246, 104], keyctl: [250, 219], lookup_dcookie: [212, 18],
  mount: [165, 40], mount_setattr: [442, 442], move_mount: [429, 429], name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265], open_tree: [428, 428], perf_event_open: [298, 241], pivot_root: [155, 41],
  process_vm_readv: [310, 270], process_vm_writev: [311, 271], ptrace: [101, 117], quotactl: [179, 60],
  reboot: [169, 142], request_key: [249, 218], setns: [308, 268], settimeofday: [164, 170], swapoff: [168, 225],
  swapon: [167, 224], syslog: [103, 116], umount2: [166, 39], unshare: [272, 97], userfaultfd: [323, 282],
  vhangup: [153, 58],
};

/** The processors, as the kernel numbers them. */
const ARCHITECTURES: Readonly<Record<string, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** From here on, numbers are those of another way to call the kernel, which the list does not cover. */
const X32 = 0x40000000;
const EPERM = 1;

/** Instructions of the filter: load a word, compare and jump, answer. */
const [LOAD, EQUAL, AT_LEAST, ANSWER] = [0x20, 0x15, 0x35, 0x06];
const [ALLOW, REFUSE, KILL] = [0x7fff0000, 0x00050000 | EPERM, 0x80000000];
/** Where the number of the call and the processor stand in what a filter is given. */
const [NUMBER_AT, PROCESSOR_AT] = [0, 4];

/** The filter as bubblewrap takes it; null for a processor whose calls are not known here. */
export function seccompFilter(architecture: string): Buffer | null {
  const processor = ARCHITECTURES[architecture];
  if (processor === undefined) return null;
  const numbers = Object.values(REFUSED)
    .map(([x64, arm64]) => (architecture === 'x64' ? x64 : arm64))
    .filter((number) => number !== null);
  const tests = [
    ...(architecture === 'x64' ? [[AT_LEAST, X32] as const] : []),
    ...numbers.map((number) => [EQUAL, number] as const),
  ];
  return Buffer.concat([
    instruction(LOAD, PROCESSOR_AT),
    instruction(EQUAL, processor, 1, 0),
    instruction(ANSWER, KILL),
    instruction(LOAD, NUMBER_AT),
    // Each test jumps over those behind it and the permission, to the refusal.
    ...tests.map(([code, value], index) => instruction(code, value, tests.length - index, 0)),
    instruction(ANSWER, ALLOW),
    instruction(ANSWER, REFUSE),
  ]);
}

function instruction(code: number, value: number, ifTrue = 0, ifFalse = 0): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(value >>> 0, 4);
  return bytes;
}
