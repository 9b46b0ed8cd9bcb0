/* Copies of NumPy's arrays to C order. How to copy one layout is found once (kernels/cpu/copying.py):
   a way for the thread pool, or nothing where NumPy's own copy is as fast. */
#include "native.h"
#include <string.h>

/* LITTLE: bytes that NumPy copies fastest in any layout. ALONE: of one run that it moves as fast.
   BRIEF: that are copied before another thread could have got the GIL. */
enum { LITTLE = 1 << 10, ALONE = 1 << 20, BRIEF = 16 << 10 };

enum { WAYS, PREPARE, THREADS, SLOW, ALIGNED }; /* of the arguments of `numpy_copy` */

/* Whether strided memory was copied to a new array; -1 with an exception. Its strides are in units of
   some bytes. */
static int is_copied(PyObject *known, const char *from, const int64_t *strides, int64_t unit,
                     PyArrayObject *made, int fresh)
{
    int64_t key[1 + 3 * NPY_MAXDIMS], nbytes = PyArray_NBYTES(made);
    int ndim = PyArray_NDIM(made), done = -1;
    key[0] = 2 * PyArray_ITEMSIZE(made) + fresh;
    for (int i = 0; i < ndim; i++) {
        key[1 + i] = PyArray_DIMS(made)[i];
        key[1 + ndim + i] = PyArray_STRIDES(made)[i];
        key[1 + 2 * ndim + i] = strides[i] * unit;
    }
    PyObject *layout = PyBytes_FromStringAndSize((char *)key, (1 + 3 * ndim) * sizeof *key);
    PyObject *way = layout ? PyDict_GetItemWithError(AB_KNOWN(known, WAYS), layout) : NULL;
    Py_XINCREF(way);
    if (layout && !way && !PyErr_Occurred())
        way = PyObject_Vectorcall(AB_KNOWN(known, PREPARE), &layout, 1, NULL);
    const int64_t *words = way ? (const int64_t *)PyBytes_AsString(way) : NULL;
    if (words && !PyBytes_Size(way)) {
        done = 0;
    } else if (words) {
        PyObject *number = words[WAY_SLICES] > 1
                               ? PyObject_Vectorcall(AB_KNOWN(known, THREADS), NULL, 0, NULL)
                               : PyLong_FromLong(1);
        int64_t threads = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        PyThreadState *state = nbytes > BRIEF && threads > 0 ? PyEval_SaveThread() : NULL;
        if (threads > 0)
            ab_run_way(words, (intptr_t)PyArray_DATA(made), (intptr_t)from, threads);
        if (state)
            PyEval_RestoreThread(state);
        done = threads > 0 ? 1 : -1;
    }
    AB_DROP(layout, way);
    return done;
}

/* A new array in C order on a block. Takes a reference to the data type. */
static PyArrayObject *on_block(PyArray_Descr *dtype, int ndim, const int64_t *shape, int64_t nbytes,
                               int *fresh)
{
    void *start;
    PyObject *owner = ab_block(nbytes, &start, fresh), *made = NULL;
    if (owner)
        made = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, start, NPY_ARRAY_CARRAY,
                                    NULL);
    else
        Py_DECREF((PyObject *)dtype);
    if (!made)
        Py_XDECREF(owner);
    else if (PyArray_SetBaseObject((PyArrayObject *)made, owner))
        Py_CLEAR(made);
    return (PyArrayObject *)made;
}

/* A new array of NumPy with the elements of a tensor in host memory, by `numpy_copy`'s arguments; NULL,
   without an exception, if NumPy has no such data type. */
PyObject *ab_tensor_copy(PyObject *known, const DLTensor *t)
{
    static const struct { uint8_t code, bits; int number; } types[] = {
        {0, 8, NPY_INT8}, {0, 16, NPY_INT16}, {0, 32, NPY_INT32}, {0, 64, NPY_INT64},
        {1, 8, NPY_UINT8}, {1, 16, NPY_UINT16}, {1, 32, NPY_UINT32}, {1, 64, NPY_UINT64},
        {2, 16, NPY_HALF}, {2, 32, NPY_FLOAT32}, {2, 64, NPY_FLOAT64}, {5, 64, NPY_COMPLEX64},
        {5, 128, NPY_COMPLEX128}, {6, 8, NPY_BOOL}};
    int fresh, number = -1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == t->dtype.code && types[i].bits == t->dtype.bits && t->dtype.lanes == 1)
            number = types[i].number;
    if (number < 0 || t->ndim > NPY_MAXDIMS)
        return NULL;
    int64_t itemsize = t->dtype.bits / 8, nbytes = itemsize;
    for (int i = 0; i < t->ndim; i++)
        nbytes *= t->shape[i];
    char *from = (char *)t->data + t->byte_offset;
    PyArrayObject *made = on_block(PyArray_DescrFromType(number), t->ndim, t->shape, nbytes, &fresh);
    int done = made ? is_copied(known, from, t->strides, itemsize, made, fresh) : -1;
    if (done < 0)
        Py_CLEAR(made);
    if (!done) { /* NumPy's copy is as fast */
        npy_intp strides[NPY_MAXDIMS];
        for (int i = 0; i < t->ndim; i++)
            strides[i] = t->strides[i] * itemsize;
        PyObject *view = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(number), t->ndim,
                                              t->shape, strides, from, 0, NULL);
        if (!view || PyArray_CopyInto(made, (PyArrayObject *)view))
            Py_CLEAR(made);
        Py_XDECREF(view);
    }
    return (PyObject *)made;
}

/* numpy_copy(ways, prepare, threads, slow, aligned): a copy in C order, aligned to 64 bytes if that is
   wanted, or if it is on a block. `slow` copies what is unusual. */
static PyObject *numpy_copy(PyObject *known, PyObject *given)
{
    PyArrayObject *x = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || !PyArray_ISNBO(PyArray_DESCR(x)->byteorder)
        || PyDataType_REFCHK(PyArray_DESCR(x)))
        return PyObject_Vectorcall(AB_KNOWN(known, SLOW), &given, 1, NULL);
    int64_t nbytes = PyArray_NBYTES(x);
    int fresh = 0, block = nbytes >= AB_LEAST_BLOCK || AB_KNOWN(known, ALIGNED) == Py_True, done = 0;
    if (nbytes < LITTLE && !block)
        return PyArray_NewCopy(x, NPY_CORDER);
    PyArray_Descr *dtype = PyArray_DESCR(x);
    PyArrayObject *made = block ? on_block((PyArray_Descr *)Py_NewRef((PyObject *)dtype),
                                           PyArray_NDIM(x), PyArray_DIMS(x), nbytes, &fresh)
                                : (PyArrayObject *)PyArray_NewLikeArray(x, NPY_CORDER, NULL, 0);
    if (made && nbytes >= (PyArray_IS_C_CONTIGUOUS(x) ? ALONE : LITTLE))
        done = is_copied(known, PyArray_DATA(x), PyArray_STRIDES(x), 1, made, fresh);
    if (made && (done < 0 || (!done && PyArray_CopyInto(made, x))))
        Py_CLEAR(made);
    return (PyObject *)made;
}
AB_BOUND(numpy_copy)

PyMethodDef ab_copies_methods[] = {
    {"numpy_copy", numpy_copy_of, METH_VARARGS, "numpy_copy(ways, prepare, threads, slow, aligned)"},
    {0}};
