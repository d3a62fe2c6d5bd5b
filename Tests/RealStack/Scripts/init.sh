#!/bin/busybox sh
# The first process of the guest. Puts the host's root file system, read-only, under a layer in memory, and hands over to session.sh.
/bin/busybox --install -s /bin
export PATH=/bin

# Whatever is said here goes to the console, which the host shows when a boot fails.
give_up() {
  echo "real-stack: $*"
  reboot -f
}

# load FILE: inserts the modules that FILE names, in that order.
load() {
  while read -r module; do
    options=
    # Enhanced credit based channels make bluetoothd open EATT bearers, and 5.66 never ends a discovery between two of its own adapters then.
    [ "$module" = bluetooth ] && options=enable_ecred=0
    insmod "/modules/$module.ko" $options || give_up "module $module was not loaded"
  done <"$1"
}

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
load /modules/early
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=512000,ro root /host || give_up "the host's root is not there"
mount -t tmpfs -o mode=0755,size=80% layer /layer
mkdir /layer/upper /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work root /merged || give_up "no overlay"

mkdir -p /merged/proc /merged/sys /merged/dev /merged/run /merged/out
mount --move /proc /merged/proc
mount --move /sys /merged/sys
mount --move /dev /merged/dev
mount -t debugfs debug /merged/sys/kernel/debug
mkdir -p /merged/dev/pts /merged/dev/shm
mount -t devpts devpts /merged/dev/pts
mount -t tmpfs shm /merged/dev/shm
ln -sf /proc/self/fd /merged/dev/fd
ln -sf fd/0 /merged/dev/stdin
ln -sf fd/1 /merged/dev/stdout
ln -sf fd/2 /merged/dev/stderr
mount -t tmpfs -o mode=0755 run /merged/run
# What the host has paired or remembers is not ours.
mkdir -p /merged/var/lib/bluetooth
mount -t tmpfs -o mode=0700 bluetooth /merged/var/lib/bluetooth
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=512000 out /merged/out || give_up "/out is not there"

mkdir -p /merged/run/dbus /merged/run/real-stack/bin
cp -r /guest/. /merged/run/real-stack/
cp /bin/busybox /merged/run/real-stack/busybox
ln -s ../stack.sh /merged/run/real-stack/bin/stack
load /modules/late
ip link set lo up
chroot /merged /run/real-stack/busybox sh /run/real-stack/session.sh
reboot -f
