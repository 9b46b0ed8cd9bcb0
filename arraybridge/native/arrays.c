/* Signatures, views and small copies of arrays, for the table. Functions of the same names in
   `libraries/` do the rare cases, and all without this extension. PyTorch is only called through
   public functions: its C exchange API describes a tensor in the time of one attribute. */
#include "native.h"

/* A signature: a number for dense arrays; with shape and strides (`wide` bytes each), as bytes, for
   others, or if it shall be exact. */
static PyObject *key_of(uint64_t head, int is_short, const void *shape, const void *strides,
                        size_t wide)
{
    if (is_short)
        return PyLong_FromUnsignedLongLong(head);
    PyObject *key = PyBytes_FromStringAndSize(NULL, sizeof head + 2 * wide);
    if (key) {
        char *to = PyBytes_AsString(key);
        memcpy(to, &head, sizeof head);
        memcpy(to + sizeof head, shape, wide);
        memcpy(to + sizeof head + wide, strides, wide);
    }
    return key;
}

/* The exponent of an address's alignment, up to 64 bytes; 7 for NULL. */
static uint64_t alignment_of(uintptr_t address)
{
    uint64_t exponent = address ? 0 : 7;
    while (exponent < 6 && !(address >> exponent & 1))
        exponent++;
    return exponent;
}

/* numpy_signature(slow, exact): dtype, flags, axes, emptiness and alignment. */
static PyObject *numpy_signature(PyObject *known, PyObject *given)
{
    PyArrayObject *x = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || PyArray_FLAGS(x) < 0) /* it warns when it is written */
        return PyObject_Vectorcall(AB_KNOWN(known, 0), &given, 1, NULL);
    PyArray_Descr *dtype = PyArray_DESCR(x);
    int flags = PyArray_FLAGS(x) & ~NPY_ARRAY_OWNDATA, number = dtype->type_num;
    uint64_t ndim = PyArray_NDIM(x);
    uint64_t head = ndim | (uint64_t)(number & 0xff) << 8 | (uint64_t)flags << 16
                    | (uint64_t)!PyArray_ISNBO(dtype->byteorder) << 48
                    | (uint64_t)!PyArray_SIZE(x) << 49
                    | alignment_of((uintptr_t)PyArray_DATA(x)) << 50;
    int dense = flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    PyObject *key = key_of(head, dense && AB_KNOWN(known, 1) == Py_False, PyArray_DIMS(x),
                           PyArray_STRIDES(x), ndim * sizeof(npy_intp));
    if (!key || (number >= 0 && PyTypeNum_ISNUMBER(number))) /* new-style dtypes have -1 */
        return key;
    PyObject *both = PyTuple_Pack(2, dtype, key); /* dates have units, and fields names */
    Py_DECREF(key);
    return both;
}

/* A result, or that of the function in Python: of what is odd, or raised an exception. */
static PyObject *or_slow(PyObject *made, PyObject *slow, PyObject *x)
{
    if (made || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)))
        return made;
    PyErr_Clear();
    return PyObject_Vectorcall(slow, &x, 1, NULL);
}

/* The number of elements, and whether they are in C order without gaps. */
static int64_t size_of(const DLTensor *t, int *dense)
{
    int64_t size = 1;
    *dense = 1;
    for (int i = t->ndim; i--; size *= t->shape[i])
        *dense &= t->shape[i] == 1 || t->strides[i] == size;
    *dense |= !size;
    return size;
}

/* A signature as a number, or with shape and strides; `flags` has two bits. NULL, perhaps without an
   exception, if a part does not fit. */
static PyObject *tensor_key(const DLTensor *t, uint64_t flags, int exact)
{
    int dense, empty = !size_of(t, &dense);
    if ((t->ndim | t->device.device_type | t->device.device_id) & ~0xff)
        return NULL;
    uint64_t head = t->dtype.code | t->dtype.bits << 8 | (uint64_t)t->dtype.lanes << 16
                    | (uint64_t)t->ndim << 32 | (uint64_t)empty << 40 | flags << 41
                    | alignment_of((uintptr_t)t->data + t->byte_offset) << 43
                    | (uint64_t)t->device.device_type << 46 | (uint64_t)t->device.device_id << 54;
    return key_of(head, dense && !exact, t->shape, t->strides, t->ndim * sizeof(int64_t));
}

/* capsule_signature(slow): of arrays whose `__dlpack__` costs less than their attributes. */
static PyObject *capsule_signature(PyObject *known, PyObject *x)
{
    PyObject *capsule = PyObject_VectorcallMethod(ab_names.__dlpack__, &x, 1, NULL), *key = NULL;
    DLManagedTensor *made = capsule && PyCapsule_IsValid(capsule, "dltensor")
                                ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (made && (made->dl_tensor.strides || !made->dl_tensor.ndim))
        key = tensor_key(&made->dl_tensor, 0, 0);
    Py_XDECREF(capsule);
    return or_slow(key, AB_KNOWN(known, 0), x);
}

