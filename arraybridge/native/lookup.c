/* The look-ups of the core's table: what `arraybridge/native/lookup.py` does without this file.

   A `Lookup` is what the entries of the table are derived from: it signs an array, and calls what
   is known for its signature. A `Front` stands before a public function, and finds the entry by the
   keywords as they are spelled. Whatever is not known yet is the Python function's. */
#include "native.h"
#include <structmember.h>

#ifndef Py_TPFLAGS_HAVE_VECTORCALL /* there, and promised from 3.12 on */
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
typedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *);
#endif

static PyTypeObject *lookup_type;
static PyObject *method_type; /* types.MethodType */
static PyObject *str_new, *str_convert, *str_final, *str_table, *str_run, *str_qualname;

/* The entries. */
typedef struct {
    PyObject_HEAD
    PyObject *sign, *runs, *views;
} Lookup;

static PyObject *call_one(PyObject *function, PyObject *x)
{
    return PyObject_Vectorcall(function, &x, 1, NULL);
}

static PyObject *call_method(PyObject *self, PyObject *name, PyObject *argument)
{
    PyObject *both[2] = {self, argument};
    return PyObject_VectorcallMethod(name, both, 2, NULL);
}

/* A new reference to what a dict has; NULL, with an exception or without one. */
static PyObject *found(PyObject *dict, PyObject *key)
{
    PyObject *value = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(value);
    return value;
}

static int is_ready(Lookup *self)
{
    if (self->sign && self->runs && self->views)
        return 1;
    PyErr_SetString(PyExc_AttributeError, "the entry has no sign, runs or views yet");
    return 0;
}

/* Whether the exception that is set says what is wrong; else another try does, and it is cleared. */
static int is_final(Lookup *self, PyObject *run)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return 1;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *convert = PyObject_GetAttr((PyObject *)self, str_convert);
    PyObject *final = convert ? PyObject_GetAttr((PyObject *)self, str_final) : NULL;
    int yes = final ? PyObject_RichCompareBool(run, convert, Py_EQ) : -1;
    if (!yes)
        yes = PyErr_GivenExceptionMatches(type, final);
    Py_XDECREF(convert);
    Py_XDECREF(final);
    if (yes > 0)
        PyErr_Restore(type, value, trace);
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    return yes != 0;
}

static PyObject *run(PyObject *object, PyObject *x)
{
    Lookup *self = (Lookup *)object;
    PyObject *key = is_ready(self) ? call_one(self->sign, x) : NULL;
    if (!key)
        return NULL;
    PyObject *known = found(self->runs, key);
    if (!known && !PyErr_Occurred())
        known = call_method(object, str_new, key);
    Py_DECREF(key);
    if (!known)
        return NULL;
    PyObject *result = call_one(known, x);
    if (!result && !is_final(self, known))
        result = call_method(object, str_convert, x);
    Py_DECREF(known);
    return result;
}

static PyObject *view(PyObject *object, PyObject *x)
{
    Lookup *self = (Lookup *)object;
    PyObject *key = is_ready(self) ? call_one(self->sign, x) : NULL;
    if (!key)
        return NULL;
    PyObject *edge = found(self->views, key), *result = NULL;
    if (!edge && !PyErr_Occurred() && !PyDict_Contains(self->runs, key)) {
        PyObject *made = call_method(object, str_new, key);
        Py_XDECREF(made);
        edge = made ? found(self->views, key) : NULL;
    }
    Py_DECREF(key);
    if (!edge)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    result = call_one(edge, x);
    Py_DECREF(edge);
    if (!result && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear(); /* `convert` says what is wrong */
        return Py_NewRef(Py_None);
    }
    return result;
}

static int lookup_traverse(PyObject *object, visitproc visit, void *arg)
{
    Lookup *self = (Lookup *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->sign);
    Py_VISIT(self->runs);
    Py_VISIT(self->views);
    return 0;
}

