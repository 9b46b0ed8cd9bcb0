/* The look-ups of the core's table, as `core/table.py` does them in Python.

   An entry of the table computes an array's signature, and calls the function known for it. A
   `Front` is put before a public function, which handles everything that the table lacks. */
#include "native.h"
#include <structmember.h>

#ifndef Py_TPFLAGS_HAVE_VECTORCALL /* exists in 3.11, public from 3.12 on */
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
typedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *);
#endif

static PyObject *call_one(PyObject *function, PyObject *x)
{
    return PyObject_Vectorcall(function, &x, 1, NULL);
}

/* A new reference to a dict's value; NULL, with or without an exception. */
static PyObject *found(PyObject *dict, PyObject *key)
{
    PyObject *value = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(value);
    return value;
}

enum { SIGN, STATE, RUNS, NEW, FAILED };

/* The signature of an array, together with a state of the process that is not false. */
static PyObject *key_with_state(PyObject *known, PyObject *x, DLTensor *t)
{
    PyObject *ask = AB_KNOWN(known, STATE), *key = ab_key(AB_KNOWN(known, SIGN), x, t), *both = key;
    PyObject *state = key && ask != Py_None ? PyObject_Vectorcall(ask, NULL, 0, NULL) : NULL;
    int unusual = state ? PyObject_IsTrue(state) : 0;
    if (unusual || (ask != Py_None && !state)) {
        both = unusual > 0 ? PyTuple_Pack(2, key, state) : NULL;
        Py_XDECREF(key);
    }
    Py_XDECREF(state);
    return both;
}

static PyObject *run(PyObject *known, PyObject *x)
{
    DLTensor t;
    PyObject *key = key_with_state(known, x, &t);
    PyObject *convert = key ? found(AB_KNOWN(known, RUNS), key) : NULL;
    if (key && !convert && !PyErr_Occurred()) {
        PyObject *both[2] = {x, key};
        convert = PyObject_Vectorcall(AB_KNOWN(known, NEW), both, 2, NULL);
        t.data = NULL; /* it may have changed */
    }
    Py_XDECREF(key);
    PyObject *result = convert ? ab_applied(convert, x, &t) : NULL;
    if (convert && !result && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        if (trace)
            PyException_SetTraceback(error, trace);
        PyObject *both[2] = {x, error};
        result = PyObject_Vectorcall(AB_KNOWN(known, FAILED), both, 2, NULL); /* raises it */
        AB_DROP(type, error, trace);
    }
    Py_XDECREF(convert);
    return result;
}

static PyObject *then(PyObject *known, PyObject *x)
{
    PyObject *made = call_one(AB_KNOWN(known, 0), x);
    if (!made || made == Py_None)
        return made;
    PyObject *result = call_one(AB_KNOWN(known, 1), made);
    Py_DECREF(made);
    return result;
}

static PyObject *or_else(PyObject *known, PyObject *x)
{
    PyObject *made = call_one(AB_KNOWN(known, 0), x);
    if (made ? made != Py_None : !PyErr_ExceptionMatches(AB_KNOWN(known, 2)))
        return made;
    Py_XDECREF(made);
    PyErr_Clear();
    return call_one(AB_KNOWN(known, 1), x);
}

AB_BOUND(run)
AB_BOUND(then)
AB_BOUND(or_else)

/* It lives as long as the process, and so do the arguments of `front` that it borrows. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *dict, *weak, *function, *records, *key, *entry_of_call, *plain;
} Front;

static PyTypeObject *front_type;

/* A new reference to the key of a call: `to`, or also names and values of keywords; else NULL. */
static PyObject *key_of(Front *self, PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    Py_ssize_t n = names ? PyTuple_Size(names) : 0;
    if (self->key != Py_None)
        return given == 1 && !n ? Py_NewRef(self->key) : NULL;
    if (given != 2)
        return NULL;
    if (!n)
        return Py_NewRef(values[1]);
    for (Py_ssize_t i = 0; i < n; i++) /* equal values of other types may be errors */
        if (PySet_Contains(self->plain, (PyObject *)Py_TYPE(values[2 + i])) != 1)
            return NULL;
    PyObject *key = PyTuple_New(2 + n);
    if (key) {
        PyTuple_SetItem(key, 0, Py_NewRef(values[1]));
        PyTuple_SetItem(key, 1, Py_NewRef(names));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SetItem(key, 2 + i, Py_NewRef(values[2 + i]));
    }
    return key;
}

