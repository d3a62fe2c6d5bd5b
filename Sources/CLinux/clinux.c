#define _GNU_SOURCE
#include "clinux.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

const short clinux_pollrdhup = POLLRDHUP;

int clinux_accept(int listener, struct sockaddr *address, socklen_t *length) {
  return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int clinux_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int clinux_epoll_add(int epoll, int descriptor, int what, uint64_t number) {
  uint32_t wanted = 0;
  switch (what) {
  case CLINUX_READABLE: wanted = EPOLLIN; break;
  case CLINUX_WRITABLE: wanted = EPOLLOUT; break;
  case CLINUX_WRITABLE_EDGE: wanted = EPOLLOUT | EPOLLET; break;
  }
  struct epoll_event event = {.events = wanted | EPOLLRDHUP, .data.u64 = number};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int clinux_epoll_remove(int epoll, int descriptor) {
  return epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

int clinux_epoll_ready(int epoll, uint64_t *numbers, int capacity) {
  struct epoll_event events[16];
  int most = (int)(sizeof events / sizeof *events);
  int count = epoll_wait(epoll, events, capacity < most ? capacity : most, 0);
  for (int i = 0; i < count; i++) numbers[i] = events[i].data.u64;
  return count;
}

uint64_t clinux_time_stamp_counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

int clinux_rename(int directory, const char *name, const char *other, int how) {
  unsigned flags = how == CLINUX_EXCHANGE ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  return renameat2(directory, name, directory, other, flags);
}

int clinux_closing_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int clinux_spawn_close_from(posix_spawn_file_actions_t *actions, int descriptor) {
  return posix_spawn_file_actions_addclosefrom_np(actions, descriptor);
}
