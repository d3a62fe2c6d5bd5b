"""Runs bluehaul and what it is compared with in turn, between two adapters of one machine, and holds the ratios of medians to bounds.json.

    compare.py BLUEHAUL YARDSTICKS

As root in the virtual machine, which `Benchmarks/bluetoothd/run` starts. YARDSTICKS is the folder with the programs `channel` and `commands`.
"""

import contextlib
import json
import os
import pathlib
import re
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
ADAPTER = "hci0"
NEAR, FAR = "00:AA:01:00:00:00", "00:AA:01:01:00:01"
YARDSTICK_PSM = "240"


def say(line):
    print(line, flush=True)


@contextlib.contextmanager
def advertising_again():
    """The controllers tell a scanner of an advertiser once, as one of them begins. Ends with the block, or when what it gives is called."""
    over = threading.Event()

    def advertise():
        while not over.wait(1):
            for is_on in ("00", "01"):
                words = ["hcitool", "-i", "hci1", "cmd", "0x08", "0x000a", is_on]
                subprocess.run(words, stdout=subprocess.DEVNULL, check=False)

    thread = threading.Thread(target=advertise)
    thread.start()

    def end():
        over.set()
        thread.join()

    try:
        yield end
    finally:
        end()


def links():
    """The handles of the links of the near adapter."""
    said = subprocess.run(["hcitool", "-i", ADAPTER, "con"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"LE .* handle (\d+)", said)


def listen_for_ends():
    """A socket that becomes readable at each event that a link of the near adapter has ended. Source: Core Vol 4 Part E 7.7.5."""
    events = socket.socket(socket.AF_BLUETOOTH, socket.SOCK_RAW, socket.BTPROTO_HCI)
    event_packet, disconnection_complete = 4, 5
    # struct hci_ufilter of the kernel: types of packets, events, opcode.
    only = struct.pack("=IIIH2x", 1 << event_packet, 1 << disconnection_complete, 0, 0)
    events.setsockopt(socket.SOL_HCI, socket.HCI_FILTER, only)
    events.bind((int(ADAPTER.removeprefix("hci")),))
    return events


def wait_for_no_link():
    """Every run makes its own link. One that a bare channel has made lasts as long as bluetoothd has an ATT bearer on it: it is ended here."""
    patience, limit = 5, time.monotonic() + 60
    with listen_for_ends() as events:
        while handles := links():
            if select.select([events], [], [], patience)[0]:
                events.recv(260)
                continue
            if time.monotonic() > limit:
                sys.exit("a link does not end")
            for handle in handles:
                subprocess.run(["hcitool", "-i", ADAPTER, "ledc", handle], stdout=subprocess.DEVNULL, check=False)


def processor_time(pid):
    """What a process has used so far, in seconds. Source: proc_pid_stat(5)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours(tool, carrier, octets):
    """Octets per second of a transfer with handshake and verification, and without, and the processor time from its first octet to the end of the
    process in seconds: an emulated processor takes seconds to start a program, which counts for nobody."""
    wait_for_no_link()
    words = [tool, "bench", "--json", "--radio", "bluez:hci0", "--to", FAR, "--via", carrier, "--size", str(octets)]
    rates, start = None, None
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    with advertising_again() as end_advertising:
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and event["phase"] != "connect":
                end_advertising()
            if event["event"] == "progress" and event["phase"] == "transfer" and start is None:
                start = processor_time(process.pid)
            if event["event"] == "bench":
                rates = event["goodput"], event["bytes"] / event["transfer_seconds"]
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or rates is None:
        sys.exit(f"bluehaul bench over {carrier} ended with {process.returncode}")
    return *rates, usage.ru_utime + usage.ru_stime - (start or 0)


def channel(program, sdu, octets):
    """Octets per second over a bare channel."""
    wait_for_no_link()
    words = [program, "send", NEAR, FAR, YARDSTICK_PSM, str(sdu), str(octets)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def writes(program, octets):
    """What bleak and the descriptor of AcquireWrite come to."""
    wait_for_no_link()
    words = ["/usr/bin/python3", str(HERE / "bleak_writes.py"), str(octets), program]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    with advertising_again():
        is_connected = process.stdout.readline() == "connected\n"
    result = process.stdout.read()
    if process.wait() != 0 or not is_connected:
        sys.exit(f"bleak_writes.py ended with {process.returncode}")
    return json.loads(result)


def resident(pid):
    """The resident memory of a process, and the most that it was since `forget_peak`, in octets. Source: proc(5)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))


