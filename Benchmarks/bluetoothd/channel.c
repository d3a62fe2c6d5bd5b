// How fast the kernel carries bytes over an L2CAP channel, without anything of ours: a sender and a receiver in C.
//
//   channel-yardstick listen ADDRESS PSM SDU
//   channel-yardstick send FROM TO PSM SDU OCTETS
//
// The receiver takes channels one after the other, and on each one run after the other: it answers the last octet of OCTETS, which the sender tells it
// first, with one octet. The sender prints octets per second, from the first octet to that answer, of the faster of two runs: in the first, bluetoothd
// looks for the services on the link that is new. SDU is the longest that a side takes, in octets.
#define _GNU_SOURCE
#include <bluetooth/bluetooth.h>
#include <bluetooth/l2cap.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { patience_ms = 60000, most_sdu = 65535 };

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "channel-yardstick: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct sockaddr_l2 endpoint(const char *address, int psm) {
  struct sockaddr_l2 endpoint = {.l2_family = AF_BLUETOOTH, .l2_bdaddr_type = BDADDR_LE_PUBLIC, .l2_psm = htobs(psm)};
  if (str2ba(address, &endpoint.l2_bdaddr) < 0) fail("address");
  return endpoint;
}

static int open_socket(const char *address, int psm, int sdu) {
  int socket_ = socket(AF_BLUETOOTH, SOCK_SEQPACKET | SOCK_CLOEXEC, BTPROTO_L2CAP);
  if (socket_ < 0) fail("socket");
  struct sockaddr_l2 local = endpoint(address, psm);
  uint16_t most = (uint16_t)sdu;
  if (bind(socket_, (struct sockaddr *)&local, sizeof local) < 0) fail("bind");
  if (setsockopt(socket_, SOL_BLUETOOTH, BT_RCVMTU, &most, sizeof most) < 0) fail("BT_RCVMTU");
  return socket_;
}

// Some kernels stop an adapter where a receive call blocks, so all of them wait in poll.
static void wait_for(int socket_, short events) {
  struct pollfd entry = {.fd = socket_, .events = events};
  int count = poll(&entry, 1, patience_ms);
  if (count == 0) errno = ETIMEDOUT;
  if (count <= 0) fail("poll");
}

static ssize_t receive(int socket_, void *buffer, size_t size) {
  for (;;) {
    wait_for(socket_, POLLIN);
    ssize_t count = recv(socket_, buffer, size, MSG_DONTWAIT);
    if (count >= 0 || errno != EAGAIN) return count;
  }
}

static void send_all(int socket_, const unsigned char *octets, size_t size) {
  for (;;) {
    ssize_t count = send(socket_, octets, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count == (ssize_t)size) return;
    if (count >= 0) errno = EMSGSIZE;
    if (count >= 0 || errno != EAGAIN) fail("send");
    wait_for(socket_, POLLOUT);
  }
}

static _Noreturn void listen_(const char *address, int psm, int sdu) {
  static unsigned char buffer[most_sdu];
  int listener = open_socket(address, psm, sdu);
  if (listen(listener, 1) < 0) fail("listen");
  printf("listening\n");
  fflush(stdout);
  for (;;) {
    int channel = accept(listener, NULL, NULL);
    if (channel < 0) fail("accept");
    uint64_t expected = 0;
    // The sender closes first.
    while (receive(channel, &expected, sizeof expected) == sizeof expected) {
      for (uint64_t received = 0; received < expected;) {
        ssize_t count = receive(channel, buffer, sizeof buffer);
        if (count <= 0) break;
        received += (uint64_t)count;
      }
      send_all(channel, buffer, 1);
    }
    close(channel);
  }
}

static double run(int channel, const unsigned char *octets, size_t sdu, uint64_t count) {
  double began = now();
  send_all(channel, (unsigned char *)&count, sizeof count);
  for (uint64_t rest = count; rest > 0;) {
    size_t size = rest < sdu ? (size_t)rest : sdu;
    send_all(channel, octets, size);
    rest -= size;
  }
  unsigned char answer;
  if (receive(channel, &answer, 1) != 1) fail("no answer");
  return (double)count / (now() - began);
}

static int send_(const char *from, const char *to, int psm, int sdu, uint64_t octets) {
  static unsigned char buffer[most_sdu];
  int channel = open_socket(from, 0, sdu);
  struct sockaddr_l2 remote = endpoint(to, psm);
  if (connect(channel, (struct sockaddr *)&remote, sizeof remote) < 0) fail("connect");
  uint16_t most = 0;
  socklen_t length = sizeof most;
  if (getsockopt(channel, SOL_BLUETOOTH, BT_SNDMTU, &most, &length) < 0) fail("BT_SNDMTU");
  for (size_t index = 0; index < sizeof buffer; index++) buffer[index] = (unsigned char)(index * 31 ^ index >> 8);
  double first = run(channel, buffer, most, octets);
  double second = run(channel, buffer, most, octets);
  printf("%.0f\n", first > second ? first : second);
  return 0;
}

int main(int count, char **words) {
  if (count == 5 && strcmp(words[1], "listen") == 0) listen_(words[2], atoi(words[3]), atoi(words[4]));
  if (count == 7 && strcmp(words[1], "send") == 0)
    return send_(words[2], words[3], atoi(words[4]), atoi(words[5]), strtoull(words[6], NULL, 10));
  fprintf(stderr, "usage: channel-yardstick listen ADDRESS PSM SDU | send FROM TO PSM SDU OCTETS\n");
  return 2;
}
