/* The state that the processes share, the burial of those that died, and the
 * file of faults. */
#define _GNU_SOURCE
#include "standin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x76696769006c3031ull
#define FOLDER "/dev/shm/"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct state *shared;

static void state_path(char *path, size_t room)
{
	const char *name = getenv("VIGIL_STANDIN_STATE");
	if (name && *name)
		snprintf(path, room, "%s", name);
	else
		snprintf(path, room, FOLDER "vigil-standin-%u", (unsigned)getuid());
}

static uint64_t number(const char *name, uint64_t fallback)
{
	const char *text = getenv(name);
	if (!text || !*text)
		return fallback;
	return strtoull(text, NULL, 10);
}

static void make(struct state *s)
{
	pthread_mutexattr_t how;
	pthread_mutexattr_init(&how);
	pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&s->lock, &how);
	pthread_mutexattr_destroy(&how);
	uint64_t devices = number("VIGIL_STANDIN_DEVICES", 2);
	s->devices = devices < 1 ? 1 : devices > MAX_DEVICES ? MAX_DEVICES : (int32_t)devices;
	s->bytes = number("VIGIL_STANDIN_BYTES", 8ull << 30);
	s->magic = MAGIC;
}

static void open_state(void)
{
	char path[512];
	state_path(path, sizeof path);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	flock(fd, LOCK_EX); /* one process makes it */
	struct stat st;
	if (fstat(fd, &st) == 0 && (st.st_size >= (off_t)sizeof(struct state) || ftruncate(fd, sizeof(struct state)) == 0)) {
		void *p = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED) {
			shared = p;
			if (shared->magic != MAGIC)
				make(shared);
		}
	}
	flock(fd, LOCK_UN);
	close(fd);
}

struct state *world(void)
{
	pthread_once(&once, open_state);
	return shared;
}

