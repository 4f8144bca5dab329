/* The watching library: what devices and processes hold, and events. */
#define _GNU_SOURCE
#include "standin.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Results of the watching library. */
enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, GPU_IS_LOST = 15, UNKNOWN_ERROR = 999 };

struct memory {
	unsigned long long total, free, used;
};

struct process_info {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

struct event_data {
	char *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};

/* A device's handle is an address of its own. */
static char handles[MAX_DEVICES];

static int device_of(char *handle)
{
	ptrdiff_t n = handle - handles;
	return n >= 0 && n < MAX_DEVICES ? (int)n : -1;
}

#define ENTER(device)                                         \
	do {                                                  \
		int refused_ = struck(__func__, device, NULL); \
		if (refused_)                                 \
			return refused_;                      \
	} while (0)

EXPORT int nvmlInit_v2(void)
{
	if (!world())
		return UNKNOWN_ERROR;
	ENTER(-1);
	return SUCCESS;
}

EXPORT int nvmlShutdown(void) { return SUCCESS; }

EXPORT const char *nvmlErrorString(int result)
{
	switch (result) {
	case SUCCESS: return "no error";
	case TIMEOUT: return "timeout";
	case GPU_IS_LOST: return "the device is lost";
	}
	return "an error of the stand-in";
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned room)
{
	ENTER(-1);
	snprintf(text, room, "vigil stand-in");
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
	ENTER(-1);
	*count = (unsigned)visible();
	return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, char **handle)
{
	ENTER((int)index);
	if (index >= (unsigned)visible())
		return INVALID_ARGUMENT;
	*handle = &handles[index];
	return SUCCESS;
}

EXPORT int nvmlDeviceGetName(char *handle, char *text, unsigned room)
{
	ENTER(device_of(handle));
	snprintf(text, room, "%s", DEVICE_NAME);
	return SUCCESS;
}

EXPORT int nvmlDeviceGetUUID(char *handle, char *text, unsigned room)
{
	ENTER(device_of(handle));
	unsigned char u[16];
	uuid_of(device_of(handle), u);
	snprintf(text, room, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4], u[5], u[6],
		 u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
	return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo(char *handle, struct memory *m)
{
	int device = device_of(handle);
	ENTER(device);
	lock();
	m->total = world()->bytes;
	m->used = used(device);
	m->free = m->used < m->total ? m->total - m->used : 0;
	unlock();
	return SUCCESS;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(char *handle, unsigned *count, struct process_info *list)
{
	int device = device_of(handle);
	ENTER(device);
	unsigned room = *count, n = 0;
	lock();
	for (int i = 0; i < MAX_PROCESSES; i++) {
		struct process *p = &world()->processes[i];
		if (!p->pid || !p->contexts[device])
			continue;
		if (n < room && list)
			list[n] = (struct process_info){(unsigned)p->pid, used_by(i, device), 0xffffffffu, 0xffffffffu};
		n++;
	}
	unlock();
	*count = n;
	return n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

EXPORT int nvmlEventSetCreate(void **set)
{
	ENTER(-1);
	static char one;
	*set = &one;
	return SUCCESS;
}

EXPORT int nvmlEventSetFree(void *set)
{
	(void)set;
	return SUCCESS;
}

EXPORT int nvmlDeviceRegisterEvents(char *handle, unsigned long long types, void *set)
{
	ENTER(device_of(handle));
	(void)types;
	(void)set;
	return SUCCESS;
}

EXPORT int nvmlEventSetWait_v2(void *set, struct event_data *data, unsigned milliseconds)
{
	(void)set;
	for (unsigned waited = 0;; waited += 10) {
		int device;
		uint64_t code;
		if (next_xid(&device, &code)) {
			*data = (struct event_data){&handles[device], 8, code, 0xffffffffu, 0xffffffffu};
			return SUCCESS;
		}
		if (waited >= milliseconds)
			return TIMEOUT;
		struct timespec t = {0, 10 * 1000000};
		nanosleep(&t, NULL);
	}
}
