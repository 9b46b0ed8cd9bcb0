/* DLPack's structs: made for a capsule, consumed once, deleted by the last owner.

   A deleter may run on any thread, with or without the GIL, with an exception pending, under a
   consumer's lock, or while the interpreter is ending. So it puts the struct on a list, by one
   atomic exchange. A Python thread empties the list at once. Another thread must not wait for the
   GIL, since it may hold a lock that the GIL's holder waits for: the main thread empties the list
   between two bytecodes, or else the next export does. Once the interpreter is ending, the owners
   are left to the operating system. */
#include "native.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct Waiting {
    struct Waiting *next;
    PyObject *owner;
} Waiting; /* replaces a struct's first two words */

enum { NESTED = 50 };

static _Atomic(Waiting *) waiting;
static atomic_int called;            /* 1 once Python will call `drained` */
static _Thread_local int nested;     /* this thread's calls of `ab_drain` */
static int (*is_finalizing)(void);   /* Py_IsFinalizing, private before 3.13 */

/* An owner may be an import of the next struct, and so on: as in CPython's deallocators, a chain is
   released by recursion up to a depth, and beyond it by the innermost call's loop. */
void ab_drain(void)
{
    if (nested == NESTED)
        return;
    nested++;
    for (Waiting *self; (self = atomic_exchange(&waiting, NULL));) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        while (self) {
            Waiting *next = self->next;
            PyObject *owner = self->owner;
            free(self);
            Py_DECREF(owner);
            self = next;
        }
        PyErr_Restore(type, value, trace);
    }
    nested--;
}

static int drained(void *unused)
{
    atomic_store(&called, 0);
    ab_drain();
    return 0;
}

static void release(void *memory, PyObject *owner)
{
    if (!Py_IsInitialized() || (is_finalizing && is_finalizing())) {
        free(memory);
        return;
    }
    Waiting *self = memory, *first = atomic_load(&waiting);
    self->owner = owner;
    do
        self->next = first;
    while (!atomic_compare_exchange_weak(&waiting, &first, self));
    if (PyGILState_GetThisThreadState()) {
        PyGILState_STATE state = PyGILState_Ensure();
        ab_drain();
        PyGILState_Release(state);
    } else if (!atomic_exchange(&called, 1) && Py_AddPendingCall(drained, NULL)) {
        atomic_store(&called, 0); /* the queue is full: the next export does */
    }
}

static void delete_legacy(DLManagedTensor *self) { release(self, self->manager_ctx); }
static void delete_versioned(DLManagedTensorVersioned *self) { release(self, self->manager_ctx); }

/* A struct followed by room for its axes; NULL, with a MemoryError. It owns a reference. */
void *ab_struct(PyObject *owner, DLTensor tensor, int versioned)
{
    size_t size = versioned ? sizeof(DLManagedTensorVersioned) : sizeof(DLManagedTensor);
    char *self = malloc(size + 16 * (size_t)tensor.ndim);
    if (!self)
        return PyErr_NoMemory();
    tensor.shape = (int64_t *)(self + size);
    tensor.strides = tensor.shape + tensor.ndim;
    Py_INCREF(owner);
    if (versioned)
        *(DLManagedTensorVersioned *)self = (DLManagedTensorVersioned){
            {DLPACK_MAJOR, DLPACK_MINOR}, owner, delete_versioned, 0, tensor};
    else
        *(DLManagedTensor *)self = (DLManagedTensor){tensor, owner, delete_legacy};
    return self;
}

static const char *const NAMES[][2] = {{"dltensor", "used_dltensor"},
                                       {"dltensor_versioned", "used_dltensor_versioned"}};

/* Call a struct's own deleter, with a pending exception saved. */
void ab_delete(void *self, int versioned)
{
    DLManagedTensorVersioned *new = self;
    DLManagedTensor *old = self;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (versioned && new->deleter)
        new->deleter(new);
    else if (!versioned && old->deleter)
        old->deleter(old);
    PyErr_Restore(type, value, trace);
}

/* The capsules' destructor deletes a struct that was not consumed. */
static void destroy(PyObject *capsule)
{
    for (int versioned = 0; versioned < 2; versioned++)
        if (PyCapsule_IsValid(capsule, NAMES[versioned][0]))
            ab_delete(PyCapsule_GetPointer(capsule, NAMES[versioned][0]), versioned);
}

/* A capsule takes over a struct, which is deleted if memory runs out; NULL stays NULL. */
PyObject *ab_capsule(void *self, int versioned)
{
    PyObject *made = self ? PyCapsule_New(self, NAMES[versioned][0], destroy) : NULL;
    if (self && !made)
        ab_delete(self, versioned);
    return made;
}

/* Read a tuple of integers; -1 with an exception. */
static int read_axes(PyObject *numbers, int64_t *axes)
{
    for (Py_ssize_t i = 0, n = PyTuple_Size(numbers); i < n; i++)
        if ((axes[i] = PyLong_AsLongLong(PyTuple_GetItem(numbers, i))) == -1 && PyErr_Occurred())
            return -1;
    return 0;
}

