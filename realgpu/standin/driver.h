/* What the two halves of the stand-in driver know of each other. */
#ifndef VIGIL_STANDIN_DRIVER_H
#define VIGIL_STANDIN_DRIVER_H

#include "standin.h"

/* entered begins a call: 0, or what it answers at once. */
int entered(const char *call, int needs_context);
int current_device(void);
int device_broken(int device);
void break_device(int device, int result);
/* known_memory reports whether device memory lies there. */
int known_memory(uint64_t address, size_t bytes);
/* drain waits for what is on the streams of a device. */
int drain(int device);
/* pinned and unpinned remember host memory that is pinned; 0 where it was, or
 * was not. */
int pinned(void *at, size_t bytes);
size_t unpinned(void *at);

#endif