def forget_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def measure(tool, yardsticks, bounds):
    """The figures of each round by name, and by how much bluetoothd has grown."""
    octets = bounds["octets"]
    rounds = []
    # The first round is for what is slow once.
    for number in range(bounds["rounds"] + 1):
        figures = {"raw channel": channel(f"{yardsticks}/channel", bounds["sdu"], octets)}
        figures["L2CAP"], figures["L2CAP, data alone"], _ = ours(tool, "l2cap", octets)
        figures |= writes(f"{yardsticks}/commands", octets)
        figures["GATT"], figures["GATT, data alone"], figures["processor"] = ours(tool, "gatt", octets)
        say(f"round {number} of {bounds['rounds']}, load {os.getloadavg()[0]:.2f}")
        if number > 0:
            rounds.append(figures)
    bluetoothd = int(subprocess.run(["pgrep", "-x", "bluetoothd"], capture_output=True, check=True).stdout.split()[0])
    forget_peak(bluetoothd)
    before, _ = resident(bluetoothd)
    ours(tool, "gatt", bounds["memory_octets"])
    _, peak = resident(bluetoothd)
    return {name: [figures[name] for figures in rounds] for name in rounds[0]}, peak - before


def judge(figures, growth, bounds):
    """Prints the figures; returns whether all bounds are held."""
    say("")
    medians = {}
    for name, values in figures.items():
        medians[name] = statistics.median(values)
        unit, scale = ("s", 1) if name.endswith("processor") else ("kB/s", 1000)
        each = ", ".join(f"{value / scale:.2f}" for value in values)
        say(f"{name:28} {medians[name] / scale:9.2f} {unit:5}  ({each})")
    say("")
    ratios = [
        ("L2CAP / raw channel", "at least", bounds["l2cap_over_channel"]),
        ("L2CAP, data alone / raw channel", None, None),
        ("GATT / descriptor", "at least", bounds["gatt_over_descriptor"]),
        ("GATT, data alone / descriptor", None, None),
        ("GATT / bleak", "at least", bounds["gatt_over_bleak"]),
        ("processor / bleak's processor", "at most", bounds["processor_of_bleak"]),
    ]
    results = []
    for name, relation, bound in ratios:
        ours_name, theirs = name.split(" / ")
        results.append((name, medians[ours_name] / medians[theirs], relation, bound))
    results.append(("growth of bluetoothd, MiB", growth / 2**20, "less than", bounds["memory_growth"] / 2**20))
    are_held = True
    for name, value, relation, bound in results:
        if relation is None:
            say(f"{name:34} {value:9.3f}")
            continue
        is_held = {"at least": value >= bound, "at most": value <= bound, "less than": value < bound}[relation]
        are_held = are_held and is_held
        say(f"{name:34} {value:9.3f}  {relation} {bound:g}: {'held' if is_held else 'NOT HELD'}")
    return are_held


def main(tool, yardsticks):
    bounds = json.loads((HERE / "bounds.json").read_text(encoding="ascii"))
    version = subprocess.run(["bluetoothctl", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    version = version.replace("bluetoothctl:", "BlueZ")
    say(f"Linux {os.uname().release}, {version}, {os.cpu_count()} processors; {bounds['octets']} octets each")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.environ["XDG_STATE_HOME"] = folder
        into = ["--into", f"{folder}/in", "--if-exists", "replace"]
        receive = [tool, "receive", "--json", "--radio", "bluez:hci1", "--name", "bench-1"] + into
        listen = [f"{yardsticks}/channel", "listen", FAR, YARDSTICK_PSM, str(bounds["sdu"])]
        for words, ready in ((receive, '"ready"'), (listen, "listening")):
            process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            stack.callback(process.kill)
            if not any(ready in line for line in iter(process.stdout.readline, "")):
                sys.exit(f"{words[0]} has ended")
            # Nobody reads the rest, which must not fill a pipe.
            threading.Thread(target=process.stdout.read, daemon=True).start()
        figures, growth = measure(tool, yardsticks, bounds)
    return 0 if judge(figures, growth, bounds) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
