/* `__dlpack__` and `__array__` of the Array classes, and their C exchange API.

   Arrays that the table of conversions views as NumPy's are exported here. The Python method handles
   the rest: other devices, copies, legacy capsules, and errors. */
#include "native.h"
#include <string.h>

static PyObject *known, *observers;    /* the types' records; see core/table.py */
static PyObject *numpy_view;           /* of conversion.py, for types without a known one */
static const char kinds[] = "iuf--cb"; /* NumPy's, in the order of DLDataTypeCode */

/* The axes of an array, in elements; 0 if a stride is negative or not a multiple of the size. */
static int read_axes(PyArrayObject *x, DLTensor *tensor)
{
    int64_t itemsize = PyArray_ITEMSIZE(x);
    for (int k = 0; k < tensor->ndim; k++) {
        int64_t stride = PyArray_STRIDES(x)[k];
        if (stride < 0 || stride % itemsize)
            return 0;
        tensor->shape[k] = PyArray_DIMS(x)[k];
        tensor->strides[k] = stride / itemsize;
    }
    return 1;
}

/* A struct on an array's memory; NULL, without an exception, if Python must export it. */
static void *exported(PyObject *given, int versioned)
{
    PyArrayObject *x = (PyArrayObject *)given;
    ab_drain(); /* may run any code, which may change the array */
    if (!PyArray_CheckExact(given) || !PyArray_SIZE(x) || PyArray_FLAGS(x) < 0)
        return NULL; /* empty: its strides are lost; negative: writing to it warns */
    PyArray_Descr *descr = PyArray_DESCR(x);
    int number = descr->type_num;
    if (!PyTypeNum_ISNUMBER(number) || number == NPY_LONGDOUBLE || number == NPY_CLONGDOUBLE
        || !PyArray_ISNBO(descr->byteorder))
        return NULL;
    DLDataType dtype = {strchr(kinds, descr->kind) - kinds, 8 * PyArray_ITEMSIZE(x), 1};
    DLTensor tensor = {PyArray_DATA(x), {1, 0}, PyArray_NDIM(x), dtype, NULL, NULL, 0};
    void *self = ab_struct(given, tensor, versioned);
    if (!self)
        return PyErr_Clear(), NULL;
    DLManagedTensorVersioned *whole = versioned ? self : NULL;
    if (whole)
        whole->flags = PyArray_ISWRITEABLE(x) ? 0 : DLPACK_FLAG_READ_ONLY;
    if (read_axes(x, whole ? &whole->dl_tensor : self))
        return self;
    return ab_delete(self, versioned), NULL;
}

/* The export of an Array's NumPy view; NULL, without an exception, if Python must export it. */
static DLManagedTensorVersioned *exported_view(PyObject *array)
{
    if (PyList_Size(observers)) /* Python notifies them */
        return NULL;
    PyObject *native = PyObject_GetAttr(array, ab_names._native), *view = NULL;
    if (native)
        view = PyArray_CheckExact(native) ? Py_NewRef(native)
                                          : ab_view(known, native, numpy_view);
    DLManagedTensorVersioned *made = view ? exported(view, 1) : NULL;
    AB_DROP(native, view);
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* the Python method raises it again */
    return made;
}

/* Whether the keywords only request a versioned capsule on the same memory. */
static int is_plain(PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    int versioned = 0;
    for (Py_ssize_t i = 0, n = names && !given ? PyTuple_Size(names) : 0; i < n; i++) {
        PyObject *name = PyTuple_GetItem(names, i), *value = values[i];
        if (name == ab_names.max_version) {
            int pair = PyTuple_CheckExact(value) && PyTuple_Size(value) == 2;
            PyObject *major = pair ? PyTuple_GetItem(value, 0) : NULL;
            if (!pair || !PyLong_CheckExact(major) || !PyLong_CheckExact(PyTuple_GetItem(value, 1)))
                return 0;
            long number = PyLong_AsLong(major);
            PyErr_Clear(); /* the number is too large: Python compares it */
            versioned = number >= 1;
        } else if ((value != Py_None && !(name == ab_names.copy && value == Py_False))
                   || (name != ab_names.copy && name != ab_names.stream
                       && name != ab_names.dl_device))
            return 0;
    }
    return versioned;
}

static PyObject *classes, *slow_dlpack, *slow_array, *slow_managed; /* the Python functions */

