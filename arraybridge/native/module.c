/* arraybridge._native: what must be native, or is called too often to be Python. */
#define ARRAYBRIDGE_MODULE
#include "native.h"

static int execute(PyObject *module)
{
    import_array1(-1);
    if (ab_release_setup() || ab_exports_setup() || ab_lookup_setup(module) || ab_arrays_setup()
        || ab_operators_setup(module) || ab_threads_setup())
        return -1;
    PyMethodDef *const all[] = {ab_release_methods, ab_exports_methods, ab_lookup_methods,
                                ab_arrays_methods, ab_operators_methods, ab_threads_methods};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (PyModule_AddFunctions(module, all[i]))
            return -1;
    return 0;
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
    PyModuleDef_HEAD_INIT, "_native", "The native code of arraybridge.", 0, NULL, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
