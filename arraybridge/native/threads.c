/* The thread pool of the CPU kernels, and their flat copy.
 *
 * A job is a number of slices. Free threads, including the caller, take the next one. The caller
 * starts at once, and only waits for threads that have started. If another caller has the pool, it
 * does the whole job. The threads never take the GIL, which would delay them while another thread
 * computes; they live until the process ends.
 */
#include "native.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* STACK: kernels have scratch buffers there; musl's default is 128 KB, macOS's 512 KB. */
enum { LINE = 64, STACK = 4 << 20 };

typedef struct Job { /* addresses are integers */
    void (*slice)(const struct Job *, int64_t i);
    long long count, kernel, records, stride, dst, src, nbytes;
    int past_cache;
    _Alignas(LINE) atomic_llong next; /* on a separate cache line: every thread writes it */
} Job;

#define NEW_POOL {.mutex = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, \
                  .done = PTHREAD_COND_INITIALIZER}

static struct Pool {
    pthread_mutex_t mutex;
    pthread_cond_t work, done; /* a place is free; the last helper has left */
    Job *job;
    int64_t places, active; /* threads that may still join; that have joined and not left */
    int64_t size;           /* threads; only the caller that has the pool adds some */
    atomic_int busy;        /* a caller has the pool */
} pool = NEW_POOL;

static void drain(Job *job)
{
    for (int64_t i; (i = atomic_fetch_add(&job->next, 1)) < job->count;)
        job->slice(job, i);
}

/* A thread of the pool. */
static void *serve(void *unused)
{
    pthread_mutex_lock(&pool.mutex);
    for (;;) {
        while (!pool.places)
            pthread_cond_wait(&pool.work, &pool.mutex);
        pool.places--;
        pool.active++;
        Job *job = pool.job;
        pthread_mutex_unlock(&pool.mutex);
        drain(job);
        pthread_mutex_lock(&pool.mutex);
        if (!--pool.active)
            pthread_cond_signal(&pool.done);
    }
    return unused;
}

/* In a forked child, which has no threads. */
static void reset(void) { pool = (struct Pool)NEW_POOL; }

int ab_threads_setup(void)
{
    return pthread_atfork(NULL, NULL, reset) ? (PyErr_NoMemory(), -1) : 0;
}

/* Start threads until there are `size`, or as many as the system allows. */
static void grow(int64_t size)
{
    sigset_t blocked, before;
    pthread_attr_t attributes;
    pthread_t thread;
    if (pool.size >= size || pthread_attr_init(&attributes))
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&blocked); /* inherited: Python's threads handle signals */
    sigdelset(&blocked, SIGSEGV), sigdelset(&blocked, SIGBUS); /* except for faulthandler */
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    while (pool.size < size && !pthread_create(&thread, &attributes, serve, NULL))
        pool.size++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static void run(Job *job, int64_t threads)
{
    int idle = 0;
    int64_t helpers = (threads < job->count ? threads : job->count) - 1;
    if (helpers <= 0 || !atomic_compare_exchange_strong(&pool.busy, &idle, 1)) {
        drain(job);
        return;
    }
    grow(helpers);
    pthread_mutex_lock(&pool.mutex);
    pool.job = job;
    pool.places = helpers;
    pthread_mutex_unlock(&pool.mutex);
    pthread_cond_broadcast(&pool.work);
    drain(job);
    pthread_mutex_lock(&pool.mutex);
    pool.places = 0;
    while (pool.active)
        pthread_cond_wait(&pool.done, &pool.mutex);
    pthread_mutex_unlock(&pool.mutex);
    atomic_store(&pool.busy, 0);
}

static void call_kernel(const Job *job, int64_t i)
{
    ((void (*)(int64_t))(intptr_t)job->kernel)(job->records + i * job->stride);
}

/* Copy whole cache lines, bypassing the cache if there are instructions for that. */
static void stream(char *dst, const char *src, int64_t nbytes)
{
#ifdef __SSE2__
    __m128i line[LINE / sizeof(__m128i)];
    for (int64_t at = 0; at < nbytes; at += LINE) {
        memcpy(line, src + at, LINE);
#pragma GCC unroll 4
        for (size_t i = 0; i < LINE / sizeof *line; i++)
            _mm_stream_si128((__m128i *)(dst + at) + i, line[i]);
    }
    _mm_sfence(); /* make them visible before later writes */
#else
    memcpy(dst, src, nbytes);
#endif
}

/* Copy one slice of a run; all but the first start at a cache line of the destination. */
static void copy_part(const Job *job, int64_t i)
{
    char *dst = (char *)(intptr_t)job->dst;
    const char *src = (const char *)(intptr_t)job->src;
    int64_t before = -(uint64_t)job->dst % LINE, head = before < job->nbytes ? before : job->nbytes;
    int64_t lines = (job->nbytes - head) / LINE, start = head + lines * i / job->count * LINE;
    int64_t stop = head + lines * (i + 1) / job->count * LINE;
    if (job->past_cache)
        stream(dst + start, src + start, stop - start);
    else
        memcpy(dst + start, src + start, stop - start);
    if (i == 0)
        memcpy(dst, src, head);
    if (i == job->count - 1)
        memcpy(dst + stop, src + stop, job->nbytes - stop);
}

static PyObject *finish(Job *job, long long threads, int parsed)
{
    if (!parsed)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    run(job, threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *call_slices(PyObject *Py_UNUSED(module), PyObject *args)
{
    Job it = {.slice = call_kernel};
    long long threads = 0;
    int parsed = PyArg_ParseTuple(args, "LLLLL", &it.kernel, &it.records, &it.stride, &it.count,
                                  &threads);
    return finish(&it, threads, parsed);
}

static PyObject *copy_slices(PyObject *Py_UNUSED(module), PyObject *args)
{
    Job it = {.slice = copy_part};
    long long threads = 0;
    int parsed = PyArg_ParseTuple(args, "LLLpLL", &it.dst, &it.src, &it.nbytes, &it.past_cache,
                                  &it.count, &threads);
    return finish(&it, threads, parsed);
}

PyMethodDef ab_threads_methods[] = {
    {"call_slices", call_slices, METH_VARARGS, "Call a kernel once for each record."},
    {"copy_slices", copy_slices, METH_VARARGS, "Copy a run of bytes."},
    {0}};
