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

/* export(owner, axes, versioned), as in deleters.py: a capsule on an empty struct, its address,
   manager_ctx and deleter, and the address of its extents and strides. */
static PyObject *export(PyObject *module, PyObject *args)
{
    PyObject *owner, *axes;
    int versioned;
    if (!PyArg_ParseTuple(args, "OO!p", &owner, &PyTuple_Type, &axes, &versioned))
        return NULL;
    ab_drain();
    Py_ssize_t n = PyTuple_Size(axes);
    void *self = ab_struct(owner, (DLTensor){.ndim = (int32_t)(n / 2)}, versioned);
    PyObject *made = ab_capsule(self, versioned);
    if (!made)
        return NULL;
    DLManagedTensorVersioned *new = self;
    DLManagedTensor *old = self;
    int64_t *filled = versioned ? new->dl_tensor.shape : old->dl_tensor.shape;
    for (Py_ssize_t i = 0; i < n; i++)
        filled[i] = PyLong_AsLongLong(PyTuple_GetItem(axes, i));
    if (PyErr_Occurred())
        return Py_DECREF(made), NULL;
    void *deleter = versioned ? (void *)new->deleter : (void *)old->deleter;
    return Py_BuildValue("NKKKK", made, (uintptr_t)self, (uintptr_t)owner, (uintptr_t)deleter,
                         (uintptr_t)filled);
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

static PyObject *claim(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    int versioned;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &versioned))
        return NULL;
    return PyLong_FromVoidPtr(claimed(capsule, versioned));
}

/* own(address, versioned): a capsule that deletes a producer's struct when it is freed. */
static PyObject *own(PyObject *module, PyObject *args)
{
    unsigned long long address;
    int versioned;
    if (!PyArg_ParseTuple(args, "Kp", &address, &versioned))
        return NULL;
    return address ? ab_capsule((void *)(uintptr_t)address, versioned)
                   : PyErr_Format(PyExc_ValueError, "the address of the struct is NULL");
}

/* take(capsule, versioned): consume a capsule; return its address and an owner as from `own`, or
   None if it has another name. A pointer that is no address has no owner. If memory runs out, the
   struct is deleted. */
static PyObject *take(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    int versioned;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &versioned))
        return NULL;
    void *self = claimed(capsule, versioned);
    if (!self)
        Py_RETURN_NONE;
    int is_address = (uintptr_t)self >= 4096 && !((uintptr_t)self & 7);
    PyObject *owner = is_address ? ab_capsule(self, versioned) : Py_NewRef(Py_None);
    return owner ? Py_BuildValue("NN", PyLong_FromVoidPtr(self), owner) : NULL;
}

static PyObject *drain(PyObject *module, PyObject *unused)
{
    drained(NULL); /* a forked child must not wait for the parent's pending call */
    Py_RETURN_NONE;
}

PyMethodDef ab_release_methods[] = {
    {"export", export, METH_VARARGS, "export(owner, axes, versioned): a capsule to be filled."},
    {"claim", claim, METH_VARARGS, "Consume a capsule."},
    {"own", own, METH_VARARGS, "own(address, versioned): an owner of a producer's struct."},
    {"take", take, METH_VARARGS, "take(capsule, versioned): its address and an owner; or None."},
    {"drain", drain, METH_NOARGS, "Release the owners of structs that other threads have deleted."},
    {0}};

void ab_release_setup(void)
{
    void *found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    is_finalizing = (int (*)(void))(found ? found : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
}
