/* `__dlpack__` of the Array classes, and their C exchange API.

   Arrays that the table of conversions views as NumPy's are exported here. The Python method handles
   the rest: other devices, copies, legacy capsules, and errors. */
#include "native.h"

static PyObject *classes, *observers, *first; /* first: (1, 0), the first versioned DLPack */
static PyObject *numpy_view, *slow_dlpack, *slow_managed; /* the Python functions */

/* The axes of an array, in elements, those that reach no element as in a dense array; 0 if a stride
   is negative or not a multiple of the size, or the order matters. */
static int read_axes(PyArrayObject *x, DLTensor *tensor)
{
    int64_t itemsize = PyArray_ITEMSIZE(x), dense = 1;
    for (int k = tensor->ndim; k--;) {
        int64_t extent = PyArray_DIMS(x)[k], stride = PyArray_STRIDES(x)[k];
        if (stride < 0 || stride % itemsize || (extent == 1 && PyArray_ISFORTRAN(x)))
            return 0;
        tensor->shape[k] = extent;
        tensor->strides[k] = extent == 1 ? dense : stride / itemsize;
        dense = tensor->strides[k] * extent;
    }
    return 1;
}

/* A struct on an array's memory; NULL, without an exception, if Python must export it. */
static DLManagedTensorVersioned *exported(PyObject *given)
{
    PyArrayObject *x = (PyArrayObject *)given;
    ab_drain(); /* may run any code, which may change the array */
    if (!PyArray_CheckExact(given) || !PyArray_SIZE(x) || PyArray_FLAGS(x) < 0)
        return NULL; /* empty: its strides are lost; negative: writing to it warns */
    DLDataType dtype = ab_dtype(x);
    if (!dtype.bits)
        return NULL;
    DLTensor tensor = {PyArray_DATA(x), {1, 0}, PyArray_NDIM(x), dtype, NULL, NULL, 0};
    DLManagedTensorVersioned *self = ab_struct(given, tensor, 1);
    if (!self)
        return PyErr_Clear(), NULL;
    self->flags = PyArray_ISWRITEABLE(x) ? 0 : DLPACK_FLAG_READ_ONLY;
    if (read_axes(x, &self->dl_tensor))
        return self;
    return ab_delete(self, 1), NULL;
}

/* The export of an Array's NumPy view; NULL, without an exception, if Python must export it. */
static DLManagedTensorVersioned *exported_view(PyObject *array)
{
    if (PyList_Size(observers)) /* Python notifies them */
        return NULL;
    PyObject *native = PyObject_GetAttr(array, ab_names._native), *view = NULL;
    if (native)
        view = PyArray_CheckExact(native) ? Py_NewRef(native)
                                          : PyObject_Vectorcall(numpy_view, &native, 1, NULL);
    DLManagedTensorVersioned *made = view ? exported(view) : NULL;
    AB_DROP(native, view);
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* the Python method raises it again */
    return made;
}

/* Whether the keywords only request a versioned capsule on the same memory. */
static int is_plain(PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    int versioned = 0, others = 0;
    for (Py_ssize_t i = 0, n = names && !given ? PyTuple_Size(names) : 0; i < n; i++) {
        PyObject *name = PyTuple_GetItem(names, i), *value = values[i];
        if (name == ab_names.max_version)
            versioned = PyObject_RichCompareBool(value, first, Py_GE) == 1;
        else
            others |= value != Py_None || (name != ab_names.copy && name != ab_names.stream
                                           && name != ab_names.dl_device);
    }
    PyErr_Clear(); /* no pair of numbers: Python tells */
    return versioned && !others;
}

static PyObject *dlpack(PyObject *self, PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    DLManagedTensorVersioned *made = is_plain(values, given, names) ? exported_view(self) : NULL;
    Py_ssize_t n = given + (names ? PyTuple_Size(names) : 0);
    if (made || PyErr_Occurred())
        return ab_capsule(made, 1);
    PyObject *all[8] = {self};
    if (n > 7)
        return PyErr_Format(PyExc_TypeError, "__dlpack__ takes no %zd arguments", n);
    for (Py_ssize_t i = 0; i < n; i++)
        all[i + 1] = values[i];
    return PyObject_Vectorcall(slow_dlpack, all, given + 1, names);
}

static PyMethodDef dlpack_def = {
    "__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_FASTCALL | METH_KEYWORDS,
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
    "Return a DLPack capsule; see :meth:`arraybridge.Array.__dlpack__`."};

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

/* The descriptor of __dlpack__ for a type, and the address of `managed`. */
static PyObject *export_arrays(PyObject *module, PyObject *args)
{
    PyTypeObject *type;
    Py_INCREF(args); /* for good, since other C code keeps the address */
    if (!PyArg_ParseTuple(args, "O!O!O!OOOO", &PyType_Type, &type, &PySet_Type, &classes,
                          &PyList_Type, &observers, &first, &numpy_view, &slow_dlpack,
                          &slow_managed))
        return NULL;
    int (*address)(void *, DLManagedTensorVersioned **) = managed;
    return Py_BuildValue("NN", PyDescr_NewMethod(type, &dlpack_def),
                         PyLong_FromVoidPtr(*(void **)&address));
}

static PyObject *address(PyObject *module, PyObject *x)
{
    if (!PyArray_Check(x))
        return PyErr_Format(PyExc_TypeError, "expected an array of NumPy, got %R", Py_TYPE(x));
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)x));
}

PyMethodDef ab_exports_methods[] = {
    {"address", address, METH_O, "The address of a NumPy array's first element."},
    {"export_arrays", export_arrays, METH_VARARGS,
     "export_arrays(type, classes, observers, (1, 0), numpy_view, dlpack, managed)"},
    {0}};