/* The C exchange API of dlpack.h 1.3, up to what is used here. */
typedef struct ExchangeAPI {
    DLPackVersion version;
    struct ExchangeAPI *prev_api;
    void *not_used[3];
    int (*dltensor_from_py_object_no_sync)(void *, DLTensor *);
} ExchangeAPI;

/* PyTorch's type and functions, and the functions in Python for what is odd; see `torch_functions`. */
enum { TENSOR, PARAMETER, MODES, LEVEL, FORWARD, IS_NEG, IS_CONJ, STORAGE, OFFSET, NUMPY, CLONE,
       FORMAT, NAMES, SIGNATURE, VIEW, COPY, IN_NUMPY, COUNT };
static PyObject *torch[COUNT];
static int (*borrow)(void *, DLTensor *); /* dltensor_from_py_object_no_sync of its table */
static Py_ssize_t most; /* elements of a small copy */

/* A tensor of the exact type, which the exchange API describes: of a parameter, an alias. NULL,
   perhaps with an exception, for other types. */
static PyObject *plain_of(PyObject *x)
{
    PyObject *type = (PyObject *)Py_TYPE(x);
    if (type == torch[TENSOR])
        return Py_NewRef(x);
    PyObject *plain = type == torch[PARAMETER] ? PyObject_GetAttr(x, ab_names.data) : NULL;
    if (plain && (PyObject *)Py_TYPE(plain) != torch[TENSOR])
        Py_CLEAR(plain);
    return plain;
}

/* Whether an answer, which is released, is the usual one. */
static int is_usual(PyObject *answer, PyObject *usual)
{
    Py_XDECREF(answer);
    return answer == usual;
}
static int is_small(PyObject *number, long usual)
{
    long value = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    return number && value == usual;
}

/* Whether a tensor is plain, and its description; `bits` are set if it is conjugated or negated. It
   is described last: nothing that runs until the description is used may change the tensor. */
static int is_plain(PyObject *x, PyObject *plain, DLTensor *t, uint64_t *bits)
{
    PyObject *conjugated = NULL, *negated = NULL;
    int all = plain && is_usual(PyObject_GetAttr(x, ab_names.requires_grad), Py_False)
              /* -1 if no tangents are computed */
              && is_small(PyObject_GetAttr(torch[FORWARD], ab_names._current_level), -1)
              && is_small(PyObject_Vectorcall(torch[MODES], NULL, 0, NULL), 0)
              && is_usual(PyObject_Vectorcall(torch[LEVEL], NULL, 0, NULL), Py_None)
              && (negated = PyObject_Vectorcall(torch[IS_NEG], &x, 1, NULL)) && !borrow(plain, t)
              && (t->dtype.code != 5
                  || ((conjugated = PyObject_Vectorcall(torch[IS_CONJ], &x, 1, NULL))
                      && !borrow(plain, t)))
              && (t->strides || !t->ndim);
    *bits = (conjugated == Py_True) | (negated == Py_True) << 1;
    AB_DROP(conjugated, negated);
    return all;
}

/* All that decides about a tensor, and its description if it is plain. */
static PyObject *torch_key(PyObject *exact, PyObject *x, DLTensor *t)
{
    uint64_t bits;
    PyObject *plain = plain_of(x);
    PyObject *key = is_plain(x, plain, t, &bits) ? tensor_key(t, bits, exact == Py_True) : NULL;
    Py_XDECREF(plain);
    if (!key || plain != x)
        t->data = NULL;
    return or_slow(key, torch[SIGNATURE], x); /* the description has a better error */
}
static PyObject *torch_signature(PyObject *exact, PyObject *x)
{
    DLTensor t;
    return torch_key(exact, x, &t);
}

/* The number of elements from the first in memory to the last, inclusive; 0 if there are none. */
static int64_t span_of(const DLTensor *t)
{
    int64_t span = 1, all = 1;
    for (int i = 0; i < t->ndim; all *= t->shape[i++])
        span += (t->shape[i] - 1) * t->strides[i];
    return all ? span : 0;
}

/* The storage of a tensor, if it has memory for all elements; else NULL, perhaps without an
   exception: it was shrunk, or has no address, as zeros that are not stored. */
static PyObject *storage_of(PyObject *x, const DLTensor *t)
{
    int64_t size = t->dtype.bits * t->dtype.lanes / 8, span = span_of(t), data = (intptr_t)t->data;
    PyObject *storage = PyObject_Vectorcall(torch[STORAGE], &x, 1, NULL);
    PyObject *offset = storage ? PyObject_Vectorcall(torch[OFFSET], &x, 1, NULL) : NULL;
    int64_t start = offset ? PyLong_AsLongLong(offset) : 0;
    Py_XDECREF(offset);
    if (offset && data != start * size && (start + span) * size <= PyObject_Size(storage))
        return storage;
    Py_XDECREF(storage);
    return NULL;
}

