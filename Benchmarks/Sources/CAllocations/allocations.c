#include "CAllocations.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

// glibc keeps its own functions reachable under these names for who defines malloc anew.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static atomic_ullong calls;
static atomic_llong live;
static atomic_llong peak;

static void *taken(void *block) {
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  if (!block) return block;
  long long size = (long long)malloc_usable_size(block);
  long long now = atomic_fetch_add_explicit(&live, size, memory_order_relaxed) + size;
  long long most = atomic_load_explicit(&peak, memory_order_relaxed);
  while (now > most && !atomic_compare_exchange_weak_explicit(&peak, &most, now, memory_order_relaxed, memory_order_relaxed)) {
  }
  return block;
}

static void given(void *block) {
  if (block) atomic_fetch_sub_explicit(&live, (long long)malloc_usable_size(block), memory_order_relaxed);
}

void *malloc(size_t size) { return taken(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return taken(__libc_calloc(count, size)); }

void *realloc(void *block, size_t size) {
  given(block);
  void *moved = __libc_realloc(block, size);
  // What could not be moved is still there.
  if (!moved && block && size) atomic_fetch_add_explicit(&live, (long long)malloc_usable_size(block), memory_order_relaxed);
  return taken(moved);
}

void *memalign(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }

int posix_memalign(void **block, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void *made = taken(__libc_memalign(alignment, size));
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}

void free(void *block) {
  given(block);
  __libc_free(block);
}

uint64_t allocations_count(void) { return atomic_load(&calls); }

int64_t allocations_live(void) { return atomic_load(&live); }

int64_t allocations_peak(void) { return atomic_load(&peak); }

void allocations_reset_peak(void) { atomic_store(&peak, atomic_load(&live)); }
