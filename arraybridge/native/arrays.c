/* What the table asks of NumPy's and PyTorch's arrays: signatures, views, small copies. The functions
   of the same names in `libraries/` do the same in Python, and have what is rare for themselves.
   PyTorch is asked by its public functions alone. */
#include "native.h"

static PyObject *str_requires_grad, *str_is_cpu, *str_layout, *str_is_nested, *str_is_neg,
    *str_is_conj, *str_level, *str_dtype, *str_ndim, *str_is_contiguous, *str_untyped_storage,
    *str_resizable, *str_nbytes, *str_numpy;

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
        Py_ssize_t most = PyLong_AsSsize_t(PyTuple_GetItem(known, 0));
        return PyArray_SIZE(x) > most ? Py_NewRef(Py_None) : PyArray_NewCopy(x, NPY_CORDER);
    }
    return PyObject_Vectorcall(PyTuple_GetItem(known, 1), &given, 1, NULL);
}
static PyMethodDef copy_small_def = {"copy_small", copy_small, METH_O, NULL};

static PyObject *numpy_copy_small(PyObject *module, PyObject *args)
{
    return ab_bound(&copy_small_def, args, 2);
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
    int odd = is_other(PyObject_GetAttr(x, str_is_cpu), Py_True);
    if (!odd)
        odd = is_other(PyObject_GetAttr(x, str_requires_grad), Py_False);
    if (!odd)
        odd = is_other(PyObject_GetAttr(x, str_layout), PyTuple_GetItem(known, STRIDED));
    if (!odd)
        odd = is_other(PyObject_GetAttr(x, str_is_nested), Py_False);
    if (!odd) /* -1 where no tangents are computed */
        odd = is_above(PyObject_GetAttr(PyTuple_GetItem(known, FORWARD), str_level), -1);
    if (!odd) /* of PyTorch's dispatch: how many there are */
        odd = is_above(PyObject_Vectorcall(PyTuple_GetItem(known, MODES), NULL, 0, NULL), 0);
    if (!odd)
        odd = is_other(PyObject_Vectorcall(PyTuple_GetItem(known, LEVEL), NULL, 0, NULL), Py_None);
    return odd;
}

static PyObject *torch_signature(PyObject *known, PyObject *x)
{
    int odd = is_odd(known, x);
    PyObject *dtype = odd ? NULL : PyObject_GetAttr(x, str_dtype), *key = NULL;
    int is_complex = dtype ? PySet_Contains(PyTuple_GetItem(known, COMPLEX), dtype) : -1;
    if (odd > 0)
        return PyObject_Vectorcall(PyTuple_GetItem(known, SLOW), &x, 1, NULL);
    PyObject *ndim = NULL, *c_order = NULL, *negated = NULL, *conjugated = NULL;
    if (is_complex >= 0 && (ndim = PyObject_GetAttr(x, str_ndim))
        && (c_order = asked(x, str_is_contiguous)) && (negated = asked(x, str_is_neg))
        && (conjugated = is_complex ? asked(x, str_is_conj) : Py_NewRef(Py_False)))
        key = PyTuple_Pack(6, dtype, ndim, c_order, negated, conjugated, Py_None);
    Py_XDECREF(dtype);
    Py_XDECREF(ndim);
    Py_XDECREF(c_order);
    Py_XDECREF(negated);
    Py_XDECREF(conjugated);
    return key;
}
static PyMethodDef torch_signature_def = {"signature", torch_signature, METH_O, NULL};

/* Whether a storage is pinned and has the bytes of a dense tensor: 1, 0, or -1. */
static int is_pinned(PyObject *x)
{
    PyObject *storage = asked(x, str_untyped_storage), *needed = NULL, *there = NULL;
    int resizable = storage ? is_true(asked(storage, str_resizable)) : -1, enough = 0;
    if (!resizable && (needed = PyObject_GetAttr(x, str_nbytes)) && (there = asked(storage, str_nbytes)))
        enough = PyObject_RichCompareBool(there, needed, Py_GE);
    Py_XDECREF(storage);
    Py_XDECREF(needed);
    Py_XDECREF(there);
    return PyErr_Occurred() ? -1 : enough;
}

/* The view of a tensor whose storage is as it was made; all else is the Python function's. */
static PyObject *torch_to_numpy(PyObject *known, PyObject *x)
{
    PyObject *slow = PyTuple_GetItem(known, 0), *shrunk = PyTuple_GetItem(known, 1);
    int pinned = PySet_Size(shrunk) ? 0 : is_pinned(x);
    PyObject *view = pinned > 0 ? asked(x, str_numpy) : NULL;
    if (view)
        return view;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear(); /* the Python function meets it again, and knows what it means */
    return PyObject_Vectorcall(slow, &x, 1, NULL);
}
static PyMethodDef torch_to_numpy_def = {"to_numpy", torch_to_numpy, METH_O, NULL};

static PyObject *torch_signature_of(PyObject *module, PyObject *args)
{
    return ab_bound(&torch_signature_def, args, KNOWN);
}
static PyObject *torch_to_numpy_of(PyObject *module, PyObject *args)
{
    return ab_bound(&torch_to_numpy_def, args, 2);
}

PyMethodDef ab_arrays_methods[] = {
    {"numpy_signature", numpy_signature, METH_O, "The coarse signature of an array of NumPy."},
    {"numpy_copy_small", numpy_copy_small, METH_VARARGS,
     "numpy_copy_small(most, slow): what copies arrays of at most so many elements."},
    {"torch_signature", torch_signature_of, METH_VARARGS,
     "torch_signature(strided, modes, level, forward_ad, complex, slow): what signs tensors."},
    {"torch_to_numpy", torch_to_numpy_of, METH_VARARGS,
     "torch_to_numpy(slow, shrunk): what views them."},
    {NULL, NULL, 0, NULL},
};

int ab_arrays_setup(void)
{
    const struct { PyObject **place; const char *text; } names[] = {
        {&str_requires_grad, "requires_grad"}, {&str_is_cpu, "is_cpu"},
        {&str_layout, "layout"}, {&str_is_nested, "is_nested"}, {&str_is_neg, "is_neg"},
        {&str_is_conj, "is_conj"},
        {&str_level, "_current_level"}, {&str_dtype, "dtype"}, {&str_ndim, "ndim"},
        {&str_is_contiguous, "is_contiguous"}, {&str_untyped_storage, "untyped_storage"},
        {&str_resizable, "resizable"}, {&str_nbytes, "nbytes"}, {&str_numpy, "numpy"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].place = PyUnicode_InternFromString(names[i].text)))
            return -1;
    return 0;
}
