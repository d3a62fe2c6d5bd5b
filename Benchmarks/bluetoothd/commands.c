// How fast bluetoothd takes and delivers write commands from the descriptor of AcquireWrite, without anything of ours: a sender in C.
//
//   commands-yardstick CHARACTERISTIC BARRIER OCTETS
//
// CHARACTERISTIC is the D-Bus path of one that is written without response, BARRIER of one of the same device that can be read: its answer comes after all that the
// daemon has read from the descriptor was sent. Prints octets per second, from the first command to that answer.
#define _GNU_SOURCE
#include <dbus/dbus.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// bluetoothd 5.66 drops longer ones as a server.
enum { patience_ms = 60000, most_octets = 510 };

static _Noreturn void fail(const char *what, const char *why) {
  fprintf(stderr, "commands-yardstick: %s: %s\n", what, why);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// A method of a characteristic that takes options, of which there are none.
static DBusMessage *call(DBusConnection *bus, const char *path, const char *method) {
  DBusMessage *message = dbus_message_new_method_call("org.bluez", path, "org.bluez.GattCharacteristic1", method);
  DBusMessageIter arguments, options;
  dbus_message_iter_init_append(message, &arguments);
  dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "{sv}", &options);
  dbus_message_iter_close_container(&arguments, &options);
  DBusError error = DBUS_ERROR_INIT;
  DBusMessage *reply = dbus_connection_send_with_reply_and_block(bus, message, patience_ms, &error);
  dbus_message_unref(message);
  if (!reply) fail(method, error.message);
  return reply;
}

// Waits until the daemon has read everything. The kernel makes an event of each packet that is read, as long as at most a quarter of the buffer is taken.
static void wait_until_read(int descriptor) {
  struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) < 0) fail("epoll", strerror(errno));
  for (;;) {
    int unread = 0;
    if (ioctl(descriptor, SIOCOUTQ, &unread) < 0) fail("SIOCOUTQ", strerror(errno));
    // It makes the event before it has given back the last octet of the packet.
    if (unread <= 1) break;
    int ready = epoll_wait(epoll, &event, 1, patience_ms);
    if (ready == 0) fail("epoll_wait", "the daemon has read nothing for a minute");
    if (ready < 0 && errno != EINTR) fail("epoll_wait", strerror(errno));
  }
  close(epoll);
}

int main(int count, char **words) {
  if (count != 4) {
    fprintf(stderr, "usage: commands-yardstick CHARACTERISTIC BARRIER OCTETS\n");
    return 2;
  }
  uint64_t octets = strtoull(words[3], NULL, 10);
  DBusError error = DBUS_ERROR_INIT;
  DBusConnection *bus = dbus_bus_get(DBUS_BUS_SYSTEM, &error);
  if (!bus) fail("system bus", error.message);
  DBusMessage *reply = call(bus, words[1], "AcquireWrite");
  int descriptor = -1;
  dbus_uint16_t mtu = 0;
  if (!dbus_message_get_args(
        reply, &error, DBUS_TYPE_UNIX_FD, &descriptor, DBUS_TYPE_UINT16, &mtu, DBUS_TYPE_INVALID))
    fail("AcquireWrite", error.message);
  dbus_message_unref(reply);
  size_t limit = mtu > 3 && (size_t)mtu - 3 < most_octets ? (size_t)mtu - 3 : most_octets;
  static unsigned char buffer[most_octets];
  for (size_t index = 0; index < sizeof buffer; index++) buffer[index] = (unsigned char)(index * 31);
  double began = now();
  for (uint64_t rest = octets; rest > 0;) {
    size_t size = rest < limit ? (size_t)rest : limit;
    if (send(descriptor, buffer, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size) {
      rest -= size;
      continue;
    }
    if (errno != EAGAIN) fail("send", strerror(errno));
    struct pollfd entry = {.fd = descriptor, .events = POLLOUT};
    if (poll(&entry, 1, patience_ms) <= 0) fail("poll", "no room for a minute");
  }
  // The daemon reads the descriptor and the bus in no fixed order.
  wait_until_read(descriptor);
  dbus_message_unref(call(bus, words[2], "ReadValue"));
  printf("%.0f\n", (double)octets / (now() - began));
  return 0;
}
