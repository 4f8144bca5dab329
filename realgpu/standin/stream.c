/* Streams: a thread each that carries out what was put on it, in order. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct event;

struct work {
	struct work *next;
	void *to;
	const void *from;
	size_t bytes;
	uint32_t value;       /* of a fill, where from is NULL */
	struct event *record; /* in place of a copy */
	uint64_t turn;
};

struct stream {
	struct stream *next;
	int device, ending;
	pthread_t thread;
	struct work *first, **last;
	uint64_t given, done;
};

struct event {
	int device;
	uint64_t recorded, reached; /* turns */
};

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct stream *streams;

#define ENTER()                                      \
	do {                                         \
		int refused_ = entered(__func__, 1); \
		if (refused_)                        \
			return refused_;             \
	} while (0)

static void carry_out(struct stream *s, struct work *w)
{
	if (w->record)
		return;
	int sticky = 1; /* work that fails leaves its context broken */
	int result = device_broken(s->device);
	if (!result)
		result = struck("work", s->device, &sticky);
	if (result) {
		break_device(s->device, result);
		return;
	}
	if (w->from) {
		memcpy(w->to, w->from, w->bytes);
		return;
	}
	for (uint32_t *p = w->to; (char *)p < (char *)w->to + w->bytes; p++)
		*p = w->value;
}

static void *worker(void *of)
{
	struct stream *s = of;
	pthread_mutex_lock(&streams_lock);
	for (;;) {
		while (!s->first && !s->ending)
			pthread_cond_wait(&news, &streams_lock);
		struct work *w = s->first;
		if (!w)
			break;
		s->first = w->next;
		if (!s->first)
			s->last = &s->first;
		pthread_mutex_unlock(&streams_lock);
		carry_out(s, w);
		pthread_mutex_lock(&streams_lock);
		s->done++;
		if (w->record)
			w->record->reached = w->turn;
		free(w);
		pthread_cond_broadcast(&news);
	}
	pthread_mutex_unlock(&streams_lock);
	return NULL;
}

EXPORT int cuStreamCreate(struct stream **to, unsigned flags)
{
	ENTER();
	(void)flags;
	struct stream *s = calloc(1, sizeof *s);
	if (!s)
		return OUT_OF_MEMORY;
	s->device = current_device();
	s->last = &s->first;
	pthread_mutex_lock(&streams_lock);
	if (pthread_create(&s->thread, NULL, worker, s) != 0) {
		pthread_mutex_unlock(&streams_lock);
		free(s);
		return OUT_OF_MEMORY;
	}
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&streams_lock);
	*to = s;
	return OK;
}

EXPORT int cuStreamDestroy_v2(struct stream *s)
{
	ENTER();
	pthread_mutex_lock(&streams_lock);
	for (struct stream **p = &streams; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	s->ending = 1;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&streams_lock);
	pthread_join(s->thread, NULL);
	free(s);
	return OK;
}

static int put(struct stream *s, struct work w)
{
	struct work *mine = malloc(sizeof *mine);
	if (!mine)
		return OUT_OF_MEMORY;
	*mine = w;
	mine->next = NULL;
	pthread_mutex_lock(&streams_lock);
	mine->turn = ++s->given;
	if (w.record)
		w.record->recorded = mine->turn;
	*s->last = mine;
	s->last = &mine->next;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&streams_lock);
	return OK;
}

int drain(int device)
{
	pthread_mutex_lock(&streams_lock);
	for (struct stream *s = streams; s;) {
		if (s->device == device && s->done < s->given) {
			pthread_cond_wait(&news, &streams_lock);
			s = streams; /* the list may have changed */
			continue;
		}
		s = s->next;
	}
	pthread_mutex_unlock(&streams_lock);
	return device_broken(device);
}

EXPORT int cuStreamSynchronize(struct stream *s)
{
	ENTER();
	pthread_mutex_lock(&streams_lock);
	uint64_t until = s->given;
	while (s->done < until)
		pthread_cond_wait(&news, &streams_lock);
	pthread_mutex_unlock(&streams_lock);
	return device_broken(s->device);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct stream *s)
{
	ENTER();
	if (!known_memory(from, bytes))
		return INVALID_VALUE;
	return put(s, (struct work){.to = to, .from = (void *)from, .bytes = bytes});
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct stream *s)
{
	ENTER();
	if (!known_memory(to, bytes))
		return INVALID_VALUE;
	return put(s, (struct work){.to = (void *)to, .from = from, .bytes = bytes});
}

EXPORT int cuMemsetD32Async(uint64_t to, unsigned value, size_t words, struct stream *s)
{
	ENTER();
	if (to % 4 || !known_memory(to, 4 * words))
		return INVALID_VALUE;
	return put(s, (struct work){.to = (void *)to, .bytes = 4 * words, .value = value});
}

EXPORT int cuEventCreate(struct event **to, unsigned flags)
{
	ENTER();
	(void)flags;
	struct event *e = calloc(1, sizeof *e);
	if (!e)
		return OUT_OF_MEMORY;
	e->device = current_device();
	*to = e;
	return OK;
}

EXPORT int cuEventDestroy_v2(struct event *e)
{
	ENTER();
	free(e);
	return OK;
}

EXPORT int cuEventRecord(struct event *e, struct stream *s)
{
	ENTER();
	return put(s, (struct work){.record = e});
}

EXPORT int cuEventQuery(struct event *e)
{
	ENTER();
	pthread_mutex_lock(&streams_lock);
	int ready = e->reached >= e->recorded;
	pthread_mutex_unlock(&streams_lock);
	if (!ready)
		return NOT_READY;
	return device_broken(e->device);
}

EXPORT int cuEventSynchronize(struct event *e)
{
	ENTER();
	pthread_mutex_lock(&streams_lock);
	uint64_t until = e->recorded;
	while (e->reached < until)
		pthread_cond_wait(&news, &streams_lock);
	pthread_mutex_unlock(&streams_lock);
	return device_broken(e->device);
}

/* Pinned host memory. */

struct pin {
	struct pin *next;
	void *at;
	size_t bytes;
};

static struct pin *pins;

int pinned(void *at, size_t bytes)
{
	struct pin *p = malloc(sizeof *p);
	if (!p)
		abort();
	pthread_mutex_lock(&streams_lock);
	int new = 1;
	for (struct pin *q = pins; q; q = q->next)
		new &= q->at != at;
	if (new) {
		*p = (struct pin){pins, at, bytes};
		pins = p;
	} else {
		free(p);
	}
	pthread_mutex_unlock(&streams_lock);
	return new;
}

size_t unpinned(void *at)
{
	size_t bytes = 0;
	pthread_mutex_lock(&streams_lock);
	for (struct pin **p = &pins; *p; p = &(*p)->next)
		if ((*p)->at == at) {
			struct pin *gone = *p;
			bytes = gone->bytes;
			*p = gone->next;
			free(gone);
			break;
		}
	pthread_mutex_unlock(&streams_lock);
	return bytes;
}
