#!/run/real-stack/busybox sh
# Starts, stops and disturbs the Bluetooth stack of the guest. Returns when what was asked for has happened.
#
#   stack daemon start|stop|kill|restart  bluetoothd; stop asks it to end, kill does not
#   stack daemon keep                     has it started again whenever it ends by itself, as a manager of services does
#   stack air start [N]|stop              btvirt with N controllers on one air; stopping takes the adapters away
#   stack wait-powered N SECONDS          fails where fewer than N adapters are powered by then
#   stack power ADAPTER on|off            through bluetoothd, as a user does it
#   stack down ADAPTER, stack up ADAPTER  behind bluetoothd's back; the other side of a link does not notice
#   stack disconnect ADAPTER ADDRESS      ends a link at one side
#   stack repeat ADAPTER on|off           has what it advertises heard about once a second, as on a real air, and not only once
#   stack mtu OCTETS                      restarts bluetoothd, which asks for that ATT MTU from now on
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
  rm -f "$base/$1.pid"
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

# link ADAPTER ADDRESS: the handle of the link, if there is one.
link() {
  hcitool -i "$1" con | $busybox awk -v address="$2" \
    '$3 == address { for (i = 4; i < NF; i++) if ($i == "handle") { print $(i + 1); exit } }'
}

# Returns once the controller has said that it has ended; the next link may be there already then, with the same handle.
disconnect() {
  handle=$(link "$1" "$2")
  [ -n "$handle" ] || {
    echo "$1 has no link to $2" >&2
    return 1
  }
  hcitool -i "$1" ledc "$handle"
}

# btvirt tells scanners of an advertiser as either begins, and then no more: so advertising is switched off and, where it was on, on again.
# LE Set Advertising Enable: Core Vol 4 Part E 7.8.9.
# Whoever ends it does so between these two, so that nothing is left switched off.
repeating() {
  ended=
  trap 'ended=1' TERM
  until [ "$ended" ]; do
    case $(hcitool -i "$1" cmd 0x08 0x000a 00) in
    *"0A 20 00"*) hcitool -i "$1" cmd 0x08 0x000a 01 >/dev/null ;;
    esac
    $busybox usleep 700000 &
    [ "$ended" ] || wait $!
  done
}

set_mtu() {
  $busybox sed -i -e '/^ExchangeMTU/d' -e "s/^\\[GATT\\]/&\\nExchangeMTU = $1/" $base/main.conf
  end bluetoothd KILL && daemon_start
}

case $1:$2 in
daemon:start) daemon_start ;;
daemon:stop) end bluetoothd TERM ;;
daemon:kill) end bluetoothd KILL ;;
daemon:restart) end bluetoothd KILL && daemon_start ;;
daemon:keep) start keeper "$0" keeping daemon ;;
keeping:daemon)
  while :; do
    if [ -f $base/bluetoothd.pid ] && ! running bluetoothd; then daemon_start; fi
    $busybox usleep 200000
  done
  ;;
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
disconnect:*) [ $# -eq 3 ] || usage && disconnect "$2" "$3" ;;
repeat:*)
  case $3 in
  on) start "repeat-$2" "$0" repeating "$2" ;;
  off) end "repeat-$2" TERM ;;
  *) usage ;;
  esac
  ;;
repeating:*) repeating "$2" ;;
mtu:*) [ $# -eq 2 ] || usage && set_mtu "$2" ;;
*) usage ;;
esac
