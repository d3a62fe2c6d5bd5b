# Runs on the host's files as root: starts the stack, says when it is ready, runs the command, brings its output and status back.
#
# The host reads lines from the first port: "phase NAME", "failed REASON", "exit STATUS". Ports two and three carry the command's output.
base=/run/real-stack
logs=/out/.real-stack
busybox=$base/busybox
export PATH=$base/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
. $base/settings

bus=$(echo /dev/vport*p1)
bus=${bus%p1}
exec 3>"${bus}p1"
say() { echo "$*" >&3; }
fail() {
  $busybox dmesg >$logs/dmesg.log
  say "failed $*"
  $busybox sleep 10
  exit
}

say phase boot
$busybox mkdir -p $logs
exec >$logs/session.log 2>&1
[ -s /etc/machine-id ] || dbus-uuidgen >/etc/machine-id
dbus-daemon --system --fork --nopidfile || fail "dbus-daemon did not start"
if [ "$SNOOP" = 1 ]; then
  setsid btmon -w $base/btsnoop >/dev/null 2>&1 3>&- &
  echo $! >$base/btmon.pid
fi
stack air start "$CONTROLLERS" 3>&- || fail "btvirt did not start"
stack daemon start 3>&- || fail "bluetoothd did not start"
say phase daemons
stack wait-powered "$CONTROLLERS" 10 || fail "fewer than $CONTROLLERS adapters are powered"
say phase ready

$busybox mkfifo $base/output $base/errors
$busybox cat $base/output >"${bus}p2" &
output=$!
$busybox cat $base/errors >"${bus}p3" &
errors=$!
(
  exec 3>&-
  . $base/environment
  . $base/command
) </dev/null >$base/output 2>$base/errors
status=$?
say phase done

# What the command has left running may hold its output open: that is waited for, but not for long.
left() { [ -e "/proc/$1/status" ] && ! $busybox grep -q '^State:.Z' "/proc/$1/status"; }
rounds=0
while { left $output || left $errors; } && [ $rounds -lt 20 ]; do
  $busybox usleep 50000
  rounds=$((rounds + 1))
done
if [ -f $base/btmon.pid ]; then
  kill "$(cat $base/btmon.pid)"
  $busybox usleep 200000
  $busybox cp $base/btsnoop $logs/btsnoop
fi
$busybox dmesg >$logs/dmesg.log
say exit $status
$busybox sleep 10