static int lookup_clear(PyObject *object)
{
    Lookup *self = (Lookup *)object;
    Py_CLEAR(self->sign);
    Py_CLEAR(self->runs);
    Py_CLEAR(self->views);
    return 0;
}

static void end(PyObject *object, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static void lookup_dealloc(PyObject *object)
{
    end(object, lookup_clear);
}

static PyMemberDef lookup_members[] = {
    {"sign", T_OBJECT_EX, offsetof(Lookup, sign), 0, NULL},
    {"runs", T_OBJECT_EX, offsetof(Lookup, runs), 0, NULL},
    {"views", T_OBJECT_EX, offsetof(Lookup, views), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef lookup_methods[] = {
    {"run", run, METH_O, "Convert an array."},
    {"view", view, METH_O, "Return the view that an edge makes of an array; None without one."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot lookup_slots[] = {
    {Py_tp_members, lookup_members},   {Py_tp_methods, lookup_methods},
    {Py_tp_traverse, lookup_traverse}, {Py_tp_clear, lookup_clear},
    {Py_tp_dealloc, lookup_dealloc},   {0, NULL},
};
static PyType_Spec lookup_spec = {
    "arraybridge._native.Lookup", sizeof(Lookup), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, lookup_slots,
};

/* The public functions. */
enum { TO, DEVICE, COPY, ALIAS_READONLY, CASTING, ORDER, DTYPE_CLASS, DTYPE, WORDS };

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *dict, *function, *known, *observers;
    PyObject *key;                   /* of a function of an array alone */
    PyObject *names[WORDS], *defaults[WORDS], *devices;
} Front;

/* The keywords in the order of the table's keys; 0 for those that only Python understands. */
static int read_keywords(Front *self, PyObject *const *values, PyObject *names, PyObject **words)
{
    for (Py_ssize_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int word = DEVICE;
        while (word < WORDS && self->names[word] != name) /* both are interned, but for **{...} */
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
    if (self->key)
        return given == 1 && !names ? Py_NewRef(self->key) : NULL;
    if (given == 2 && !names)
        return Py_NewRef(values[1]);
    PyObject *words[WORDS];
    for (int i = 0; i < WORDS; i++)
        words[i] = self->defaults[i];
    if (given != 2)
        return NULL;
    words[TO] = values[1];
    if (!read_keywords(self, values + given, names, words))
        return NULL;
    PyObject *key = PyTuple_New(WORDS);
    for (int i = 0; key && i < WORDS; i++)
        PyTuple_SetItem(key, i, Py_NewRef(words[i]));
    return key;
}

/* The entry of an array and the arguments; NULL, without an exception, where none is known. */
static PyObject *entry_of(Front *self, PyObject *const *values, Py_ssize_t given, PyObject *names)
{
    PyObject *record = PyDict_GetItemWithError(self->known, (PyObject *)Py_TYPE(values[0]));
    PyObject *key = record ? key_of(self, values, given, names) : NULL;
    PyObject *table = key ? PyObject_GetAttr(record, str_table) : NULL;
    PyObject *entry = table ? found(table, key) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(table);
    if (!entry)
        PyErr_Clear(); /* a key without a hash */
    return entry;
}

/* The view that the entry of an array and a target makes; NULL, maybe with an exception, without. */
PyObject *ab_view(PyObject *known, PyObject *x, PyObject *to)
{
    PyObject *record = PyDict_GetItemWithError(known, (PyObject *)Py_TYPE(x));
    PyObject *table = record ? PyObject_GetAttr(record, str_table) : NULL;
    PyObject *entry = table ? found(table, to) : NULL;
    PyObject *made = entry && PyObject_TypeCheck(entry, lookup_type) ? view(entry, x) : NULL;
    Py_XDECREF(table);
    Py_XDECREF(entry);
    if (made == Py_None)
        Py_CLEAR(made);
    return made;
}

static PyObject *front_call(PyObject *object, PyObject *const *values, size_t flags, PyObject *names)
{
    Front *self = (Front *)object;
    Py_ssize_t given = flags & ~((size_t)1 << (8 * sizeof(size_t) - 1));
    PyObject *entry = NULL;
    if (given && !PyList_Size(self->observers)) /* who look for the Python function on the stack */
        entry = entry_of(self, values, given, names);
    if (!entry)
        return PyObject_Vectorcall(self->function, values, given, names);
    PyObject *result = PyObject_TypeCheck(entry, lookup_type)
                           ? run(entry, values[0])
                           : call_method(entry, str_run, values[0]);
    Py_DECREF(entry);
    return result;
}

static int front_traverse(PyObject *object, visitproc visit, void *arg)
{
    Front *self = (Front *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->dict);
    Py_VISIT(self->function);
    Py_VISIT(self->known);
    return 0; /* the others are names, numbers and types, and live as long as the function */
}

static int front_clear(PyObject *object)
{
    Front *self = (Front *)object;
    Py_CLEAR(self->dict);
    return 0;
}

static void front_dealloc(PyObject *object)
{
    Front *self = (Front *)object;
    Py_CLEAR(self->function);
    Py_CLEAR(self->known);
    Py_CLEAR(self->observers);
    Py_CLEAR(self->key);
    Py_CLEAR(self->devices);
    for (int i = 0; i < WORDS; i++) {
        Py_CLEAR(self->names[i]);
        Py_CLEAR(self->defaults[i]);
    }
    end(object, front_clear);
}

static PyObject *front_reduce(PyObject *self, PyObject *unused)
{
    return PyObject_GetAttr(self, str_qualname); /* pickled and copied as functions are, by name */
}

/* As an attribute of a class it is a method, as functions are. */
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
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef front_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef front_methods[] = {
    {"__reduce__", front_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyObject *front_repr(PyObject *self)
{
    return PyObject_Repr(((Front *)self)->function);
}
static PyType_Slot front_slots[] = {
    {Py_tp_members, front_members},   {Py_tp_methods, front_methods}, {Py_tp_repr, front_repr},
    {Py_tp_traverse, front_traverse}, {Py_tp_clear, front_clear},
    {Py_tp_dealloc, front_dealloc},   {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getset, front_getset},     {Py_tp_descr_get, front_get},   {0, NULL},
};
static PyType_Spec front_spec = {
    "arraybridge._native.Front", sizeof(Front), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, front_slots,
};
static PyTypeObject *front_type;

/* front(function, known, observers, key, names, defaults, devices): either a key, or keywords. */
static PyObject *front(PyObject *module, PyObject *args)
{
    PyObject *function, *known, *observers, *key, *names, *defaults, *devices;
    if (!PyArg_ParseTuple(args, "OO!O!OO!O!O", &function, &PyDict_Type, &known, &PyList_Type,
                          &observers, &key, &PyTuple_Type, &names, &PyTuple_Type, &defaults,
                          &devices))
        return NULL;
    Front *self = (Front *)PyType_GenericAlloc(front_type, 0);
    if (!self)
        return NULL;
    self->call = front_call;
    self->function = Py_NewRef(function);
    self->known = Py_NewRef(known);
    self->observers = Py_NewRef(observers);
    self->key = key == Py_None ? NULL : Py_NewRef(key);
    self->devices = Py_NewRef(devices);
    for (int i = 0; i < WORDS && i < PyTuple_Size(names) && i < PyTuple_Size(defaults); i++) {
        self->names[i] = Py_NewRef(PyTuple_GetItem(names, i));
        self->defaults[i] = Py_NewRef(PyTuple_GetItem(defaults, i));
    }
    return (PyObject *)self;
}

/* A signature together with the modes of a target. */
static PyObject *sign_both(PyObject *both, PyObject *x)
{
    PyObject *key = PyTuple_New(2), *part = NULL;
    for (int i = 0; key && i < 2; i++) {
        PyObject *function = PyTuple_GetItem(both, i);
        if (!(part = PyObject_Vectorcall(function, &x, i ? 0 : 1, NULL)))
            Py_CLEAR(key);
        else
            PyTuple_SetItem(key, i, part);
    }
    return key;
}
/* A function that another one stands in for where it raises an error. */
static PyObject *try_both(PyObject *both, PyObject *x)
{
    PyObject *result = call_one(PyTuple_GetItem(both, 0), x);
    if (result || !PyErr_ExceptionMatches(PyTuple_GetItem(both, 1)))
        return result;
    PyErr_Clear();
    return call_one(PyTuple_GetItem(both, 2), x);
}
static PyMethodDef try_both_def = {"or_else", try_both, METH_O, NULL};

/* What a function gives, or another one where that is None. */
static PyObject *unless_none_call(PyObject *both, PyObject *x)
{
    PyObject *result = call_one(PyTuple_GetItem(both, 0), x);
    if (result != Py_None)
        return result;
    Py_DECREF(result);
    return call_one(PyTuple_GetItem(both, 1), x);
}
static PyMethodDef unless_none_def = {"unless_none", unless_none_call, METH_O, NULL};

/* One function after another, unless the first gives None. */
static PyObject *then_call(PyObject *both, PyObject *x)
{
    PyObject *made = call_one(PyTuple_GetItem(both, 0), x), *result;
    if (!made || made == Py_None)
        return made;
    result = call_one(PyTuple_GetItem(both, 1), made);
    Py_DECREF(made);
    return result;
}
static PyMethodDef then_def = {"then", then_call, METH_O, NULL};

static PyMethodDef sign_both_def = {"with_modes", sign_both, METH_O, NULL};

/* A function of an array with what it knows; `args` are its own to keep. */
PyObject *ab_bound(PyMethodDef *function, PyObject *args, Py_ssize_t size)
{
    if (PyTuple_Size(args) != size)
        return PyErr_Format(PyExc_TypeError, "%s takes %zd arguments", function->ml_name, size);
    return PyCFunction_NewEx(function, args, NULL);
}
static PyObject *with_modes(PyObject *module, PyObject *args)
{
    return ab_bound(&sign_both_def, args, 2);
}
static PyObject *or_else(PyObject *module, PyObject *args)
{
    return ab_bound(&try_both_def, args, 3);
}

static PyObject *unless_none(PyObject *module, PyObject *args)
{
    return ab_bound(&unless_none_def, args, 2);
}
static PyObject *then(PyObject *module, PyObject *args)
{
    return ab_bound(&then_def, args, 2);
}

PyMethodDef ab_lookup_methods[] = {
    {"front", front, METH_VARARGS, "A public function with its look-up before it."},
    {"with_modes", with_modes, METH_VARARGS, "A signature together with the modes of a target."},
    {"or_else", or_else, METH_VARARGS, "What a function gives; another one's where it raises."},
    {"unless_none", unless_none, METH_VARARGS, "What a function gives; another one's for None."},
    {"then", then, METH_VARARGS, "One function after another, unless the first gives None."},
    {NULL, NULL, 0, NULL},
};

int ab_lookup_setup(PyObject *module)
{
    if (!(str_new = PyUnicode_InternFromString("new"))
        || !(str_convert = PyUnicode_InternFromString("convert"))
        || !(str_final = PyUnicode_InternFromString("final"))
        || !(str_table = PyUnicode_InternFromString("table"))
        || !(str_run = PyUnicode_InternFromString("run"))
        || !(str_qualname = PyUnicode_InternFromString("__qualname__")))
        return -1;
    PyObject *types = PyImport_ImportModule("types");
    method_type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
    Py_XDECREF(types);
    if (!method_type)
        return -1;
    lookup_type = (PyTypeObject *)PyType_FromSpec(&lookup_spec);
    front_type = lookup_type ? (PyTypeObject *)PyType_FromSpec(&front_spec) : NULL;
    return front_type ? PyModule_AddObjectRef(module, "Lookup", (PyObject *)lookup_type) : -1;
}
