/* Signatures, views and small copies of NumPy's and PyTorch's arrays, for the table. Functions of
   the same names in `libraries/` do the same in Python, and handle the rare cases. PyTorch is only
   called through public functions. */
#include "native.h"

static PyObject *axes_of(const npy_intp *extents, int ndim)
{
    PyObject *made = PyTuple_New(ndim);
    for (int i = 0; made && i < ndim; i++) {
        PyObject *extent = PyLong_FromSsize_t(extents[i]);
        if (!extent)
            Py_CLEAR(made);
        else
            PyTuple_SetItem(made, i, extent);
    }
    return made;
}

/* numpy_signature(slow): dtype, flags, layout, and the alignment where the flags do not show it. */
static PyObject *numpy_signature(PyObject *known, PyObject *given)
{
    PyArrayObject *x = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || PyArray_FLAGS(x) < 0) /* it warns when it is written */
        return PyObject_Vectorcall(AB_KNOWN(known, 0), &given, 1, NULL);
    int flags = PyArray_FLAGS(x), ndim = PyArray_NDIM(x);
    int dense = flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    PyArray_Descr *dtype = PyArray_DESCR(x);
    intptr_t address = PyDataType_ALIGNMENT(dtype) != PyDataType_ELSIZE(dtype)
                               && PyTypeNum_ISNUMBER(dtype->type_num)
                               && PyArray_ISNBO(dtype->byteorder)
                           ? (intptr_t)PyArray_DATA(x) : 0;
    PyObject *first = dense ? PyLong_FromLong(ndim) : axes_of(PyArray_DIMS(x), ndim);
    PyObject *second = dense ? PyBool_FromLong(!PyArray_SIZE(x))
                             : axes_of(PyArray_STRIDES(x), ndim);
    PyObject *number = PyLong_FromLong(flags);
    PyObject *aligned = PyLong_FromLong(address & -address & 15);
    PyObject *key = first && second && number && aligned
                        ? PyTuple_Pack(5, dtype, number, first, second, aligned) : NULL;
    AB_DROP(first, second, number, aligned);
    return key;
}

/* numpy_copy_small(most, slow): a copy of at most `most` elements. */
static PyObject *copy_small(PyObject *known, PyObject *given)
{
    PyArrayObject *x = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || !PyArray_ISNBO(PyArray_DESCR(x)->byteorder))
        return PyObject_Vectorcall(AB_KNOWN(known, 1), &given, 1, NULL);
    Py_ssize_t most = PyLong_AsSsize_t(AB_KNOWN(known, 0));
    return PyArray_SIZE(x) > most ? Py_NewRef(Py_None) : PyArray_NewCopy(x, NPY_CORDER);
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

enum { PLAIN, STRIDED, MODES, LEVEL, FORWARD, COMPLEX, SLOW }; /* of torch_signature's arguments */

/* Whether the Python function must find the signature, or there is an exception. */
static int is_odd(PyObject *known, PyObject *x)
{
    return PySet_Contains(AB_KNOWN(known, PLAIN), (PyObject *)Py_TYPE(x)) != 1
           || is_other(PyObject_GetAttr(x, ab_names.is_cpu), Py_True)
           || is_other(PyObject_GetAttr(x, ab_names.requires_grad), Py_False)
           || is_other(PyObject_GetAttr(x, ab_names.layout), AB_KNOWN(known, STRIDED))
           || is_other(PyObject_GetAttr(x, ab_names.is_nested), Py_False)
           /* -1 if no tangents are computed */
           || is_above(PyObject_GetAttr(AB_KNOWN(known, FORWARD), ab_names._current_level), -1)
           /* the number of PyTorch's dispatch modes */
           || is_above(PyObject_Vectorcall(AB_KNOWN(known, MODES), NULL, 0, NULL), 0)
           || is_other(PyObject_Vectorcall(AB_KNOWN(known, LEVEL), NULL, 0, NULL), Py_None);
}

