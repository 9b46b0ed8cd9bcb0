/* The thread pool of the CPU kernels, and their flat copy.
 *
 * A job is a number of slices, ranges of a nest's blocks (kernels/cpu/loops.py). Free threads,
 * including the caller, take the next one. The caller starts at once, and only waits for threads
 * that have started. If another caller has the pool, it does the whole job. The threads never take
 * the GIL, which would delay them while another thread computes; they live until the process ends.
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

/* A free thread takes the next one, so that a late or slow thread costs little. */
enum { SLICES_PER_THREAD = 4 };

typedef void Nest(int64_t record, int64_t dst, int64_t src, int64_t start, int64_t stop);

typedef struct Job {
    long long nest, record, dst, src, blocks, count; /* addresses are integers */
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
    Nest *nest = (Nest *)(intptr_t)job->nest;
    int64_t each = job->blocks / job->count, more = job->blocks % job->count;
    for (int64_t i; (i = atomic_fetch_add(&job->next, 1)) < job->count;) {
        int64_t start = i * each + (i < more ? i : more);
        nest(job->record, job->dst, job->src, start, start + each + (i < more));
    }
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

/* The flat copy, as a nest whose blocks are lines of the destination, after a part of one: a record
 * has the bytes, and whether to bypass the cache. */
static void copy(int64_t record, int64_t to, int64_t from, int64_t start, int64_t stop)
{
    const int64_t *run = (const int64_t *)(intptr_t)record;
    int64_t head = -(uint64_t)to % LINE, at = start ? start * LINE + head : 0;
    int64_t end = stop * LINE + head < run[0] ? stop * LINE + head : run[0];
    char *dst = (char *)(intptr_t)to;
    const char *src = (const char *)(intptr_t)from;
    if (at >= end)
        return;
#ifdef __SSE2__
    if (run[1]) {
        int64_t before = start ? 0 : head < end ? head : end;
        memcpy(dst + at, src + at, before);
        at += before;
        for (int64_t size = sizeof(__m128i); at + size <= end; at += size)
            _mm_stream_si128((__m128i *)(dst + at), _mm_loadu_si128((const __m128i *)(src + at)));
        _mm_sfence(); /* make them visible before later writes */
    }
#endif
    memcpy(dst + at, src + at, end - at);
}

void ab_run_way(const int64_t *way, int64_t dst, int64_t src, int64_t threads)
{
    int64_t most = threads > 1 ? SLICES_PER_THREAD * threads : 1;
    Job job = {.nest = way[WAY_NEST], .record = (intptr_t)(way + WAY_RECORD), .blocks = way[WAY_BLOCKS],
               .dst = dst + way[WAY_TO], .src = src + way[WAY_FROM],
               .count = most < way[WAY_SLICES] ? most : way[WAY_SLICES]};
    if (job.count > job.blocks)
        job.count = job.blocks;
    if (!job.nest) {
        int64_t nbytes = way[WAY_RECORD], apart = dst < src ? src - dst : dst - src;
        if (job.count == 1 || apart < nbytes) {
            memmove((void *)(intptr_t)dst, (void *)(intptr_t)src, nbytes);
            return;
        }
        job.nest = (intptr_t)copy;
    }
    if (job.count > 0)
        run(&job, threads);
}

static PyObject *run_way(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *way;
    long long dst, src, threads;
    if (!PyArg_ParseTuple(args, "SLLL", &way, &dst, &src, &threads))
        return NULL;
    const int64_t *words = (const int64_t *)PyBytes_AsString(way);
    Py_BEGIN_ALLOW_THREADS
    ab_run_way(words, dst, src, threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* A launch of cuda_launcher: put a kernel on a stream, and return the driver's error code; -1 if the
   context is not current in this thread, or that is unknown. Threads may call at once. */
enum { LAUNCH, CURRENT, CONTEXT, FUNCTION, GRID, THREADS, FIRST }; /* of the prepared numbers */
static PyObject *cuda_launch(PyObject *self, PyObject *const *values, Py_ssize_t given)
{
    typedef unsigned u;
    int (*launch)(void *, u, u, u, u, u, u, u, void *, void **, void **), (*current)(void **), code;
    const int64_t *prepared = (const int64_t *)PyBytes_AsString(self);
    Py_ssize_t n = PyBytes_Size(self) / (Py_ssize_t)sizeof *prepared - FIRST;
    int64_t words[512]; /* an int32 is the first half of its own; CUDA takes 4 KB */
    void *pointers[512], *now = NULL;
    if (given != 3 || n < 2 || n > 512)
        return PyErr_Format(PyExc_TypeError, "expected dst, src, a stream and 2 to 512 numbers");
    for (Py_ssize_t i = 0; i < n; pointers[i] = words + i, i++)
        words[i] = prepared[FIRST + i];
    words[0] = PyLong_AsLongLong(values[0]), words[1] = PyLong_AsLongLong(values[1]);
    void *stream = PyLong_AsVoidPtr(values[2]);
    if (PyErr_Occurred())
        return NULL;
    memcpy(&launch, prepared + LAUNCH, sizeof launch);
    memcpy(&current, prepared + CURRENT, sizeof current);
    Py_BEGIN_ALLOW_THREADS
    if (current(&now) || (int64_t)(intptr_t)now != prepared[CONTEXT])
        code = -1;
    else
        code = launch((void *)(intptr_t)prepared[FUNCTION], (u)prepared[GRID], 1, 1,
                      (u)prepared[THREADS], 1, 1, 0, stream, pointers, NULL);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(code);
}

static PyObject *cuda_launcher(PyObject *module, PyObject *prepared)
{
    static PyMethodDef function = {"cuda_launch", (PyCFunction)(void (*)(void))cuda_launch,
                                   METH_FASTCALL, NULL};
    if (!PyBytes_Check(prepared))
        return PyErr_Format(PyExc_TypeError, "expected bytes, got %R", Py_TYPE(prepared));
    return PyCFunction_NewEx(&function, prepared, NULL);
}

PyMethodDef ab_threads_methods[] = {
    {"cuda_launcher", cuda_launcher, METH_O,
     "cuda_launcher(bytes of int64: functions, context, kernel, sizes, arguments): its launches"},
    {"run_way", run_way, METH_VARARGS, "run_way(way, dst, src, threads): see cpu/copying.py."}, {0}};