/* The view of a tensor, if it is of the memory that the tensor has. The storage is checked before,
   since the view pins it. */
static PyObject *torch_view(PyObject *x, const DLTensor *t)
{
    void *data = t->data;
    PyObject *storage = span_of(t) ? storage_of(x, t) : NULL;
    PyObject *view = storage ? PyObject_Vectorcall(torch[NUMPY], &x, 1, NULL) : NULL;
    if (view && !(PyArray_Check(view) && PyArray_DATA((PyArrayObject *)view) == data))
        Py_CLEAR(view);
    Py_XDECREF(storage);
    return or_slow(view, torch[VIEW], x); /* which raises it again, and handles it */
}
/* A copy in C order of at most `most` elements, with conjugate bits applied. It is of an alias, as
   another thread may give the tensor another storage. */
static PyObject *torch_clone(PyObject *x, const DLTensor *t)
{
    int dense;
    int64_t size = size_of(t, &dense);
    PyObject *storage = size <= most ? storage_of(x, t) : NULL;
    PyObject *all[2] = {storage ? PyObject_GetAttr(x, ab_names.data) : NULL, torch[FORMAT]};
    PyObject *made = all[0] ? PyObject_Vectorcall(torch[CLONE], all, 1, dense ? NULL : torch[NAMES])
                            : NULL;
    AB_DROP(storage, all[0]);
    return size > most ? Py_NewRef(Py_None) : or_slow(made, torch[COPY], x);
}

/* A new array of NumPy with the elements of a tensor without pending bits, by a function such as
   `numpy_copy`; None if Python must copy. It is of an alias, too. */
static PyObject *torch_in_numpy(PyObject *unused, PyObject *x)
{
    DLTensor t;
    uint64_t bits;
    PyObject *alias = PyObject_GetAttr(x, ab_names.data), *plain = alias ? plain_of(alias) : NULL;
    PyObject *storage = NULL, *made = NULL;
    if (is_plain(alias, plain, &t, &bits) && !bits && t.device.device_type == 1 && span_of(&t)
        && (storage = storage_of(plain, &t)) && !borrow(plain, &t))
        made = ab_tensor_copy(PyCFunction_GetSelf(torch[IN_NUMPY]), &t);
    AB_DROP(alias, plain, storage);
    if (made || (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_MemoryError)
                                      || !PyErr_ExceptionMatches(PyExc_Exception))))
        return made;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}

/* Describe a tensor for one of these functions. */
static PyObject *described(PyObject *(*function)(PyObject *, const DLTensor *), int slow, PyObject *x)
{
    DLTensor t;
    PyObject *plain = plain_of(x), *made = NULL;
    if (plain && !borrow(plain, &t))
        made = function(plain, &t);
    else
        made = or_slow(NULL, torch[slow], x);
    Py_XDECREF(plain);
    return made;
}
static PyObject *torch_to_numpy(PyObject *unused, PyObject *x)
{
    return described(torch_view, VIEW, x);
}
static PyObject *torch_copy_small(PyObject *unused, PyObject *x)
{
    return described(torch_clone, COPY, x);
}

static PyObject *axes_of(const int64_t *extents, int ndim)
{
    PyObject *made = PyTuple_New(ndim), *extent;
    for (int i = 0; made && i < ndim; i++)
        if (!(extent = PyLong_FromLongLong(extents[i])) || PyTuple_SetItem(made, i, extent))
            Py_CLEAR(made);
    return made;
}

/* Address, 0, shape and strides of a plain tensor in host memory; None for others. */
static PyObject *torch_layout(PyObject *unused, PyObject *x)
{
    DLTensor t;
    uint64_t bits;
    PyObject *plain = plain_of(x), *storage = NULL, *made = NULL;
    if (is_plain(x, plain, &t, &bits) && !bits && t.device.device_type == 1 && span_of(&t)
        && (storage = storage_of(plain, &t)) && !borrow(plain, &t))
        made = Py_BuildValue("NiNN", PyLong_FromVoidPtr(t.data), 0, axes_of(t.shape, t.ndim),
                             axes_of(t.strides, t.ndim));
    AB_DROP(plain, storage);
    if (made || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)))
        return made;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}

/* Describe a plain array or tensor on its own memory; return the bytes of a step of its strides, or
   0, without an exception, if Python must look. */
