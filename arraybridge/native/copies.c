/* Copies of NumPy's arrays to C order. How to copy one layout is found once (kernels/cpu/copying.py):
   a way for the thread pool, or nothing where NumPy's own copy is as fast. */
#include "native.h"
#include <string.h>

/* LITTLE: bytes that NumPy copies fastest in any layout. ALONE: of one run that it moves as fast.
   BRIEF: that are copied before another thread could have got the GIL. */
enum { LITTLE = 1 << 10, ALONE = 1 << 20, BRIEF = 16 << 10 };

enum { WAYS, PREPARE, THREADS, SLOW, ALIGNED }; /* of the arguments of `numpy_copy` */

/* Whether an array was copied to memory in C order; -1 with an exception. */
static int is_copied(PyObject *known, PyArrayObject *x, void *to, int fresh)
{
    int64_t key[1 + 3 * NPY_MAXDIMS], step = PyArray_ITEMSIZE(x), nbytes = PyArray_NBYTES(x);
    int ndim = PyArray_NDIM(x), done = -1;
    key[0] = 2 * step + fresh;
    for (int i = ndim; i--; step *= key[1 + i] ? key[1 + i] : 1) {
        key[1 + i] = PyArray_DIMS(x)[i];
        key[1 + ndim + i] = step;
        key[1 + 2 * ndim + i] = PyArray_STRIDES(x)[i];
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
        int64_t dst = (intptr_t)to, src = (intptr_t)PyArray_DATA(x), threads = 1;
        PyObject *number = words[WAY_SLICES] > 1
                               ? PyObject_Vectorcall(AB_KNOWN(known, THREADS), NULL, 0, NULL)
                               : PyLong_FromLong(1);
        threads = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        PyThreadState *state = nbytes > BRIEF && threads > 0 ? PyEval_SaveThread() : NULL;
        if (threads > 0)
            ab_run_way(words, dst, src, threads);
        if (state)
            PyEval_RestoreThread(state);
        done = threads > 0 ? 1 : -1;
    }
    AB_DROP(layout, way);
    return done;
}

/* A new array like another, in C order, on a block. */
static PyArrayObject *on_block(PyArrayObject *x, int *fresh)
{
    void *start;
    PyObject *owner = ab_block(PyArray_NBYTES(x), &start, fresh);
    if (!owner)
        return NULL;
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(x));
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, dtype, PyArray_NDIM(x), PyArray_DIMS(x), NULL,
                                          start, NPY_ARRAY_CARRAY, NULL);
    if (!made)
        Py_DECREF(owner);
    else if (PyArray_SetBaseObject((PyArrayObject *)made, owner))
        Py_CLEAR(made);
    return (PyArrayObject *)made;
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
    PyArrayObject *made = block ? on_block(x, &fresh)
                                : (PyArrayObject *)PyArray_NewLikeArray(x, NPY_CORDER, NULL, 0);
    if (made && nbytes >= (PyArray_IS_C_CONTIGUOUS(x) ? ALONE : LITTLE))
        done = is_copied(known, x, PyArray_DATA(made), fresh);
    if (made && (done < 0 || (!done && PyArray_CopyInto(made, x))))
        Py_CLEAR(made);
    return (PyObject *)made;
}
AB_BOUND(numpy_copy)

PyMethodDef ab_copies_methods[] = {
    {"numpy_copy", numpy_copy_of, METH_VARARGS, "numpy_copy(ways, prepare, threads, slow, aligned)"},
    {0}};
