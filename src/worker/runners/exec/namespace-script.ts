/**
 * Keeps a program apart with the tools of util-linux alone, where bubblewrap is missing. It runs as the first process of new namespaces:
 * of users, in which it is root, of processes, mounts, network, IPC and names. All file systems become read-only but the folder of the
 * job and a few empty ones; then the program starts without any capability, and without a way to gain one.
 *
 * The tools come from the machine whatever the `PATH` of the job says, which counts for the program alone.
 *
 * Arguments: the folder, the program if it has to be taken along, setpriv, folders to be emptied, and the command.
 */
export const NAMESPACE_SCRIPT = `folder=$1 program=$2 setpriv=$3 hidden=$4
shift 4
own=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
set -e
cd "$folder"
mount -t proc -o nosuid,nodev,noexec proc /proc
if [ -n "$program" ]; then
  : > .program
  mount --bind "$program" "$folder/.program"
fi
for at in $hidden; do mount -t tmpfs -o nosuid,nodev tmpfs "$at"; done
mkdir -p "$folder"
mount -c --rbind . "$folder"
cd "$folder"
while read -r _ at _ flags _; do
  case "$at $flags" in "$folder "* | '/proc '* | '/tmp '* | *' ro' | *' ro,'*) continue ;; esac
  keep=
  for flag in nosuid nodev noexec noatime nodiratime relatime; do
    case ",$flags," in *",$flag,"*) keep=$keep$flag, ;; esac
  done
  mount -o "remount,bind,\${keep}ro" "$at"
done < /proc/self/mounts
set +e
PATH=$own "$setpriv" --no-new-privs --bounding-set -all --inh-caps -all -- "$@"
exit $?`;

/** Where a program that was taken along is, below its folder. */
export const TAKEN_PROGRAM = '.program';

/** The namespaces that the script expects. */
export const NAMESPACE_FLAGS: readonly string[] = [
  ...[
    '--user',
    '--map-root-user',
    '--net',
    '--ipc',
    '--uts',
    '--pid',
    '--mount',
    '--fork',
    '--kill-child',
    '--',
  ],
];

/** Folders of the machine that are emptied; a name with a blank cannot be among them. */
export const EMPTIED: readonly string[] = ['/tmp', '/var/tmp', '/run'];
