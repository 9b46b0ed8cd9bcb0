/* Signatures, views and small copies of NumPy's and PyTorch's arrays, for the table. Functions of
   the same names in `libraries/` do the same in Python, and handle the rare cases. PyTorch is only
   called through public functions. */
#include "native.h"

enum { DENSE = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS };

/* (dtype, flags, ndim, empty) and, if not dense, whether a stride is negative. */
static PyObject *key_of(PyArrayObject *x, int flags, int empty, int negative)
{
    PyObject *number = PyLong_FromLong(flags), *ndim = PyLong_FromLong(PyArray_NDIM(x));
    PyObject *key = number && ndim ? PyTuple_Pack(negative < 0 ? 4 : 5, PyArray_DESCR(x), number,
                                                  ndim, empty ? Py_True : Py_False,
                                                  negative ? Py_True : Py_False) : NULL;
    AB_DROP(number, ndim);
    return key;
}

static PyObject *numpy_signature(PyObject *module, PyObject *given)
{
    if (!PyArray_Check(given))
        return PyErr_Format(PyExc_TypeError, "expected an array of NumPy, got %R", Py_TYPE(given));
    PyArrayObject *x = (PyArrayObject *)given;
    int flags = PyArray_FLAGS(x), ndim = PyArray_NDIM(x), negative = 0, empty = 0, unit = 0;
    if (flags < 0) /* writable with a warning, which no library's conversion handles */
        Py_RETURN_NONE;
    for (int i = 0; i < ndim; i++) {
        negative |= PyArray_STRIDES(x)[i] < 0;
        empty |= PyArray_DIMS(x)[i] == 0;
        unit |= PyArray_DIMS(x)[i] == 1; /* its stride means nothing */
    }
    if (flags & DENSE)
        return key_of(x, flags, empty, -1);
    if (!(flags & NPY_ARRAY_ALIGNED) || (negative && unit))
        Py_RETURN_NONE;
    return key_of(x, flags, 0, negative);
}

/* numpy_copy_small(most, slow): a copy of at most `most` elements. */
static PyObject *copy_small(PyObject *known, PyObject *given)
{
    PyArrayObject *x = (PyArrayObject *)given;
    if (PyArray_CheckExact(given) && PyTypeNum_ISNUMBER(PyArray_TYPE(x))
        && PyArray_ISNBO(PyArray_DESCR(x)->byteorder)) {
        Py_ssize_t most = PyLong_AsSsize_t(AB_KNOWN(known, 0));
        return PyArray_SIZE(x) > most ? Py_NewRef(Py_None) : PyArray_NewCopy(x, NPY_CORDER);
    }
    return PyObject_Vectorcall(AB_KNOWN(known, 1), &given, 1, NULL);
}

/* Tests of PyTorch's results. Each takes a reference; 1 means unusual, or an exception. */
static int is_other(PyObject *answer, PyObject *usual)
{
    Py_XDECREF(answer);
    return answer != usual;
}
static int is_above(PyObject *number, long least)
{
    long value = number ? PyLong_AsLong(number) : least + 1;
    Py_XDECREF(number);
    return value > least || (value == -1 && PyErr_Occurred());
}
static PyObject *asked(PyObject *x, PyObject *method)
{
    return PyObject_VectorcallMethod(method, &x, 1, NULL);
}

enum { STRIDED, MODES, LEVEL, FORWARD, COMPLEX, SLOW, KNOWN }; /* of torch_signature's arguments */

/* Whether the Python function must find the signature, or there is an exception. */
static int is_odd(PyObject *known, PyObject *x)
{
    return is_other(PyObject_GetAttr(x, ab_names.is_cpu), Py_True)
           || is_other(PyObject_GetAttr(x, ab_names.requires_grad), Py_False)
           || is_other(PyObject_GetAttr(x, ab_names.layout), AB_KNOWN(known, STRIDED))
           || is_other(PyObject_GetAttr(x, ab_names.is_nested), Py_False)
           /* -1 if no tangents are computed */
           || is_above(PyObject_GetAttr(AB_KNOWN(known, FORWARD), ab_names._current_level), -1)
           /* the number of PyTorch's dispatch modes */
           || is_above(PyObject_Vectorcall(AB_KNOWN(known, MODES), NULL, 0, NULL), 0)
           || is_other(PyObject_Vectorcall(AB_KNOWN(known, LEVEL), NULL, 0, NULL), Py_None);
}

static PyObject *torch_signature(PyObject *known, PyObject *x)
{
    if (is_odd(known, x))
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(AB_KNOWN(known, SLOW), &x, 1, NULL);
    PyObject *dtype = PyObject_GetAttr(x, ab_names.dtype), *key = NULL;
    int is_complex = dtype ? PySet_Contains(AB_KNOWN(known, COMPLEX), dtype) : -1;
    PyObject *ndim = NULL, *c_order = NULL, *negated = NULL, *conjugated = NULL;
    if (is_complex >= 0 && (ndim = PyObject_GetAttr(x, ab_names.ndim))
        && (c_order = asked(x, ab_names.is_contiguous)) && (negated = asked(x, ab_names.is_neg))
        && (conjugated = is_complex ? asked(x, ab_names.is_conj) : Py_NewRef(Py_False)))
        key = PyTuple_Pack(6, dtype, ndim, c_order, negated, conjugated, Py_None);
    AB_DROP(dtype, ndim, c_order, negated, conjugated);
    return key;
}

/* Whether a storage is pinned and large enough for a dense tensor; 0 also with an exception. */
static int is_pinned(PyObject *x)
{
    PyObject *storage = asked(x, ab_names.untyped_storage), *needed = NULL, *there = NULL;
    int enough = storage && !is_other(asked(storage, ab_names.resizable), Py_False)
                 && (needed = PyObject_GetAttr(x, ab_names.nbytes))
                 && (there = asked(storage, ab_names.nbytes))
                 && PyObject_RichCompareBool(there, needed, Py_GE) > 0;
    AB_DROP(storage, needed, there);
    return enough;
}

/* The view of a tensor with its original storage; the Python function handles the others. */
static PyObject *torch_to_numpy(PyObject *known, PyObject *x)
{
    int pinned = !PySet_Size(AB_KNOWN(known, 1)) && is_pinned(x);
    PyObject *view = pinned ? asked(x, ab_names.numpy) : NULL;
    if (view || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)))
        return view;
    PyErr_Clear(); /* the Python function raises it again, and handles it */
    return PyObject_Vectorcall(AB_KNOWN(known, 0), &x, 1, NULL);
}

AB_BOUND(copy_small, 2)
AB_BOUND(torch_signature, KNOWN)
AB_BOUND(torch_to_numpy, 2)

PyMethodDef ab_arrays_methods[] = {
    {"numpy_signature", numpy_signature, METH_O, "The coarse signature of a NumPy array."},
    {"numpy_copy_small", copy_small_of, METH_VARARGS, "numpy_copy_small(most, slow)"},
    {"torch_signature", torch_signature_of, METH_VARARGS,
     "torch_signature(strided, modes, level, forward_ad, complex, slow)"},
    {"torch_to_numpy", torch_to_numpy_of, METH_VARARGS, "torch_to_numpy(slow, shrunk)"},
    {0}};
