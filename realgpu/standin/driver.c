/* Devices, primary contexts, memory and its handles. */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int initialised;
static __thread int current = -1; /* device of this thread's context */
static int broken[MAX_DEVICES];   /* the sticky result of this process's context */

/* A context's handle is the address of its device's entry here. */
static char contexts[MAX_DEVICES];

int current_device(void) { return current; }

int device_broken(int device) { return __atomic_load_n(&broken[device], __ATOMIC_ACQUIRE); }

void break_device(int device, int result)
{
	int none = 0;
	if (device >= 0 && device < MAX_DEVICES)
		__atomic_compare_exchange_n(&broken[device], &none, result, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

int entered(const char *call, int needs_context)
{
	if (!initialised)
		return NOT_INITIALIZED;
	if (needs_context && current < 0)
		return INVALID_CONTEXT;
	int device = needs_context ? current : -1;
	if (device >= 0 && device_broken(device))
		return device_broken(device);
	int sticky = 0;
	int result = struck(call, device, &sticky);
	if (result && sticky)
		break_device(device, result);
	return result;
}

#define ENTER(needs_context)                                    \
	do {                                                    \
		int refused_ = entered(__func__, needs_context); \
		if (refused_)                                   \
			return refused_;                        \
	} while (0)

/* Memory of this process: what it made and what it opened. */
struct place {
	struct place *next;
	char *at;
	uint64_t bytes, id;
	int device, mine;
	uint32_t count; /* opens */
};

static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places;

static struct place *place_of(uint64_t address)
{
	for (struct place *p = places; p; p = p->next)
		if (address >= (uint64_t)p->at && address - (uint64_t)p->at < p->bytes)
			return p;
	return NULL;
}

static void forget(struct place *gone)
{
	for (struct place **p = &places; *p; p = &(*p)->next)
		if (*p == gone) {
			*p = gone->next;
			munmap(gone->at, gone->bytes);
			free(gone);
			return;
		}
}

int known_memory(uint64_t address, size_t bytes)
{
	pthread_mutex_lock(&places_lock);
	struct place *p = place_of(address);
	int known = p && bytes <= p->bytes - (address - (uint64_t)p->at);
	pthread_mutex_unlock(&places_lock);
	return known;
}

/* Devices. */

EXPORT int cuInit(unsigned flags)
{
	if (flags)
		return INVALID_VALUE;
	if (!world())
		return UNKNOWN;
	int result = struck("cuInit", -1, NULL);
	if (result)
		return result;
	if (visible() == 0)
		return NO_DEVICE;
	initialised = 1;
	return OK;
}

EXPORT int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return struck(__func__, -1, NULL);
}

EXPORT int cuDeviceGetCount(int *count)
{
	ENTER(0);
	*count = visible();
	return OK;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	ENTER(0);
	if (ordinal < 0 || ordinal >= visible())
		return INVALID_DEVICE;
	*device = ordinal;
	return OK;
}

EXPORT int cuDeviceGetName(char *name, int room, int device)
{
	ENTER(0);
	(void)device;
	snprintf(name, (size_t)room, "%s", DEVICE_NAME);
	return OK;
}

EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
	ENTER(0);
	if (device < 0 || device >= visible())
		return INVALID_DEVICE;
	uuid_of(device, uuid);
	return OK;
}

EXPORT int cuDeviceGetPCIBusId(char *id, int room, int device)
{
	ENTER(0);
	snprintf(id, (size_t)room, "0000:00:%02x.0", device);
	return OK;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	ENTER(0);
	(void)device;
	*bytes = world()->bytes;
	return OK;
}

/* Contexts. */

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
	ENTER(0);
	if (device < 0 || device >= visible())
		return INVALID_DEVICE;
	lock();
	int me = self();
	if (me >= 0)
		world()->processes[me].contexts[device]++;
	unlock();
	*context = &contexts[device];
	return me < 0 ? UNKNOWN : OK;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	ENTER(0);
	lock();
	int me = self();
	int held = me >= 0 && world()->processes[me].contexts[device] > 0;
	if (held)
		world()->processes[me].contexts[device]--;
	unlock();
	return held ? OK : INVALID_CONTEXT;
}

