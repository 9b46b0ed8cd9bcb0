/* arraybridge._native: what must be native, or is called too often to be Python. */
#define ARRAYBRIDGE_MODULE
#include "native.h"

AbNames ab_names;
static const char *const texts[] = {
#define AB_TEXT(name) #name,
    AB_NAMES(AB_TEXT)
};

/* A function of an array with what it knows, the arguments, which are its own to keep. */
static PyObject *bind(PyObject *which, PyObject *args)
{
    AbBound *bound = PyCapsule_GetPointer(which, NULL);
    if (!bound || PyTuple_Size(args) == bound->size)
        return bound ? PyCFunction_NewEx(&bound->function, args, NULL) : NULL;
    return PyErr_Format(PyExc_TypeError, "expected %s%s", bound->function.ml_name,
                        bound->function.ml_doc);
}

static int add_bound(PyObject *module, AbBound *bound)
{
    static PyMethodDef bind_def = {"bind", bind, METH_VARARGS, NULL};
    for (; bound->size; bound++) {
        PyObject *which = PyCapsule_New(bound, NULL, NULL);
        PyObject *made = which ? PyCFunction_NewEx(&bind_def, which, NULL) : NULL;
        Py_XDECREF(which);
        int failed = made ? PyModule_AddObjectRef(module, bound->function.ml_name, made) : -1;
        Py_XDECREF(made);
        if (failed)
            return -1;
    }
    return 0;
}

static int execute(PyObject *module)
{
    PyMethodDef *const methods[] = {ab_release_methods, ab_exports_methods, ab_lookup_methods,
                                    ab_arrays_methods, ab_operators_methods, ab_threads_methods};
    import_array1(-1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!(((PyObject **)&ab_names)[i] = PyUnicode_InternFromString(texts[i])))
            return -1;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (PyModule_AddFunctions(module, methods[i]))
            return -1;
    ab_release_setup();
    ab_exports_setup();
    return ab_lookup_setup() || ab_operators_setup(module) || ab_threads_setup()
           || add_bound(module, ab_lookup_bound) || add_bound(module, ab_arrays_bound) ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native code of arraybridge.", 0, NULL, slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