/* Call the function, and remember what converts for keywords. */
static PyObject *call_new(Front *self, PyObject *const *values, Py_ssize_t given, PyObject *names,
                          PyObject *record, PyObject *key)
{
    PyObject *result = PyObject_Vectorcall(self->function, values, given, names);
    if (!result || !names || !record || !key || PyTuple_Size(names) > 6)
        return result;
    PyObject *all[8] = {(PyObject *)Py_TYPE(values[0])};
    for (Py_ssize_t i = 1, n = given + PyTuple_Size(names); i < n; i++)
        all[i] = values[i];
    PyObject *entry = PyObject_Vectorcall(self->entry_of_call, all, given, names);
    PyObject *run = entry ? PyObject_GetAttr(entry, ab_names.run) : NULL;
    if (PyDict_Size(record) > 256)
        PyDict_Clear(record);
    if (!run || PyDict_SetItem(record, key, run))
        Py_CLEAR(result);
    AB_DROP(entry, run);
    return result;
}

static PyObject *front_call(PyObject *object, PyObject *const *values, size_t flags,
                            PyObject *names)
{
    Front *self = (Front *)object;
    Py_ssize_t given = flags & ~((size_t)1 << (8 * sizeof(size_t) - 1));
    PyObject *key = given ? key_of(self, values, given, names) : NULL;
    PyObject *record = key ? found(self->records, (PyObject *)Py_TYPE(values[0])) : NULL;
    PyObject *run = record ? found(record, key) : NULL, *result = NULL;
    if (!run && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* a key without a hash */
    if (run)
        result = call_one(run, values[0]);
    else if (!PyErr_Occurred())
        result = call_new(self, values, given, names, record, key);
    AB_DROP(key, record, run);
    return result;
}

static PyObject *front_repr(PyObject *self)
{
    return PyObject_Repr(((Front *)self)->function);
}
static PyObject *front_reduce(PyObject *self, PyObject *unused)
{
    return PyObject_GetAttr(self, ab_names.__qualname__); /* pickled by name, like functions */
}

static PyMemberDef front_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Front, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Front, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Front, weak), READONLY, NULL}, {0}};
static PyGetSetDef front_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {0}};
static PyMethodDef front_methods[] = {{"__reduce__", front_reduce, METH_NOARGS, NULL}, {0}};
static PyType_Slot front_slots[] = {
    {Py_tp_members, front_members}, {Py_tp_getset, front_getset}, {Py_tp_methods, front_methods},
    {Py_tp_call, PyVectorcall_Call}, {Py_tp_repr, front_repr},
    {0, NULL},
};
static PyType_Spec front_spec = {
    "arraybridge._native.Front", sizeof(Front), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, front_slots,
};

static PyObject *front(PyObject *module, PyObject *args)
{
    PyObject *function, *records, *key, *entry_of_call, *plain;
    if (!PyArg_ParseTuple(args, "OO!OOO", &function, &PyDict_Type, &records, &key, &entry_of_call,
                          &plain))
        return NULL;
    Front *self = (Front *)PyType_GenericAlloc(front_type, 0);
    if (!self)
        return NULL;
    Py_INCREF(args);
    self->call = front_call, self->function = function, self->records = records;
    self->key = key, self->entry_of_call = entry_of_call, self->plain = plain;
    return (PyObject *)self;
}

PyMethodDef ab_lookup_methods[] = {
    {"run_of", run_of, METH_VARARGS, "run_of(sign, state, runs, new, failed)"},
    {"then", then_of, METH_VARARGS, "then(first, second)"},
    {"or_else", or_else_of, METH_VARARGS, "or_else(first, second, errors)"},
    {"front", front, METH_VARARGS,
     "front(function, records, key, entry_of_call, plain): the function with a look-up before it."},
    {0}};

int ab_lookup_setup(void)
{
    front_type = (PyTypeObject *)PyType_FromSpec(&front_spec);
    return front_type ? 0 : -1;
}