static int64_t borrowed(PyObject *x, DLTensor *t)
{
    if (PyArray_CheckExact(x)) {
        PyArrayObject *a = (PyArrayObject *)x;
        *t = (DLTensor){PyArray_DATA(a), {1, 0}, PyArray_NDIM(a), ab_dtype(a), PyArray_DIMS(a),
                        PyArray_STRIDES(a), 0};
        return t->dtype.bits != 0;
    }
    if ((PyObject *)Py_TYPE(x) == torch[TENSOR]
        && is_usual(PyObject_Vectorcall(torch[IS_NEG], &x, 1, NULL), Py_False) && !borrow(x, t)
        && t->dtype.code != 5) /* which may be conjugated */
        return t->dtype.bits * t->dtype.lanes / 8;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return 0;
}

static PyObject *same_memory(PyObject *module, PyObject *args)
{
    DLTensor a, b;
    PyObject *x, *y;
    if (!PyArg_ParseTuple(args, "OO", &x, &y))
        return NULL;
    int64_t step = borrowed(x, &a), other = step ? borrowed(y, &b) : 0;
    if (!other)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    int same = a.ndim == b.ndim && !memcmp(&a.dtype, &b.dtype, sizeof a.dtype), empty = 0, moved;
    moved = (char *)a.data + a.byte_offset != (char *)b.data + b.byte_offset;
    for (int i = 0; same && i < a.ndim; i++) {
        same = a.shape[i] == b.shape[i];
        empty |= !a.shape[i];
        moved |= a.shape[i] > 1 && a.strides[i] * step != b.strides[i] * other;
    }
    return PyBool_FromLong(same && (empty || !moved));
}

/* A signature and a conversion by it: the description of a tensor serves both. */
PyObject *ab_key(PyObject *sign, PyObject *x, DLTensor *t)
{
    if (PyCFunction_CheckExact(sign) && PyCFunction_GetFunction(sign) == torch_signature)
        return torch_key(PyCFunction_GetSelf(sign), x, t);
    t->data = NULL;
    return PyObject_Vectorcall(sign, &x, 1, NULL);
}
PyObject *ab_applied(PyObject *convert, PyObject *x, const DLTensor *t)
{
    PyCFunction function = t->data && PyCFunction_CheckExact(convert)
                               ? PyCFunction_GetFunction(convert) : NULL;
    return function == torch_to_numpy     ? torch_view(x, t)
           : function == torch_copy_small ? torch_clone(x, t)
                                          : PyObject_Vectorcall(convert, &x, 1, NULL);
}

/* torch_functions(api, most, ...): the signature, the exact one, view, copy, layout, and copy in
   NumPy; None if the capsule has no such table. */
static PyObject *torch_functions(PyObject *module, PyObject *args)
{
    static PyMethodDef functions[] = {{"torch_signature", torch_signature, METH_O, NULL},
                                      {"torch_to_numpy", torch_to_numpy, METH_O, NULL},
                                      {"torch_copy_small", torch_copy_small, METH_O, NULL},
                                      {"torch_layout", torch_layout, METH_O, NULL},
                                      {"torch_in_numpy", torch_in_numpy, METH_O, NULL}};
    ExchangeAPI *api = PyCapsule_GetPointer(PyTuple_GetItem(args, 0), "dlpack_exchange_api");
    while (api && api->version.major != DLPACK_MAJOR)
        api = api->prev_api; /* all that is known of a table of another version */
    PyErr_Clear();
    if (!api || !(borrow = api->dltensor_from_py_object_no_sync))
        Py_RETURN_NONE;
    most = PyLong_AsSsize_t(PyTuple_GetItem(args, 1));
    Py_INCREF(args); /* for good */
    for (int i = 0; i < COUNT; i++)
        if (!(torch[i] = PyTuple_GetItem(args, 2 + i)))
            return NULL;
    return Py_BuildValue("NNNNNN", PyCFunction_NewEx(functions, Py_False, NULL),
                         PyCFunction_NewEx(functions, Py_True, NULL),
                         PyCFunction_NewEx(functions + 1, NULL, NULL),
                         PyCFunction_NewEx(functions + 2, NULL, NULL),
                         PyCFunction_NewEx(functions + 3, NULL, NULL),
                         PyCFunction_NewEx(functions + 4, NULL, NULL));
}

AB_BOUND(numpy_signature)
AB_BOUND(capsule_signature)

PyMethodDef ab_arrays_methods[] = {
    {"numpy_signature", numpy_signature_of, METH_VARARGS, "numpy_signature(slow, exact)"},
    {"capsule_signature", capsule_signature_of, METH_VARARGS, "capsule_signature(slow)"},
    {"torch_functions", torch_functions, METH_VARARGS,
     "torch_functions(api, most, type, ...): signature, exact one, view, copy, layout"},
    {"same_memory", same_memory, METH_VARARGS,
     "same_memory(x, y): whether they are the same elements; None if Python must look."},
    {0}};