static PyObject *call_python(PyObject *method, PyObject *self, PyObject *const *values,
                             Py_ssize_t given, PyObject *names)
{
    PyObject *all[8] = {self};
    Py_ssize_t n = given + (names ? PyTuple_Size(names) : 0);
    if (n > 7)
        return PyErr_Format(PyExc_TypeError, "%R takes no %zd arguments", method, n);
    for (Py_ssize_t i = 0; i < n; i++)
        all[i + 1] = values[i];
    return PyObject_Vectorcall(method, all, given + 1, names);
}

static PyObject *dlpack(PyObject *self, PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    DLManagedTensorVersioned *made = is_plain(values, given, names) ? exported_view(self) : NULL;
    if (made)
        return ab_capsule(made, 1);
    return PyErr_Occurred() ? NULL : call_python(slow_dlpack, self, values, given, names);
}

static PyMethodDef dlpack_def = {
    "__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_FASTCALL | METH_KEYWORDS,
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
    "Return a DLPack capsule; see :meth:`arraybridge.Array.__dlpack__`."};

/* The view itself for numpy.asarray, which requests no copy; else the Python method's result. */
static PyObject *array(PyObject *self, PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    int plain = !given && !PyList_Size(observers);
    for (Py_ssize_t i = 0, n = plain && names ? PyTuple_Size(names) : 0; i < n; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        plain &= values[i] == Py_None && (name == ab_names.copy || name == ab_names.dtype);
    }
    PyObject *native = plain ? PyObject_GetAttr(self, ab_names._native) : NULL;
    PyObject *view = native ? ab_view(known, native, numpy_view) : NULL;
    Py_XDECREF(native);
    if (view || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)))
        return view;
    PyErr_Clear();
    return call_python(slow_array, self, values, given, names);
}
static PyMethodDef array_def = {
    "__array__", (PyCFunction)(void (*)(void))array, METH_FASTCALL | METH_KEYWORDS,
    "__array__($self, /, dtype=None, copy=None)\n--\n\n"
    "Return a NumPy array on the same memory; see ``numpy.asarray``."};

/* managed_tensor_from_py_object_no_sync of dlpack.h, for the exchange tables of all classes. */
static int managed(void *object, DLManagedTensorVersioned **out)
{
    PyObject *x = object, *address = NULL;
    int ours = PySet_Contains(classes, (PyObject *)Py_TYPE(x)); /* users may derive others */
    *out = ours > 0 ? exported_view(x) : NULL;
    if (!*out && !PyErr_Occurred() && (address = PyObject_Vectorcall(slow_managed, &x, 1, NULL)))
        *out = PyLong_AsVoidPtr(address);
    Py_XDECREF(address);
    return *out ? 0 : -1;
}

/* Descriptors of __dlpack__ and __array__ for a type, and the address of `managed`. */
static PyObject *export_arrays(PyObject *module, PyObject *args)
{
    PyTypeObject *type;
    Py_INCREF(args); /* for good, since other C code keeps the address */
    if (!PyArg_ParseTuple(args, "O!O!O!O!OOOO", &PyType_Type, &type, &PySet_Type, &classes,
                          &PyDict_Type, &known, &PyList_Type, &observers, &slow_dlpack,
                          &slow_array, &slow_managed, &numpy_view))
        return NULL;
    int (*address)(void *, DLManagedTensorVersioned **) = managed;
    return Py_BuildValue("NNN", PyDescr_NewMethod(type, &dlpack_def),
                         PyDescr_NewMethod(type, &array_def),
                         PyLong_FromVoidPtr(*(void **)&address));
}

static PyObject *address(PyObject *module, PyObject *x)
{
    if (!PyArray_Check(x))
        return PyErr_Format(PyExc_TypeError, "expected an array of NumPy, got %R", Py_TYPE(x));
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)x));
}

static PyObject *legacy(PyObject *module, PyObject *x)
{
    void *made = exported(x, 0);
    return made ? ab_capsule(made, 0) : Py_NewRef(Py_None);
}

PyMethodDef ab_exports_methods[] = {
    {"address", address, METH_O, "The address of a NumPy array's first element."},
    {"legacy", legacy, METH_O, "A legacy capsule on a NumPy array; None if Python must make it."},
    {"export_arrays", export_arrays, METH_VARARGS,
     "export_arrays(type, classes, records, observers, dlpack, array, managed, numpy_view)"},
    {0}};
