# Boots a directory as a machine with systemd: nspawn.sh NAME LOWER DIR [argument of systemd-nspawn ...]
# LOWER is what overlayfs calls lowerdir; what the machine writes is kept in DIR. Everything is mounted in a namespace of its own,
# which goes with the last process. The exit code is that of systemd-nspawn: 133 is a reboot.
set -eu
name=$1 lower=$2 dir=$3
shift 3

# A cgroup of our own in every hierarchy: the systemd inside believes to be the root of ours, and moves what it finds there.
while IFS=: read -r _ controllers path; do
  hierarchy=/sys/fs/cgroup
  if [ -n "$controllers" ]; then
    hierarchy=$hierarchy/${controllers#name=}
  elif [ ! -e $hierarchy/cgroup.procs ]; then
    hierarchy=$hierarchy/unified
  fi
  above=$hierarchy${path%/}
  mkdir -p "$above/$name"
  for file in cpuset.cpus cpuset.mems; do
    if [ -n "$controllers" ] && [ -e "$above/$file" ]; then cat "$above/$file" >"$above/$name/$file"; fi
  done
  echo $$ >"$above/$name/cgroup.procs"
done </proc/self/cgroup

# What dies with this process dies at once and entirely: it is a process namespace.
export lower dir
exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc sh -euc '
  mount -t tmpfs -o mode=755 tmpfs /run
  mount -t overlay -o "lowerdir=$lower,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/root"
  exec systemd-nspawn --quiet --boot --keep-unit --register=no --settings=no --directory="$dir/root" \
    --resolv-conf=off --timezone=off --link-journal=no --console=pipe "$@"
' sh "$@" </dev/null
