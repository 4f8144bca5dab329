/* What the processes of one stand-in world share, and the faults that a test
 * may ask for. See README.md. */
#ifndef VIGIL_STANDIN_H
#define VIGIL_STANDIN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_DEVICES 4
#define MAX_PROCESSES 512
#define MAX_ALLOCATIONS 4096
#define MAX_OPENS 8192
#define NAME_BYTES 96
#define CONTEXT_BYTES (2u << 20)

#define DEVICE_NAME "vigil stand-in device"

/* Results of the driver that the stand-in itself gives. */
enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	CANNOT_MAP = 205,
	INVALID_HANDLE = 400,
	NOT_READY = 600,
	HOST_MEMORY_ALREADY_REGISTERED = 712,
	HOST_MEMORY_NOT_REGISTERED = 713,
	UNKNOWN = 999,
};

struct process {
	int pid; /* 0 is unused */
	uint64_t start;
	uint32_t contexts[MAX_DEVICES]; /* how often the primary context is held */
};

struct allocation {
	uint64_t id; /* 0 is unused; never used again */
	uint64_t bytes;
	int32_t device;
	int32_t owner; /* process that made it, -1 once it freed it or died */
	int32_t maker; /* PID, of the file's name only */
	char name[NAME_BYTES];
};

struct opened {
	uint64_t id; /* of the allocation; 0 is unused */
	int32_t process;
	uint32_t count;
};

struct state {
	uint64_t magic;
	pthread_mutex_t lock;
	int32_t devices;
	uint64_t bytes; /* of each device */
	uint64_t serial;
	struct process processes[MAX_PROCESSES];
	struct allocation allocations[MAX_ALLOCATIONS];
	struct opened opens[MAX_OPENS];
};

/* world maps the state, making it where there is none; NULL where it cannot. */
struct state *world(void);
/* lock takes the state, after the dead have been buried. */
void lock(void);
void unlock(void);
/* self is this process's number, -1 where the table is full; under the lock. */
int self(void);
/* bury takes away what dead processes had; under the lock. */
void bury(void);
/* drop frees an allocation that nobody owns or has open; under the lock. */
void drop(struct allocation *a);
/* used is what a device has given out, contexts included; under the lock. */
uint64_t used(int device);
/* used_by is what a process is charged on a device; under the lock. */
uint64_t used_by(int process, int device);
/* visible is how many devices this process sees. */
int visible(void);
void path_of(const struct allocation *a, char *path, size_t room);
void uuid_of(int device, unsigned char uuid[16]);

/* struck is what the faults say of a call on a device (-1: of none): 0, or the
 * result that it is to give. It waits where they say so. */
int struck(const char *call, int device, int *sticky);
/* next_xid finds an event that was not delivered to this process yet. */
int next_xid(int *device, uint64_t *code);

#define EXPORT __attribute__((visibility("default")))

#endif
