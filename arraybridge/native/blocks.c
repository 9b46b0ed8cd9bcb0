/* Memory for results, aligned to 64 bytes; that of dropped results is kept for later ones.

   Fresh memory costs more than the copy that fills it, because the system clears every page. So
   blocks from LEAST bytes on are kept, up to a limit, in lists by size: eight classes to each power
   of two. The owner of a block is a capsule, so whoever drops the last view gives the block back.
   What stays unused is given up: blocks while TURNS others were handed out, the oldest ones beyond
   the limit, and beyond PLAIN bytes the pages, should the system need them. */
#include "native.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
    ALIGNMENT = 64, LEAST_BITS = 16, LEAST = AB_LEAST_BLOCK, MOST_BITS = 47,
    HUGE = 2 << 20, PAGE = 64 << 10, PLAIN = 64 << 20, TURNS = 4096,
    CLASSES = 8 * (MOST_BITS - LEAST_BITS) + 1
};

typedef struct Block {
    struct Block *older, *newer; /* among all idle blocks */
    struct Block *below, *above; /* in the class, the last dropped on top */
    void *memory;
    size_t size;
    int class;
    unsigned turn;
} Block;

static struct {
    pthread_mutex_t mutex;
    Block *top[CLASSES], *oldest, *newest;
    size_t idle, limit;
    unsigned turn; /* blocks handed out */
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static size_t size_of(int class) { return (size_t)(8 + class % 8) << (class / 8 + LEAST_BITS - 3); }

static int class_of(size_t nbytes)
{
    int bits = 63 - __builtin_clzll(nbytes);
    size_t beyond = nbytes - ((size_t)1 << bits), step = (size_t)1 << (bits - 3);
    return 8 * (bits - LEAST_BITS) + (int)((beyond + step - 1) / step);
}

static void take_out(Block *self)
{
    *(self->older ? &self->older->newer : &pool.oldest) = self->newer;
    *(self->newer ? &self->newer->older : &pool.newest) = self->older;
    *(self->above ? &self->above->below : &pool.top[self->class]) = self->below;
    if (self->below)
        self->below->above = self->above;
    pool.idle -= self->size;
}

static void put_in(Block *self)
{
    self->turn = pool.turn;
    self->older = pool.newest, self->newer = NULL;
    *(pool.newest ? &pool.newest->newer : &pool.oldest) = self;
    pool.newest = self;
    self->below = pool.top[self->class], self->above = NULL;
    if (self->below)
        self->below->above = self;
    pool.top[self->class] = self;
    pool.idle += self->size;
}

/* Memory for huge pages is the system's own, so that it goes back as soon as it is freed. */
static void *allocated(size_t size)
{
    void *memory;
    if (size < HUGE)
        return posix_memalign(&memory, ALIGNMENT, size) ? NULL : memory;
    char *start = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)start % HUGE;
    if (before)
        munmap(start, before);
    start += before;
    munmap(start + size, HUGE - before);
#ifdef MADV_HUGEPAGE
    madvise(start, size, MADV_HUGEPAGE);
#endif
    return start;
}

static void free_block(Block *self)
{
    if (self->size < HUGE)
        free(self->memory);
    else
        munmap(self->memory, self->size);
    free(self);
}

/* Free the oldest blocks until at most `most` bytes are idle; return the bytes freed. */
static size_t shrink(size_t most)
{
    size_t freed = 0;
    for (Block *self; pool.idle > most && (self = pool.oldest); free_block(self)) {
        take_out(self);
        freed += self->size;
    }
    return freed;
}

static void drop(PyObject *capsule)
{
    Block *self = PyCapsule_GetPointer(capsule, "arraybridge.block");
    pthread_mutex_lock(&pool.mutex);
    if (self->size < LEAST || self->size > pool.limit) {
        pthread_mutex_unlock(&pool.mutex);
        free_block(self);
        return;
    }
#ifdef MADV_FREE
    if (pool.idle > PLAIN && self->size > 2 * PAGE) {
        uintptr_t start = -(-(uintptr_t)self->memory & -PAGE);
        madvise((void *)start, (self->size - PAGE) & -PAGE, MADV_FREE);
    }
#endif
    put_in(self);
    shrink(pool.limit);
    for (int i = 0; i < 2 && pool.oldest && pool.turn - pool.oldest->turn > TURNS; i++)
        self = pool.oldest, take_out(self), free_block(self);
    pthread_mutex_unlock(&pool.mutex);
}

