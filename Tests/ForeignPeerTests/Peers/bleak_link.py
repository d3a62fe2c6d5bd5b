"""Finds and connects to a device with bleak of Debian 12, on bluetoothd 5.66 as well."""

from bleak import BleakClient, BleakScanner
from bleak.backends.bluezdbus.manager import BlueZManager
from dbus_fast import Message
from dbus_fast.unpack import unpack_variants

DEVICE = "org.bluez.Device1"
SERVICE = "org.bluez.GattService1"


async def find(service, adapter):
    """The first device that is heard to have a service; None where two minutes are not enough."""
    return await BleakScanner.find_device_by_filter(
        lambda _, heard: service in heard.service_uuids, timeout=120, adapter=adapter
    )


def connection(device, adapter):
    """The connection to a device, to be used in a `with` statement."""
    return BleakClient(device, adapter=adapter, timeout=120)


def know_what_is_there():
    """Two things that bleak takes for granted before it lists the services of a device.

    Where ATT was quicker than the controller's event, that daemon never tells that a device is connected. And bleak 0.20 keeps listing services that
    the device has no longer, such as those of a program that was started anew, and fails as it looks for them.
    """
    wait = BlueZManager._wait_for_services_discovery

    async def ask_and_wait(self, path):
        question = Message(
            destination="org.bluez",
            path=path,
            interface="org.freedesktop.DBus.Properties",
            member="GetAll",
            signature="s",
            body=[DEVICE],
        )
        reply = await self._bus.call(question)
        self._properties[path][DEVICE].update(unpack_variants(reply.body[0]))
        await wait(self, path)
        listed = self._service_map.get(path, set())
        self._service_map[path] = {service for service in listed if SERVICE in self._properties.get(service, {})}

    BlueZManager._wait_for_services_discovery = ask_and_wait


know_what_is_there()
