/* What the table asks of NumPy's and PyTorch's arrays: signatures, views, small copies. The
   functions of the same names in `libraries/` do the same in Python, and have what is rare for
   themselves. PyTorch is asked by its public functions alone. */
#include "native.h"

enum { DENSE = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS };

/* (dtype, flags, ndim, empty), and of what is not dense whether a stride is negative. */
static PyObject *key_of(PyArrayObject *x, int flags, int empty, int negative)
{
    PyObject *key = PyTuple_New(negative < 0 ? 4 : 5);
    PyObject *number = key ? PyLong_FromLong(flags) : NULL;
    PyObject *ndim = number ? PyLong_FromLong(PyArray_NDIM(x)) : NULL;
    if (!ndim) {
        Py_XDECREF(key);
        Py_XDECREF(number);
        return NULL;
    }
    PyTuple_SetItem(key, 0, Py_NewRef((PyObject *)PyArray_DESCR(x)));
    PyTuple_SetItem(key, 1, number);
    PyTuple_SetItem(key, 2, ndim);
    PyTuple_SetItem(key, 3, PyBool_FromLong(empty));
    if (negative >= 0)
        PyTuple_SetItem(key, 4, PyBool_FromLong(negative));
    return key;
}

static PyObject *numpy_signature(PyObject *module, PyObject *given)
{
    if (!PyArray_Check(given))
        return PyErr_Format(PyExc_TypeError, "expected an array of NumPy, got %R", Py_TYPE(given));
    PyArrayObject *x = (PyArrayObject *)given;
    int flags = PyArray_FLAGS(x), ndim = PyArray_NDIM(x), negative = 0, empty = 0, unit = 0;
    if (flags < 0) /* writable with a warning, which nobody's own conversion minds */
        Py_RETURN_NONE;
    for (int i = 0; i < ndim; i++) {
        negative |= PyArray_STRIDES(x)[i] < 0;
        empty |= PyArray_DIMS(x)[i] == 0;
        unit |= PyArray_DIMS(x)[i] == 1; /* whose stride says nothing */
    }
    if (flags & DENSE)
        return key_of(x, flags, empty, -1);
    if (!(flags & NPY_ARRAY_ALIGNED) || (negative && unit))
        Py_RETURN_NONE;
    return key_of(x, flags, 0, negative);
}

/* numpy_copy_small(most, slow): a copy of at most so many elements. */
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

/* What PyTorch's functions answer. Each takes a reference, and gives -1 with an exception. */
static int is_true(PyObject *answer)
{
    int yes = answer ? answer == Py_True : -1;
    Py_XDECREF(answer);
    return yes;
}
static int is_above(PyObject *number, long least)
{
    long value = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : value > least;
}
static PyObject *asked(PyObject *x, PyObject *method)
{
    return PyObject_VectorcallMethod(method, &x, 1, NULL);
}

enum { STRIDED, MODES, LEVEL, FORWARD, COMPLEX, SLOW, KNOWN }; /* of torch_signature's arguments */

static int is_other(PyObject *found, PyObject *usual)
{
    int other = found ? found != usual : -1;
    Py_XDECREF(found);
    return other;
}

/* Whether the signature is the Python function's to find, or -1. */
static int is_odd(PyObject *known, PyObject *x)
{
    int odd = is_other(PyObject_GetAttr(x, ab_names.is_cpu), Py_True);
    if (!odd)
        odd = is_other(PyObject_GetAttr(x, ab_names.requires_grad), Py_False);
    if (!odd)
        odd = is_other(PyObject_GetAttr(x, ab_names.layout), AB_KNOWN(known, STRIDED));
    if (!odd)
        odd = is_other(PyObject_GetAttr(x, ab_names.is_nested), Py_False);
    if (!odd) /* -1 where no tangents are computed */
        odd = is_above(PyObject_GetAttr(AB_KNOWN(known, FORWARD), ab_names._current_level), -1);
    if (!odd) /* of PyTorch's dispatch: how many there are */
        odd = is_above(PyObject_Vectorcall(AB_KNOWN(known, MODES), NULL, 0, NULL), 0);
    if (!odd)
        odd = is_other(PyObject_Vectorcall(AB_KNOWN(known, LEVEL), NULL, 0, NULL), Py_None);
    return odd;
}

static PyObject *torch_signature(PyObject *known, PyObject *x)
{
    int odd = is_odd(known, x);
    PyObject *dtype = odd ? NULL : PyObject_GetAttr(x, ab_names.dtype), *key = NULL;
    int is_complex = dtype ? PySet_Contains(AB_KNOWN(known, COMPLEX), dtype) : -1;
    if (odd > 0)
        return PyObject_Vectorcall(AB_KNOWN(known, SLOW), &x, 1, NULL);
    PyObject *ndim = NULL, *c_order = NULL, *negated = NULL, *conjugated = NULL;
    if (is_complex >= 0 && (ndim = PyObject_GetAttr(x, ab_names.ndim))
        && (c_order = asked(x, ab_names.is_contiguous)) && (negated = asked(x, ab_names.is_neg))
        && (conjugated = is_complex ? asked(x, ab_names.is_conj) : Py_NewRef(Py_False)))
        key = PyTuple_Pack(6, dtype, ndim, c_order, negated, conjugated, Py_None);
    Py_XDECREF(dtype);
    Py_XDECREF(ndim);
    Py_XDECREF(c_order);
    Py_XDECREF(negated);
    Py_XDECREF(conjugated);
    return key;
}

/* Whether a storage is pinned and has the bytes of a dense tensor: 1, 0, or -1. */
static int is_pinned(PyObject *x)
{
    PyObject *storage = asked(x, ab_names.untyped_storage), *needed = NULL, *there = NULL;
    int resizable = storage ? is_true(asked(storage, ab_names.resizable)) : -1, enough = 0;
    if (!resizable && (needed = PyObject_GetAttr(x, ab_names.nbytes))
        && (there = asked(storage, ab_names.nbytes)))
        enough = PyObject_RichCompareBool(there, needed, Py_GE);
    Py_XDECREF(storage);
    Py_XDECREF(needed);
    Py_XDECREF(there);
    return PyErr_Occurred() ? -1 : enough;
}

/* The view of a tensor whose storage is as it was made; all else is the Python function's. */
static PyObject *torch_to_numpy(PyObject *known, PyObject *x)
{
    PyObject *slow = AB_KNOWN(known, 0), *shrunk = AB_KNOWN(known, 1);
    int pinned = PySet_Size(shrunk) ? 0 : is_pinned(x);
    PyObject *view = pinned > 0 ? asked(x, ab_names.numpy) : NULL;
    if (view)
        return view;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear(); /* the Python function meets it again, and knows what it means */
    return PyObject_Vectorcall(slow, &x, 1, NULL);
}

PyMethodDef ab_arrays_methods[] = {
    {"numpy_signature", numpy_signature, METH_O, "The coarse signature of an array of NumPy."},
    {NULL, NULL, 0, NULL},
};

AbBound ab_arrays_bound[] = {
    {2, {"numpy_copy_small", copy_small, METH_O, "(most, slow)"}},
    {KNOWN, {"torch_signature", torch_signature, METH_O,
             "(strided, modes, level, forward_ad, complex, slow)"}},
    {2, {"torch_to_numpy", torch_to_numpy, METH_O, "(slow, shrunk)"}},
    {0, {NULL, NULL, 0, NULL}},
};