static Block *fresh_block(size_t size, int class)
{
    Block *self = malloc(sizeof *self);
    if (!self)
        return NULL;
    *self = (Block){.size = size, .class = class};
    if (!(self->memory = allocated(size)))
        return free(self), NULL;
    return self;
}

static PyObject *asked; /* returns the limit; NULL once that is known */

static int limit_by(PyObject *number)
{
    size_t limit = number ? PyLong_AsSize_t(number) : 0;
    if (!number || (limit == (size_t)-1 && PyErr_Occurred()))
        return -1;
    Py_CLEAR(asked);
    pthread_mutex_lock(&pool.mutex);
    pool.limit = limit;
    shrink(limit);
    pthread_mutex_unlock(&pool.mutex);
    return 0;
}

/* Return the owner of a block for a result. `fresh`: as far as is known, it has no pages yet. */
PyObject *ab_block(size_t nbytes, void **start, int *fresh)
{
    int class = 0;
    size_t size = (nbytes + ALIGNMENT) & -ALIGNMENT;
    Block *self = NULL;
    if (nbytes >= LEAST && nbytes <= (size_t)1 << MOST_BITS) {
        PyObject *limit = asked ? PyObject_CallObject(asked, NULL) : NULL;
        int failed = asked && limit_by(limit);
        Py_XDECREF(limit);
        if (failed)
            return NULL;
        size = size_of(class = class_of(nbytes));
        pthread_mutex_lock(&pool.mutex);
        pool.turn++;
        if ((self = pool.top[class]))
            take_out(self);
        pthread_mutex_unlock(&pool.mutex);
    }
    *fresh = !self;
    if (!self && nbytes <= (size_t)1 << MOST_BITS && !(self = fresh_block(size, class))) {
        pthread_mutex_lock(&pool.mutex);
        size_t freed = shrink(0);
        pthread_mutex_unlock(&pool.mutex);
        self = freed ? fresh_block(size, class) : NULL;
    }
    if (!self)
        return PyErr_Format(PyExc_MemoryError, "cannot allocate %zu bytes", nbytes);
    *start = self->memory;
    PyObject *owner = PyCapsule_New(self, "arraybridge.block", drop);
    if (!owner)
        free_block(self);
    return owner;
}

/* A child gives up what is idle: to write there would copy the parent's pages. */
static void lock(void) { pthread_mutex_lock(&pool.mutex); }
static void unlock(void) { pthread_mutex_unlock(&pool.mutex); }
static void give_up(void)
{
    pthread_mutex_init(&pool.mutex, NULL);
    shrink(0);
}

int ab_blocks_setup(void)
{
    return pthread_atfork(lock, unlock, give_up) ? (PyErr_NoMemory(), -1) : 0;
}

static PyObject *new_block(PyObject *Py_UNUSED(module), PyObject *nbytes)
{
    void *start;
    int fresh;
    size_t size = PyLong_AsSize_t(nbytes);
    if (size == (size_t)-1 && PyErr_Occurred())
        return NULL;
    PyObject *owner = ab_block(size, &start, &fresh);
    return owner ? Py_BuildValue("NKO", owner, (unsigned long long)(uintptr_t)start,
                                 fresh ? Py_True : Py_False)
                 : NULL;
}

static PyObject *limit_blocks(PyObject *Py_UNUSED(module), PyObject *limit)
{
    if (PyLong_Check(limit)) {
        if (limit_by(limit))
            return NULL;
    } else {
        Py_XDECREF(asked);
        asked = Py_NewRef(limit);
    }
    Py_RETURN_NONE;
}

static PyObject *empty_blocks(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lock();
    size_t freed = shrink(0);
    unlock();
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return PyLong_FromSize_t(freed);
}

static PyObject *idle_bytes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lock();
    size_t idle = pool.idle;
    unlock();
    return PyLong_FromSize_t(idle);
}

PyMethodDef ab_blocks_methods[] = {
    {"new_block", new_block, METH_O, "new_block(nbytes): its owner, its address, if it is fresh"},
    {"limit_blocks", limit_blocks, METH_O, "limit_blocks(nbytes): keep so much, or what a function returns"},
    {"empty_blocks", empty_blocks, METH_NOARGS, "Free all idle memory; return the bytes."},
    {"idle_bytes", idle_bytes, METH_NOARGS, "Return the bytes of idle memory."},
    {0}};