/* started is when a process began, 0 where it is dead or a zombie. */
static uint64_t started(int pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	char *at = strrchr(text, ')'); /* the name may hold anything */
	if (!at || at[1] == 0 || at[2] == 'Z' || at[2] == 'X')
		return 0;
	at += 2;
	for (int field = 3; field < 22 && at; field++) {
		at = strchr(at, ' ');
		if (at)
			at++;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

void lock(void)
{
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&shared->lock); /* killed in mid-call; the tables are of plain words */
	bury();
}

void unlock(void)
{
	pthread_mutex_unlock(&shared->lock);
}

int self(void)
{
	static int mine = -1;
	static int mine_pid;
	int pid = getpid();
	if (mine >= 0 && mine_pid == pid && shared->processes[mine].pid == pid)
		return mine;
	for (int i = 0; i < MAX_PROCESSES; i++) {
		struct process *p = &shared->processes[i];
		if (p->pid == 0) {
			memset(p, 0, sizeof *p);
			p->start = started(pid);
			p->pid = pid;
			mine = i;
			mine_pid = pid;
			return i;
		}
	}
	return -1;
}

void path_of(const struct allocation *a, char *path, size_t room)
{
	snprintf(path, room, FOLDER "%s", a->name);
}

void drop(struct allocation *a)
{
	if (a->id == 0 || a->owner >= 0)
		return;
	for (int i = 0; i < MAX_OPENS; i++)
		if (shared->opens[i].id == a->id)
			return;
	char path[NAME_BYTES + 16];
	path_of(a, path, sizeof path);
	unlink(path);
	a->id = 0;
}

void bury(void)
{
	int died = 0;
	for (int i = 0; i < MAX_PROCESSES; i++) {
		struct process *p = &shared->processes[i];
		if (p->pid == 0)
			continue;
		uint64_t since = started(p->pid);
		if (since != 0 && since == p->start)
			continue;
		for (int k = 0; k < MAX_ALLOCATIONS; k++)
			if (shared->allocations[k].id && shared->allocations[k].owner == i)
				shared->allocations[k].owner = -1;
		for (int k = 0; k < MAX_OPENS; k++)
			if (shared->opens[k].id && shared->opens[k].process == i)
				shared->opens[k].id = 0;
		memset(p, 0, sizeof *p);
		died = 1;
	}
	if (died)
		for (int k = 0; k < MAX_ALLOCATIONS; k++)
			drop(&shared->allocations[k]);
}

uint64_t used(int device)
{
	uint64_t sum = 0;
	for (int i = 0; i < MAX_ALLOCATIONS; i++)
		if (shared->allocations[i].id && shared->allocations[i].device == device)
			sum += shared->allocations[i].bytes;
	for (int i = 0; i < MAX_PROCESSES; i++)
		if (shared->processes[i].pid && shared->processes[i].contexts[device])
			sum += CONTEXT_BYTES;
	return sum;
}

uint64_t used_by(int process, int device)
{
	uint64_t sum = shared->processes[process].contexts[device] ? CONTEXT_BYTES : 0;
	for (int i = 0; i < MAX_ALLOCATIONS; i++) {
		struct allocation *a = &shared->allocations[i];
		if (!a->id || a->device != device)
			continue;
		if (a->owner == process) {
			sum += a->bytes;
			continue;
		}
		for (int k = 0; k < MAX_OPENS; k++)
			if (shared->opens[k].id == a->id && shared->opens[k].process == process)
				sum += a->bytes;
	}
	return sum;
}

int visible(void)
{
	uint64_t n = number("VIGIL_STANDIN_VISIBLE", (uint64_t)shared->devices);
	return n < (uint64_t)shared->devices ? (int)n : shared->devices;
}

void uuid_of(int device, unsigned char uuid[16])
{
	static const unsigned char base[16] = {0x76, 0x69, 0x67, 0x69, 0x6c, 0x2d, 0x73, 0x74, 0x61, 0x6e, 0x64, 0x2d, 0x69, 0x6e, 0, 0};
	memcpy(uuid, base, 16);
	uuid[15] = (unsigned char)device;
}

/* The file of faults. */

#define MAX_FAULTS 64
#define LINE_BYTES 200

struct fault {
	char line[LINE_BYTES];
	char call[64];
	int device, pid, hang, sticky, result;
	long after, count, delay;
	unsigned long code;
	long seen; /* calls that it was about, in this process */
	int present;
};

static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[MAX_FAULTS];
static int faults_count;
static struct stat faults_at;
static int faults_read;

static void parse(struct fault *f, const char *line)
{
	memset(f, 0, sizeof *f);
	snprintf(f->line, sizeof f->line, "%s", line);
	f->device = f->pid = -1;
	char text[LINE_BYTES], *rest = text, *word;
	snprintf(text, sizeof text, "%s", line);
	for (int n = 0; (word = strsep(&rest, " \t")); n++) {
		char *value = strchr(word, '=');
		if (value)
			*value++ = 0;
		if (n == 0)
			snprintf(f->call, sizeof f->call, "%s", word);
		else if (!strcmp(word, "hang"))
			f->hang = 1;
		else if (!strcmp(word, "sticky"))
			f->sticky = 1;
		else if (!value)
			continue;
		else if (!strcmp(word, "device"))
			f->device = atoi(value);
		else if (!strcmp(word, "pid"))
			f->pid = atoi(value);
		else if (!strcmp(word, "after"))
			f->after = atol(value);
		else if (!strcmp(word, "count"))
			f->count = atol(value);
		else if (!strcmp(word, "delay"))
			f->delay = atol(value);
		else if (!strcmp(word, "result"))
			f->result = atoi(value);
		else if (!strcmp(word, "code"))
			f->code = strtoul(value, NULL, 10);
	}
}

/* refresh reads the file again where it changed; lines that stayed keep their
 * counts. Under faults_lock. */
static void refresh(void)
{
	char path[600];
	const char *name = getenv("VIGIL_STANDIN_FAULTS");
	if (name && *name) {
		snprintf(path, sizeof path, "%s", name);
	} else {
		char state[512];
		state_path(state, sizeof state);
		snprintf(path, sizeof path, "%s.faults", state);
	}
	struct stat st;
	if (stat(path, &st) != 0) {
		faults_count = 0;
		faults_read = 0;
		return;
	}
	if (faults_read && st.st_ino == faults_at.st_ino && st.st_size == faults_at.st_size &&
	    st.st_mtim.tv_sec == faults_at.st_mtim.tv_sec && st.st_mtim.tv_nsec == faults_at.st_mtim.tv_nsec)
		return;
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	for (int i = 0; i < faults_count; i++)
		faults[i].present = 0;
	char line[LINE_BYTES];
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\r\n")] = 0;
		if (line[0] == 0 || line[0] == '#')
			continue;
		int i = 0;
		while (i < faults_count && strcmp(faults[i].line, line))
			i++;
		if (i == faults_count) {
			if (faults_count == MAX_FAULTS)
				continue;
			parse(&faults[faults_count++], line);
		}
		faults[i].present = 1;
	}
	fclose(file);
	int kept = 0;
	for (int i = 0; i < faults_count; i++)
		if (faults[i].present)
			faults[kept++] = faults[i];
	faults_count = kept;
	faults_at = st;
	faults_read = 1;
}

static void rest(long milliseconds)
{
	struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static int stands(const char *line)
{
	pthread_mutex_lock(&faults_lock);
	refresh();
	int found = 0;
	for (int i = 0; i < faults_count; i++)
		found |= !strcmp(faults[i].line, line);
	pthread_mutex_unlock(&faults_lock);
	return found;
}

int struck(const char *call, int device, int *sticky)
{
	char hang[LINE_BYTES] = "";
	long delay = 0;
	int result = 0;
	pthread_mutex_lock(&faults_lock);
	refresh();
	for (int i = 0; i < faults_count; i++) {
		struct fault *f = &faults[i];
		if (strcmp(f->call, call) || (f->device >= 0 && f->device != device) || (f->pid >= 0 && f->pid != getpid()))
			continue;
		f->seen++;
		if (f->seen <= f->after || (f->count > 0 && f->seen > f->after + f->count))
			continue;
		delay += f->delay;
		if (f->hang)
			snprintf(hang, sizeof hang, "%s", f->line);
		if (f->result) {
			result = f->result;
			if (sticky)
				*sticky |= f->sticky;
		}
	}
	pthread_mutex_unlock(&faults_lock);
	if (delay)
		rest(delay);
	while (hang[0] && stands(hang))
		rest(5);
	return result;
}

int next_xid(int *device, uint64_t *code)
{
	int found = 0;
	pthread_mutex_lock(&faults_lock);
	refresh();
	for (int i = 0; i < faults_count && !found; i++) {
		struct fault *f = &faults[i];
		if (strcmp(f->call, "xid") || f->seen)
			continue;
		f->seen = 1;
		*device = f->device < 0 ? 0 : f->device;
		*code = f->code;
		found = 1;
	}
	pthread_mutex_unlock(&faults_lock);
	return found;
}
