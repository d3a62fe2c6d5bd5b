#!/run/real-stack/busybox sh
# Starts, stops and disturbs the Bluetooth stack of the guest. Returns when what was asked for has happened.
#
#   stack daemon start|stop|kill|restart  bluetoothd; stop asks it to end, kill does not
#   stack air start [N]|stop              btvirt with N controllers on one air; stopping takes the adapters away
#   stack wait-powered N SECONDS          fails where fewer than N adapters are powered by then
#   stack power ADAPTER on|off            through bluetoothd, as a user does it
#   stack down ADAPTER, stack up ADAPTER  behind bluetoothd's back; the other side of a link does not notice
#   stack disconnect ADAPTER ADDRESS      ends a link at one side
base=/run/real-stack
logs=/out/.real-stack
busybox=$base/busybox
. $base/settings

usage() {
  $busybox sed -n 's/^#   //p' "$0" >&2
  exit 2
}

running() { [ -f "$base/$1.pid" ] && [ -e "/proc/$(cat "$base/$1.pid")/exe" ]; }

# start NAME COMMAND...
start() {
  name=$1
  shift
  running "$name" && return
  setsid "$@" >>"$logs/$name.log" 2>&1 </dev/null &
  echo $! >"$base/$name.pid"
}

# end NAME SIGNAL
end() {
  running "$1" || return 0
  pid=$(cat "$base/$1.pid")
  kill "-$2" "$pid"
  rounds=0
  while [ -e "/proc/$pid/exe" ]; do
    [ $rounds -lt 200 ] || {
      echo "$1 did not end" >&2
      return 1
    }
    $busybox usleep 50000
    rounds=$((rounds + 1))
  done
  rm -f "$base/$1.pid"
}

managed() {
  dbus-send --system --print-reply --dest=org.bluez / org.freedesktop.DBus.ObjectManager.GetManagedObjects
}

# How many adapters say that they are powered.
powered() {
  managed 2>/dev/null |
    $busybox awk '/string "Powered"/ { next_value = 1; next } next_value { if (/boolean true/) count++; next_value = 0 } END { print count + 0 }'
}

wait_powered() {
  rounds=0
  while [ "$(powered)" -lt "$1" ]; do
    [ $rounds -lt $(($2 * 10)) ] || return 1
    $busybox usleep 100000
    rounds=$((rounds + 1))
  done
}

# Returns once bluetoothd answers.
daemon_start() {
  start bluetoothd "$BLUETOOTHD" --nodetach --configfile=$base/main.conf $DAEMON_OPTIONS
  rounds=0
  until managed >/dev/null 2>&1; do
    running bluetoothd || {
      echo "bluetoothd has ended" >&2
      return 1
    }
    [ $rounds -lt 200 ] || {
      echo "bluetoothd does not answer" >&2
      return 1
    }
    $busybox usleep 50000
    rounds=$((rounds + 1))
  done
}

# management COMMAND...: btmgmt does nothing without a terminal.
management() {
  said=$(script -qec "btmgmt $*" /dev/null </dev/null)
  case $said in
  # The reason why a link has ended may be told in the place of success.
  *"status 0x0e (Disconnected)"*) ;;
  *failed* | *Unable* | *Invalid* | *"not found"*)
    echo "$said" >&2
    return 1
    ;;
  esac
}

case $1:$2 in
daemon:start) daemon_start ;;
daemon:stop) end bluetoothd TERM ;;
daemon:kill) end bluetoothd KILL ;;
daemon:restart) end bluetoothd KILL && daemon_start ;;
air:start)
  count=${3:-$CONTROLLERS}
  [ "$count" -eq 0 ] || start btvirt btvirt "-l$count"
  ;;
air:stop) end btvirt KILL ;;
wait-powered:*) [ $# -eq 3 ] || usage && wait_powered "$2" "$3" ;;
power:*)
  case $3 in
  on) value=true ;;
  off) value=false ;;
  *) usage ;;
  esac
  dbus-send --system --print-reply --dest=org.bluez "/org/bluez/$2" org.freedesktop.DBus.Properties.Set \
    string:org.bluez.Adapter1 string:Powered variant:boolean:$value >/dev/null
  ;;
down:* | up:*) [ $# -eq 2 ] || usage && hciconfig "$2" "$1" ;;
disconnect:*) [ $# -eq 3 ] || usage && management --index "${2#hci}" disconnect "$3" ;;
*) usage ;;
esac
