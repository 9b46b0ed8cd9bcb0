/* Shared by the files of arraybridge._native. CPython's limited API, from 3.11 on. */
#ifndef ARRAYBRIDGE_NATIVE_H
#define ARRAYBRIDGE_NATIVE_H
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL arraybridge_numpy
#ifndef ARRAYBRIDGE_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030C0000 /* public from 3.12 on */
PyAPI_FUNC(PyObject *) PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);
PyAPI_FUNC(PyObject *) PyVectorcall_Call(PyObject *, PyObject *, PyObject *);
PyAPI_FUNC(PyObject *) PyObject_VectorcallMethod(PyObject *, PyObject *const *, size_t, PyObject *);
#endif

/* dlpack.h 1.3 */
enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 3, DLPACK_FLAG_READ_ONLY = 1 };
typedef struct { uint32_t major, minor; } DLPackVersion;
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* The data type of an array of NumPy; without bits if DLPack, or this code, has none. */
static inline DLDataType ab_dtype(PyArrayObject *x)
{
    static const char kinds[] = "iuf--cb"; /* in the order of DLDataTypeCode */
    int number = PyArray_TYPE(x);
    if (!PyTypeNum_ISNUMBER(number) || number == NPY_LONGDOUBLE || number == NPY_CLONGDOUBLE
        || !PyArray_ISNBO(PyArray_DESCR(x)->byteorder))
        return (DLDataType){0};
    return (DLDataType){strchr(kinds, PyArray_DESCR(x)->kind) - kinds, 8 * PyArray_ITEMSIZE(x), 1};
}

/* Attributes and keywords that are looked up, interned once. */
#define AB_NAMES(X)                                                                               \
    X(__dlpack__) X(__qualname__) X(_current_level) X(_native) X(copy) X(data) X(dl_device)       \
    X(max_version) X(requires_grad) X(run) X(stream)
#define AB_NAME(name) *name,
typedef struct { PyObject AB_NAMES(AB_NAME) *no_more; } AbNames;
extern AbNames ab_names;

/* AB_BOUND(name) defines name_of(...), which binds its arguments to `name`, a function of an array:
   they are its `self`. */
#define AB_KNOWN(self, i) PyTuple_GetItem(self, i)
#define AB_BOUND(name)                                                                            \
    static PyObject *name##_of(PyObject *module, PyObject *args)                                  \
    {                                                                                             \
        static PyMethodDef function = {#name, name, METH_O, NULL};                                \
        return PyCFunction_NewEx(&function, args, NULL);                                          \
    }

/* Release new references, some of which may be NULL. */
static inline void ab_drop(PyObject *const *all, size_t n)
{
    while (n--)
        Py_XDECREF(all[n]);
}
#define AB_DROP(...)                                                                              \
    ab_drop((PyObject *[]){__VA_ARGS__}, sizeof((PyObject *[]){__VA_ARGS__}) / sizeof(PyObject *))

/* release.c: structs and capsules, 0 legacy or 1 versioned. */
void *ab_struct(PyObject *owner, DLTensor tensor, int versioned);
PyObject *ab_capsule(void *self, int versioned);
void ab_delete(void *self, int versioned);
void ab_drain(void);

/* threads.c: copy by a way, words with the record of its nest at the end; nest 0 is the flat copy. */
enum { WAY_NEST, WAY_BLOCKS, WAY_SLICES, WAY_TO, WAY_FROM, WAY_RECORD };
void ab_run_way(const int64_t *way, int64_t dst, int64_t src, int64_t threads);

/* copies.c: a tensor's elements as a new array of NumPy. */
PyObject *ab_tensor_copy(PyObject *known, const DLTensor *t);

/* blocks.c: the owner of memory for a result, its start, and whether it has no pages yet. */
enum { AB_LEAST_BLOCK = 1 << 16 }; /* bytes; smaller ones are not kept */
PyObject *ab_block(size_t nbytes, void **start, int *fresh);

/* arrays.c: a signature, which may describe a tensor, and a conversion, which may use that. */
PyObject *ab_key(PyObject *sign, PyObject *x, DLTensor *t);
PyObject *ab_applied(PyObject *convert, PyObject *x, const DLTensor *t);

/* Each file's functions, and its setup for a new module: 0, or -1 with an exception. */
extern PyMethodDef ab_exports_methods[], ab_lookup_methods[], ab_release_methods[],
    ab_arrays_methods[], ab_blocks_methods[], ab_copies_methods[], ab_threads_methods[];
void ab_release_setup(void);
int ab_lookup_setup(void);
int ab_threads_setup(void);
int ab_blocks_setup(void);

#endif
