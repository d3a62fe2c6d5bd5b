// What the Glibc module does not export: headers that only Linux has, macros Swift cannot read, and instructions it has no word for.
#ifndef CLINUX_H
#define CLINUX_H

#include <spawn.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/socket.h>

// POLLRDHUP of poll(2).
extern const short clinux_pollrdhup;

// accept4(2) with SOCK_NONBLOCK and SOCK_CLOEXEC.
int clinux_accept(int listener, struct sockaddr *address, socklen_t *length);

// epoll_create1(2) with EPOLL_CLOEXEC.
int clinux_epoll(void);

// What clinux_epoll_add watches for; a hang-up is told of in any case.
enum { CLINUX_HANG_UP, CLINUX_READABLE, CLINUX_WRITABLE, CLINUX_WRITABLE_EDGE };

// epoll_ctl(2): watches a descriptor under a number, level-triggered but for CLINUX_WRITABLE_EDGE.
int clinux_epoll_add(int epoll, int descriptor, int what, uint64_t number);

int clinux_epoll_remove(int epoll, int descriptor);

// epoll_wait(2) without waiting: the numbers of descriptors that are ready or have hung up, `capacity` at most.
int clinux_epoll_ready(int epoll, uint64_t *numbers, int capacity);

// The processor's time stamp counter; 0 where it is not an x86-64.
uint64_t clinux_time_stamp_counter(void);

enum { CLINUX_NO_REPLACE, CLINUX_EXCHANGE };

// renameat2(2) within one folder, with RENAME_NOREPLACE or RENAME_EXCHANGE. 0, or -1 and errno.
int clinux_rename(int directory, const char *name, const char *other, int how);

// pipe2(2) with O_CLOEXEC: no other child that is started meanwhile keeps the pipe open. 0, or -1 and errno.
int clinux_closing_pipe(int ends[2]);

// posix_spawn_file_actions_addclosefrom_np(3): the child gets no descriptor from that number on.
int clinux_spawn_close_from(posix_spawn_file_actions_t *actions, int descriptor);

#endif
