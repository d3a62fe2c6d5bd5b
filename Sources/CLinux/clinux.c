#define _GNU_SOURCE
#include "clinux.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

const short clinux_pollrdhup = POLLRDHUP;

int clinux_accept(int listener, struct sockaddr *address, socklen_t *length) {
  return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

uint64_t clinux_time_stamp_counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

int clinux_closing_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