EXPORT int cuCtxSetCurrent(void *context)
{
	ENTER(0);
	if (!context) {
		current = -1;
		return OK;
	}
	ptrdiff_t device = (char *)context - contexts;
	if (device < 0 || device >= MAX_DEVICES)
		return INVALID_CONTEXT;
	current = (int)device;
	return OK;
}

EXPORT int cuCtxSynchronize(void)
{
	ENTER(1);
	return drain(current);
}

/* Memory. */

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	ENTER(1);
	lock();
	uint64_t gone = used(current);
	unlock();
	*total = world()->bytes;
	*free_bytes = gone < *total ? *total - gone : 0;
	return OK;
}

static int attach(const struct allocation *a, char **at, int make)
{
	char path[NAME_BYTES + 16];
	path_of(a, path, sizeof path);
	int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_EXCL : 0), 0600);
	if (fd < 0)
		return -1;
	void *p = MAP_FAILED;
	if (!make || posix_fallocate(fd, 0, (off_t)a->bytes) == 0)
		p = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED) {
		if (make)
			unlink(path);
		return -1;
	}
	*at = p;
	return 0;
}

static struct place *remember(char *at, const struct allocation *a, int mine)
{
	struct place *p = calloc(1, sizeof *p);
	if (!p)
		abort();
	*p = (struct place){.next = places, .at = at, .bytes = a->bytes, .id = a->id, .device = a->device, .mine = mine, .count = !mine};
	places = p;
	return p;
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	ENTER(1);
	if (bytes == 0)
		return INVALID_VALUE;
	struct stat space;
	uint64_t namespace = stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
	lock();
	struct state *s = world();
	int result = OUT_OF_MEMORY, me = self();
	struct allocation *a = NULL;
	for (int i = 0; i < MAX_ALLOCATIONS && !a && me >= 0; i++)
		if (s->allocations[i].id == 0)
			a = &s->allocations[i];
	uint64_t gone = used(current);
	if (a && bytes <= s->bytes && gone <= s->bytes - bytes) {
		a->bytes = bytes;
		a->device = current;
		a->owner = me;
		a->maker = getpid();
		uint64_t id = ++s->serial;
		snprintf(a->name, sizeof a->name, "vigil-standin_%llu_%d_%llu_%llu", (unsigned long long)namespace, a->maker,
			 (unsigned long long)s->processes[me].start, (unsigned long long)id);
		char *at;
		if (attach(a, &at, 1) == 0) {
			a->id = id;
			pthread_mutex_lock(&places_lock);
			remember(at, a, 1);
			pthread_mutex_unlock(&places_lock);
			*address = (uint64_t)at;
			result = OK;
		}
	}
	unlock();
	return result;
}

static struct allocation *numbered(uint64_t id)
{
	struct state *s = world();
	for (int i = 0; i < MAX_ALLOCATIONS; i++)
		if (id && s->allocations[i].id == id)
			return &s->allocations[i];
	return NULL;
}

EXPORT int cuMemFree_v2(uint64_t address)
{
	ENTER(1);
	int result = INVALID_VALUE;
	lock();
	pthread_mutex_lock(&places_lock);
	struct place *p = place_of(address);
	if (p && p->mine && (uint64_t)p->at == address) {
		struct allocation *a = numbered(p->id);
		if (a) {
			a->owner = -1;
			drop(a);
		}
		forget(p);
		result = OK;
	}
	pthread_mutex_unlock(&places_lock);
	unlock();
	return result;
}

EXPORT int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address)
{
	ENTER(1);
	pthread_mutex_lock(&places_lock);
	struct place *p = place_of(address);
	if (p && base)
		*base = (uint64_t)p->at;
	if (p && bytes)
		*bytes = p->bytes;
	pthread_mutex_unlock(&places_lock);
	return p ? OK : INVALID_VALUE;
}

