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
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work root /root || give_up "no overlay"

mkdir -p /root/proc /root/sys /root/dev /root/run /root/out
mount --move /proc /root/proc
mount --move /sys /root/sys
mount --move /dev /root/dev
mount -t debugfs debug /root/sys/kernel/debug
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts devpts /root/dev/pts
mount -t tmpfs shm /root/dev/shm
ln -sf /proc/self/fd /root/dev/fd
ln -sf fd/0 /root/dev/stdin
ln -sf fd/1 /root/dev/stdout
ln -sf fd/2 /root/dev/stderr
mount -t tmpfs -o mode=0755 run /root/run
# What the host has paired or remembers is not ours.
mkdir -p /root/var/lib/bluetooth
mount -t tmpfs -o mode=0700 bluetooth /root/var/lib/bluetooth
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=512000 out /root/out || give_up "/out is not there"

mkdir -p /root/run/dbus /root/run/real-stack/bin
cp -r /guest/. /root/run/real-stack/
cp /bin/busybox /root/run/real-stack/busybox
ln -s ../stack.sh /root/run/real-stack/bin/stack
load /modules/late
ip link set lo up
chroot /root /run/real-stack/busybox sh /run/real-stack/session.sh
reboot -f
