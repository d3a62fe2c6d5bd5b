#ifndef CALLOCATIONS_H
#define CALLOCATIONS_H

#include <stdint.h>

// Calls of malloc(3) and its kin by the whole process since it began.
uint64_t allocations_count(void);

// Octets that are allocated now, as malloc_usable_size(3) has them.
int64_t allocations_live(void);

// The most that were allocated at once since the last allocations_reset_peak().
int64_t allocations_peak(void);

void allocations_reset_peak(void);

#endif
