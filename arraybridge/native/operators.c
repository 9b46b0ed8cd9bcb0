/* The root of the Arrays, which holds the native array; and, as slots, operators and reading by
   index for Arrays over NumPy: NumPy's own functions of NumPy arrays, or of one and a number that
   fits its dtype. The Python methods handle the rest. Arrays over other libraries only have the
   Python methods, which torch.compile follows. */
#include "native.h"
#include <structmember.h>

/* The slots; after the comparisons, in the order of OPERATORS in array/operators.py. */
#define UNARY(X) X(positive) X(negative) X(absolute) X(invert)
#define BINARY(X) X(add) X(subtract) X(multiply) X(true_divide) X(floor_divide) X(remainder) \
    X(matrix_multiply) X(and) X(or) X(xor) X(lshift) X(rshift)
#define INDEX(name) of_##name,
enum { of_comparisons = Py_GE, UNARY(INDEX) BINARY(INDEX) of_power, of_getitem };

typedef struct {
    PyObject_HEAD
    PyObject *native;
} Array;

static PyTypeObject *type;                        /* the class over NumPy */
static PyObject *functions, *methods, *reflected; /* tuples: NumPy's, and the class's in Python */

static PyObject *native_of(PyObject *x)
{
    PyObject *native = x && Py_TYPE(x) == type ? ((Array *)x)->native : NULL;
    return native && PyArray_CheckExact(native) ? Py_NewRef(native) : NULL;
}

static int is_ours(PyObject *x) { return type && PyObject_TypeCheck(x, type); }

/* A new Array over a NumPy array or scalar, whose reference it takes. */
static PyObject *wrapped(PyObject *native)
{
    native = PyArray_EnsureArray(native);
    PyObject *array = native ? PyType_GenericAlloc(type, 0) : NULL;
    if (array)
        ((Array *)array)->native = native;
    else
        Py_XDECREF(native);
    return array;
}

/* Whether it is a Python number and, if an integer, in the range of the array's integers. */
static int fits(PyObject *x, PyArrayObject *native)
{
    int dtype = PyArray_TYPE(native), sign = PyTypeNum_ISSIGNED(dtype), over = 0;
    long long rest = 0; /* the bits beyond those of a number without its sign */
    if (PyLong_CheckExact(x) && PyTypeNum_ISINTEGER(dtype))
        rest = PyLong_AsLongLongAndOverflow(x, &over) >> (8 * PyArray_ITEMSIZE(native) - 1);
    else if (!PyLong_CheckExact(x) && !PyFloat_CheckExact(x) && !PyBool_Check(x))
        over = !PyComplex_CheckExact(x);
    return PyTypeNum_ISNUMBER(dtype) && !over && rest >= -sign && rest <= !sign;
}

static PyObject *call(PyObject *table, int which, PyObject *a, PyObject *b)
{
    PyObject *both[] = {a, b};
    return PyObject_Vectorcall(PyTuple_GetItem(table, which), both, b ? 2 : 1, NULL);
}

/* The result of an operator for one operand or two, either of which may be the Array. */
static PyObject *operate(int which, PyObject *a, PyObject *b)
{
    PyObject *x = native_of(a), *y = native_of(b), *result = NULL;
    if (!x && y && fits(a, (PyArrayObject *)y))
        x = Py_NewRef(a);
    else if (x && !y && b && fits(b, (PyArrayObject *)x))
        y = Py_NewRef(b);
    if (x && (y || !b))
        result = wrapped(call(functions, which, x, y));
    AB_DROP(x, y);
    if (result || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_ValueError)))
        return result;
    PyErr_Clear(); /* the Python method tries again, with the namespace's function */
    if (is_ours(a))
        return call(methods, which, a, b);
    if (which > of_invert && is_ours(b)) /* else there is no reflected form */
        return call(reflected, which, b, a);
    return b ? Py_NewRef(Py_NotImplemented) : (PyErr_BadArgument(), NULL);
}

#define UNARY_SLOT(name) \
    static PyObject *name##_(PyObject *a) { return operate(of_##name, a, NULL); }
#define BINARY_SLOT(name) \
    static PyObject *name##_(PyObject *a, PyObject *b) { return operate(of_##name, a, b); }
UNARY(UNARY_SLOT)
BINARY(BINARY_SLOT)
static PyObject *compare(PyObject *a, PyObject *b, int which) { return operate(which, a, b); }
static PyObject *power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return modulus == Py_None ? operate(of_power, a, b) : Py_NewRef(Py_NotImplemented);
}

static int is_plain(PyObject *key)
{
    return PySlice_Check(key) || PyLong_CheckExact(key) || key == Py_None || key == Py_Ellipsis;
}

/* An index that NumPy takes as it is; NULL if Python must handle it. */
static PyObject *index_of(PyObject *key)
{
    Py_ssize_t parts = PyTuple_CheckExact(key) ? PyTuple_Size(key) : 0;
    int plain = parts || is_plain(key);
    while (plain && parts--)
        plain = is_plain(PyTuple_GetItem(key, parts));
    PyObject *index = plain ? Py_NewRef(key) : native_of(key);
    if (index && !plain && PyArray_TYPE((PyArrayObject *)index) > NPY_ULONGLONG)
        Py_CLEAR(index); /* neither bools nor integers */
    return index;
}

static PyObject *getitem(PyObject *self, PyObject *key)
{
    PyObject *x = native_of(self), *index = x ? index_of(key) : NULL;
    PyObject *result = index ? wrapped(PyObject_GetItem(x, index)) : NULL;
    AB_DROP(x, index);
    if (result || PyErr_Occurred())
        return result;
    return is_ours(self) ? call(methods, of_getitem, self, key) : (PyErr_BadArgument(), NULL);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Array *)self)->native);
    return 0;
}
static int clear(PyObject *self)
{
    Py_CLEAR(((Array *)self)->native);
    return 0;
}
static void dealloc(PyObject *self)
{
    PyTypeObject *cls = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(cls);
}

static PyMemberDef members[] = {{"_native", T_OBJECT_EX, offsetof(Array, native), 0, NULL}, {0}};
#define SLOT(name) {Py_nb_##name, name##_},
static PyType_Slot slots[] = {
    UNARY(SLOT) BINARY(SLOT) {Py_nb_power, power}, {Py_tp_richcompare, compare},
    {Py_mp_subscript, getitem}, {Py_tp_members, members}, {Py_tp_traverse, traverse},
    {Py_tp_clear, clear}, {Py_tp_dealloc, dealloc}, {0, NULL}};
static PyType_Spec spec = {"arraybridge._native.Slots", sizeof(Array), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

static PyObject *slots_of(PyObject *module, PyObject *args)
{
    Py_INCREF(args); /* for good, like the class */
    int read = PyArg_ParseTuple(args, "OOOO", &type, &functions, &methods, &reflected);
    return read ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef ab_operators_methods[] = {
    {"slots_of", slots_of, METH_VARARGS, "slots_of(class, functions, methods, reflected)"},
    {0}};

int ab_operators_setup(PyObject *module)
{
    PyObject *root = PyType_FromSpec(&spec); /* kept for good */
    return root ? PyModule_AddObjectRef(module, "Slots", root) : -1;
}
