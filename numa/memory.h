/*
 * Large arrays that are read in no order: in huge pages where the kernel gives them for the asking, because most
 * of such a read is the walk through the page tables otherwise.
 *
 * Any thread may call anything here.
 */
#ifndef NUMA_MEMORY_H
#define NUMA_MEMORY_H

#include <stddef.h>

/* `len` elements of `bytes`, not cleared, at a multiple of 64; free() it. NULL without memory, or when the product overflows. */
void *memory_alloc(size_t len, size_t bytes);

#endif