/* (ndim, empty), or (shape, strides) of a tensor that is not contiguous. */
static PyObject *torch_layout(PyObject *x)
{
    PyObject *contiguous = asked(x, ab_names.is_contiguous), *first = NULL, *second = NULL;
    if (contiguous == Py_True && (first = PyObject_GetAttr(x, ab_names.ndim))) {
        PyObject *size = asked(x, ab_names.numel);
        second = size ? PyBool_FromLong(PyObject_Not(size)) : NULL;
        Py_XDECREF(size);
    } else if (contiguous == Py_False && (first = PyObject_GetAttr(x, ab_names.shape)))
        second = asked(x, ab_names.stride);
    PyObject *layout = second ? PyTuple_Pack(2, first, second) : NULL;
    AB_DROP(contiguous, first, second);
    return layout;
}

static PyObject *torch_signature(PyObject *known, PyObject *x)
{
    if (is_odd(known, x))
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(AB_KNOWN(known, SLOW), &x, 1, NULL);
    PyObject *dtype = PyObject_GetAttr(x, ab_names.dtype), *key = NULL;
    int is_complex = dtype ? PySet_Contains(AB_KNOWN(known, COMPLEX), dtype) : -1;
    PyObject *layout = NULL, *negated = NULL, *conjugated = NULL;
    if (is_complex >= 0 && (layout = torch_layout(x)) && (negated = asked(x, ab_names.is_neg))
        && (conjugated = is_complex ? asked(x, ab_names.is_conj) : Py_NewRef(Py_False)))
        key = PyTuple_Pack(5, dtype, layout, conjugated, negated, Py_None);
    AB_DROP(dtype, layout, negated, conjugated);
    return key;
}

/* A number that a method or attribute returns; -1 with an exception. */
static long long number_of(PyObject *answer)
{
    long long number = answer ? PyLong_AsLongLong(answer) : -1;
    Py_XDECREF(answer);
    return number;
}

/* Whether the elements of a NumPy view end before an address. */
static int ends_before(PyArrayObject *view, long long end)
{
    long long high = (long long)(intptr_t)PyArray_DATA(view) + PyArray_ITEMSIZE(view);
    for (int i = 0; i < PyArray_NDIM(view); i++)
        high += (PyArray_DIMS(view)[i] - 1) * PyArray_STRIDES(view)[i];
    return high <= end;
}

/* torch_to_numpy(slow): the view of a tensor. The storage is checked before, since the view pins
   it, and after, since another thread may have resized it; Python handles what is odd. */
static PyObject *torch_to_numpy(PyObject *known, PyObject *x)
{
    PyObject *storage = asked(x, ab_names.untyped_storage), *view = NULL;
    long long start = storage ? number_of(asked(storage, ab_names.data_ptr)) : 0;
    long long data = start > 0 ? number_of(asked(x, ab_names.data_ptr)) : -1;
    long long needed = data >= start ? number_of(PyObject_GetAttr(x, ab_names.nbytes)) : 0;
    if (needed > 0 && data - start + needed <= number_of(asked(storage, ab_names.nbytes)))
        view = asked(x, ab_names.numpy);
    if (view && !(PyArray_Check(view) && PyArray_DATA((PyArrayObject *)view) == (void *)data
                  && ends_before((PyArrayObject *)view,
                                 start + number_of(asked(storage, ab_names.nbytes)))))
        Py_CLEAR(view);
    Py_XDECREF(storage);
    if (view || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)))
        return view;
    PyErr_Clear(); /* the Python function raises it again, and handles it */
    return PyObject_Vectorcall(AB_KNOWN(known, 0), &x, 1, NULL);
}

AB_BOUND(numpy_signature)
AB_BOUND(copy_small)
AB_BOUND(torch_signature)
AB_BOUND(torch_to_numpy)

PyMethodDef ab_arrays_methods[] = {
    {"numpy_signature", numpy_signature_of, METH_VARARGS, "numpy_signature(slow)"},
    {"numpy_copy_small", copy_small_of, METH_VARARGS, "numpy_copy_small(most, slow)"},
    {"torch_signature", torch_signature_of, METH_VARARGS,
     "torch_signature(plain, strided, modes, level, forward_ad, complex, slow)"},
    {"torch_to_numpy", torch_to_numpy_of, METH_VARARGS, "torch_to_numpy(slow)"},
    {0}};
