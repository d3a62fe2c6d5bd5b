// What the Glibc module does not export: headers that only Linux has, and macros Swift cannot read.
#ifndef CLINUX_H
#define CLINUX_H

#include <sys/inotify.h>

#endif
