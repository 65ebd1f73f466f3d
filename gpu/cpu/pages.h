/*
 * Memory for long vectors that are visited in no order: on huge pages where the system gives them, since an access that
 * needs an entry of the page table first takes twice as long.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_CPU_PAGES_H
#define GPU_CPU_PAGES_H

#include <stddef.h>

/* As malloc, and given back by free(). NULL when there is no memory. */
void *pages_alloc(size_t bytes);

#endif
