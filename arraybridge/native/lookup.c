/* The look-ups of the core's table; `arraybridge/native/lookup.py` does the same without this file.

   An entry of the table computes an array's signature, and calls the function known for it. A
   `Front` replaces a public function, and finds the entry by the keywords as spelled. The Python
   function handles everything that is not known yet. */
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

static PyObject *run(PyObject *known, PyObject *x)
{
    PyObject *key = call_one(AB_KNOWN(known, 0), x), *convert = AB_KNOWN(known, 3);
    PyObject *edge = key ? found(AB_KNOWN(known, 1), key) : NULL;
    if (!edge && !PyErr_Occurred())
        edge = call_one(AB_KNOWN(known, 2), key);
    Py_XDECREF(key);
    PyObject *result = edge ? call_one(edge, x) : NULL;
    int again = result == Py_None
                || (edge && !result && edge != convert && PyErr_ExceptionMatches(PyExc_Exception)
                    && !PyErr_ExceptionMatches(AB_KNOWN(known, 4)));
    Py_XDECREF(edge);
    if (!again)
        return result;
    PyErr_Clear();
    Py_XDECREF(result);
    return call_one(convert, x);
}

static PyObject *view(PyObject *known, PyObject *x)
{
    PyObject *runs = AB_KNOWN(known, 1), *views = AB_KNOWN(known, 2);
    PyObject *key = call_one(AB_KNOWN(known, 0), x), *edge = key ? found(views, key) : NULL;
    if (!edge && !PyErr_Occurred() && !PyDict_Contains(runs, key)) {
        PyObject *made = call_one(AB_KNOWN(known, 3), key);
        Py_XDECREF(made);
        edge = made ? found(views, key) : NULL;
    }
    Py_XDECREF(key);
    PyObject *result = edge ? call_one(edge, x) : NULL;
    Py_XDECREF(edge);
    if (edge && !result && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* `convert` raises a better error */
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

static PyObject *with_modes(PyObject *known, PyObject *x)
{
    PyObject *signature = call_one(AB_KNOWN(known, 0), x);
    PyObject *modes = signature ? PyObject_Vectorcall(AB_KNOWN(known, 1), NULL, 0, NULL) : NULL;
    PyObject *key = modes ? PyTuple_Pack(2, signature, modes) : NULL;
    AB_DROP(signature, modes);
    return key;
}

static PyObject *or_else(PyObject *known, PyObject *x)
{
    PyObject *result = call_one(AB_KNOWN(known, 0), x);
    if (result || !PyErr_ExceptionMatches(AB_KNOWN(known, 1)))
        return result;
    PyErr_Clear();
    return call_one(AB_KNOWN(known, 2), x);
}

AB_BOUND(run, 5)
AB_BOUND(view, 4)
AB_BOUND(with_modes, 2)
AB_BOUND(or_else, 3)

/* The public functions. */
enum { TO, DEVICE, COPY, ALIAS_READONLY, CASTING, ORDER, DTYPE_CLASS, DTYPE, WORDS };

/* It lives as long as the process, and so do the arguments of `front` that it borrows. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *dict, *weak, *function, *records, *observers, *key, *devices;
    PyObject *names[WORDS], *defaults[WORDS];
} Front;

static PyTypeObject *front_type;
static PyObject *method_type; /* types.MethodType */

/* The keywords in the order of the table's keys; 0 if only Python can read them. */
static int read_keywords(Front *self, PyObject *const *values, PyObject *names, PyObject **words)
{
    for (Py_ssize_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int word = DEVICE;
        while (word < WORDS && self->names[word] != name) /* interned, except from **{...} */
            word++;
        if (word == WORDS)
            return 0;
        words[word] = values[i];
    }
    PyObject *copy = words[COPY], *kind = (PyObject *)Py_TYPE(words[DEVICE]);
    words[DTYPE_CLASS] = (PyObject *)Py_TYPE(words[DTYPE]);
    return (copy == Py_None || copy == Py_True || copy == Py_False)
           && (words[DEVICE] == Py_None || PySet_Contains(self->devices, kind) == 1);
}

static PyObject *key_of(Front *self, PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    PyObject *words[WORDS], *key;
    if (self->key != Py_None)
        return given == 1 && !names ? Py_NewRef(self->key) : NULL;
    if (given != 2)
        return NULL;
    if (!names)
        return Py_NewRef(values[1]);
    for (int i = 0; i < WORDS; i++)
        words[i] = self->defaults[i];
    words[TO] = values[1];
    if (!read_keywords(self, values + given, names, words) || !(key = PyTuple_New(WORDS)))
        return NULL;
    for (int i = 0; i < WORDS; i++)
        PyTuple_SetItem(key, i, Py_NewRef(words[i]));
    return key;
}

/* A function of the entry for an array's type and a key; NULL without one, or for an interrupt. */
static PyObject *entry_function(PyObject *records, PyObject *x, PyObject *key, PyObject *name)
{
    PyObject *record = PyDict_GetItemWithError(records, (PyObject *)Py_TYPE(x));
    PyObject *table = record && key ? PyObject_GetAttr(record, ab_names.table) : NULL;
    PyObject *entry = table ? found(table, key) : NULL;
    PyObject *function = entry ? PyObject_GetAttr(entry, name) : NULL;
    AB_DROP(table, entry);
    if (!function && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* a key without a hash, an entry without views */
    return function;
}

/* The view that an array's entry for a target makes; NULL without one, maybe with an exception. */
PyObject *ab_view(PyObject *records, PyObject *x, PyObject *to)
{
    PyObject *function = entry_function(records, x, to, ab_names.view);
    PyObject *made = function ? call_one(function, x) : NULL;
    Py_XDECREF(function);
    if (made == Py_None)
        Py_CLEAR(made);
    return made;
}

static PyObject *front_call(PyObject *object, PyObject *const *values, size_t flags,
                            PyObject *names)
{
    Front *self = (Front *)object;
    Py_ssize_t given = flags & ~((size_t)1 << (8 * sizeof(size_t) - 1));
    PyObject *function = NULL;
    if (given && !PyList_Size(self->observers)) { /* they read the Python frame */
        PyObject *key = key_of(self, values, given, names);
        function = entry_function(self->records, values[0], key, ab_names.run);
        Py_XDECREF(key);
    }
    if (!function)
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->function, values, given, names);
    PyObject *result = call_one(function, values[0]);
    Py_DECREF(function);
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

/* As an attribute of a class it is a method, like functions. */
static PyObject *front_get(PyObject *self, PyObject *object, PyObject *type)
{
    PyObject *both[2] = {self, object};
    if (!object || object == Py_None)
        return Py_NewRef(self);
    return PyObject_Vectorcall(method_type, both, 2, NULL);
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
    {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, front_get}, {Py_tp_repr, front_repr},
    {0, NULL},
};
static PyType_Spec front_spec = {
    "arraybridge._native.Front", sizeof(Front), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, front_slots,
};

static PyObject *front(PyObject *module, PyObject *args)
{
    PyObject *function, *records, *observers, *key, *names, *defaults, *devices;
    if (!PyArg_ParseTuple(args, "OO!O!OO!O!O", &function, &PyDict_Type, &records, &PyList_Type,
                          &observers, &key, &PyTuple_Type, &names, &PyTuple_Type, &defaults,
                          &devices))
        return NULL;
    if (key == Py_None && (PyTuple_Size(names) != WORDS || PyTuple_Size(defaults) != WORDS))
        return PyErr_Format(PyExc_ValueError, "a key has %d parts", WORDS);
    Front *self = (Front *)PyType_GenericAlloc(front_type, 0);
    if (!self)
        return NULL;
    Py_INCREF(args);
    self->call = front_call;
    self->function = function, self->records = records, self->observers = observers;
    self->key = key, self->devices = devices;
    for (int i = 0; key == Py_None && i < WORDS; i++) {
        self->names[i] = PyTuple_GetItem(names, i);
        self->defaults[i] = PyTuple_GetItem(defaults, i);
    }
    return (PyObject *)self;
}

PyMethodDef ab_lookup_methods[] = {
    {"run_of", run_of, METH_VARARGS, "run_of(sign, runs, new, convert, final)"},
    {"view_of", view_of, METH_VARARGS, "view_of(sign, runs, views, new)"},
    {"with_modes", with_modes_of, METH_VARARGS, "with_modes(signature, modes)"},
    {"or_else", or_else_of, METH_VARARGS, "or_else(function, error, other)"},
    {"front", front, METH_VARARGS,
     "front(function, records, observers, key, names, defaults, devices): the function with its "
     "look-up before it, by the key, or else by keywords with these names and defaults."},
    {0}};

int ab_lookup_setup(void)
{
    PyObject *types = PyImport_ImportModule("types");
    method_type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
    Py_XDECREF(types);
    front_type = method_type ? (PyTypeObject *)PyType_FromSpec(&front_spec) : NULL;
    return front_type ? 0 : -1;
}