EXPORT int cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	ENTER(1);
	(void)flags;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return OUT_OF_MEMORY;
	pinned(p, bytes);
	*at = p;
	return OK;
}

EXPORT int cuMemFreeHost(void *at)
{
	ENTER(1);
	size_t bytes = unpinned(at);
	if (!bytes)
		return INVALID_VALUE;
	munmap(at, bytes);
	return OK;
}

/* Memory that others made and that is pinned where it lies. */

EXPORT int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
	ENTER(1);
	(void)flags;
	if (!at || !bytes)
		return INVALID_VALUE;
	return pinned(at, bytes) ? OK : HOST_MEMORY_ALREADY_REGISTERED;
}

EXPORT int cuMemHostUnregister(void *at)
{
	ENTER(1);
	return unpinned(at) ? OK : HOST_MEMORY_NOT_REGISTERED;
}

/* Handles between processes. */

struct handle {
	char magic[8];
	uint64_t id;
	int32_t device, pid;
	char rest[40];
};

_Static_assert(sizeof(struct handle) == 64, "a handle has 64 bytes");

static const char handle_magic[8] = "vigilSI";

EXPORT int cuIpcGetMemHandle(struct handle *handle, uint64_t address)
{
	ENTER(1);
	int result = INVALID_VALUE;
	pthread_mutex_lock(&places_lock);
	struct place *p = place_of(address);
	if (p && p->mine) {
		memset(handle, 0, sizeof *handle);
		memcpy(handle->magic, handle_magic, sizeof handle_magic);
		handle->id = p->id;
		handle->device = p->device;
		handle->pid = getpid();
		result = OK;
	}
	pthread_mutex_unlock(&places_lock);
	return result;
}

EXPORT int cuIpcOpenMemHandle_v2(uint64_t *address, struct handle handle, unsigned flags)
{
	ENTER(1);
	if (flags != 1 || memcmp(handle.magic, handle_magic, sizeof handle_magic))
		return INVALID_VALUE;
	int result = INVALID_VALUE;
	lock();
	pthread_mutex_lock(&places_lock);
	int me = self();
	struct allocation *a = numbered(handle.id);
	struct place *p = NULL;
	for (struct place *q = places; q && a; q = q->next)
		if (q->id == handle.id)
			p = q;
	if (a && me >= 0 && a->owner == me) {
		result = INVALID_CONTEXT;
	} else if (p) {
		p->count++;
		*address = (uint64_t)p->at;
		result = OK;
	} else if (a && me >= 0) {
		struct opened *o = NULL;
		for (int i = 0; i < MAX_OPENS && !o; i++)
			if (world()->opens[i].id == 0)
				o = &world()->opens[i];
		char *at;
		result = CANNOT_MAP;
		if (o && attach(a, &at, 0) == 0) {
			*o = (struct opened){a->id, me, 1};
			remember(at, a, 0);
			*address = (uint64_t)at;
			result = OK;
		}
	}
	pthread_mutex_unlock(&places_lock);
	unlock();
	return result;
}

EXPORT int cuIpcCloseMemHandle(uint64_t address)
{
	ENTER(1);
	int result = drain(current); /* what is under way may use it */
	if (result)
		return result;
	result = INVALID_VALUE;
	lock();
	pthread_mutex_lock(&places_lock);
	struct place *p = place_of(address);
	if (p && !p->mine && (uint64_t)p->at == address) {
		result = OK;
		if (--p->count == 0) {
			int me = self();
			for (int i = 0; i < MAX_OPENS; i++)
				if (world()->opens[i].id == p->id && world()->opens[i].process == me)
					world()->opens[i].id = 0;
			struct allocation *a = numbered(p->id);
			if (a)
				drop(a);
			forget(p);
		}
	}
	pthread_mutex_unlock(&places_lock);
	unlock();
	return result;
}