static PyObject *capsule(PyObject *module, PyObject *args)
{
    PyObject *owner, *shape, *strides, *made;
    int versioned, code, bits, lanes, type, id;
    unsigned int major, minor;
    unsigned long long flags, data, offset;
    if (!PyArg_ParseTuple(args, "Op(II)KK(ii)(iii)O!O!K", &owner, &versioned, &major, &minor,
                          &flags, &data, &type, &id, &code, &bits, &lanes, &PyTuple_Type, &shape,
                          &PyTuple_Type, &strides, &offset))
        return NULL;
    Py_ssize_t ndim = PyTuple_Size(shape);
    if (PyTuple_Size(strides) != ndim)
        return PyErr_Format(PyExc_ValueError, "expected %zd strides, one per axis", ndim);
    ab_drain();
    DLTensor tensor = {(void *)(uintptr_t)data, {type, id}, (int32_t)ndim,
                       {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes}, NULL, NULL, offset};
    void *self = ab_struct(owner, tensor, versioned);
    DLTensor *filled = self;
    if (self && versioned) {
        DLManagedTensorVersioned *whole = self;
        whole->version = (DLPackVersion){major, minor};
        whole->flags = flags;
        filled = &whole->dl_tensor;
    }
    made = ab_capsule(self, versioned);
    if (made && (read_axes(shape, filled->shape) || read_axes(strides, filled->strides)))
        Py_CLEAR(made);
    return made;
}

/* Consume a capsule: its pointer; NULL, without an exception, if it has another name. The GIL lets
   only one thread get the pointer. */
static void *claimed(PyObject *capsule, int versioned)
{
    if (!PyCapsule_IsValid(capsule, NAMES[versioned][0]))
        return NULL;
    void *self = PyCapsule_GetPointer(capsule, NAMES[versioned][0]);
    PyCapsule_SetName(capsule, NAMES[versioned][1]);
    return self;
}

/* The second argument of the functions below, whether a struct is versioned, or -1. */
static int read_kind(PyObject *const *given, Py_ssize_t n)
{
    if (n == 2)
        return PyObject_IsTrue(given[1]);
    PyErr_SetString(PyExc_TypeError, "expected a capsule or address, and whether it is versioned");
    return -1;
}

static PyObject *claim(PyObject *module, PyObject *const *given, Py_ssize_t n)
{
    int versioned = read_kind(given, n);
    return versioned < 0 ? NULL : PyLong_FromVoidPtr(claimed(given[0], versioned));
}

/* own(address, versioned): a capsule that deletes a producer's struct when it is freed. */
static PyObject *own(PyObject *module, PyObject *const *given, Py_ssize_t n)
{
    int versioned = read_kind(given, n);
    void *self = versioned < 0 ? NULL : PyLong_AsVoidPtr(given[0]);
    if (!self && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "the address of the struct is NULL");
    return ab_capsule(self, versioned);
}

/* take(capsule, versioned): consume a capsule; return its address and an owner as from `own`, or
   None if it has another name. The owner is made first, so that nothing is lost if memory runs out.
   Its name disarms it until then, or for good if the pointer is no address. */
static PyObject *take(PyObject *module, PyObject *const *given, Py_ssize_t n)
{
    int versioned = read_kind(given, n);
    if (versioned < 0)
        return NULL;
    if (!PyCapsule_IsValid(given[0], NAMES[versioned][0]))
        Py_RETURN_NONE;
    void *self = PyCapsule_GetPointer(given[0], NAMES[versioned][0]);
    PyObject *owner = self ? PyCapsule_New(self, NAMES[versioned][1], destroy) : NULL;
    PyObject *made = owner ? Py_BuildValue("NO", PyLong_FromVoidPtr(self), owner) : NULL;
    Py_XDECREF(owner); /* the tuple holds it */
    if (made && claimed(given[0], versioned) != self) { /* another thread was faster */
        Py_DECREF(made);
        Py_RETURN_NONE;
    }
    if (made && (uintptr_t)self >= 4096 && !((uintptr_t)self & 7))
        PyCapsule_SetName(owner, NAMES[versioned][0]);
    return made;
}

/* release(owner, versioned): run the deleter of what `own` returned now. */
static PyObject *release_now(PyObject *module, PyObject *const *given, Py_ssize_t n)
{
    int versioned = read_kind(given, n);
    void *self = versioned < 0 ? NULL : claimed(given[0], versioned);
    if (self)
        ab_delete(self, versioned);
    return versioned < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *drain(PyObject *module, PyObject *unused)
{
    drained(NULL); /* a forked child must not wait for the parent's pending call */
    Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

PyMethodDef ab_release_methods[] = {
    {"capsule", capsule, METH_VARARGS,
     "capsule(owner, versioned, version, flags, data, device, dtype, shape, strides, byte_offset)"},
    {"claim", FAST(claim), "Consume a capsule."},
    {"own", FAST(own), "own(address, versioned): an owner of a producer's struct."},
    {"take", FAST(take), "take(capsule, versioned): its address and an owner; or None."},
    {"release", FAST(release_now), "release(owner, versioned): run its deleter now."},
    {"drain", drain, METH_NOARGS, "Release the owners of structs that other threads have deleted."},
    {0}};

void ab_release_setup(void)
{
    void *found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    is_finalizing = (int (*)(void))(found ? found : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
}
