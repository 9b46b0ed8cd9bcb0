/* arraybridge._native: code that must be native, or is called too often to be Python. */
#define ARRAYBRIDGE_MODULE
#include "native.h"

AbNames ab_names;
static const char *const texts[] = {
#define AB_TEXT(name) #name,
    AB_NAMES(AB_TEXT)
};

static int execute(PyObject *module)
{
    PyMethodDef *const methods[] = {ab_release_methods, ab_exports_methods, ab_lookup_methods,
                                    ab_arrays_methods, ab_blocks_methods, ab_copies_methods, ab_threads_methods};
    static int made; /* the files' statics belong to the first */
    if (made++)
        return PyErr_SetString(PyExc_ImportError, "it is loaded once in a process"), -1;
    import_array1(-1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!(((PyObject **)&ab_names)[i] = PyUnicode_InternFromString(texts[i])))
            return -1;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (PyModule_AddFunctions(module, methods[i]))
            return -1;
    ab_release_setup();
    return ab_lookup_setup() || ab_threads_setup() || ab_blocks_setup() ? -1 : 0;
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
