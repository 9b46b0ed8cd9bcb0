/* What the files of arraybridge._native share. CPython's limited API, from 3.11 on. */
#ifndef ARRAYBRIDGE_NATIVE_H
#define ARRAYBRIDGE_NATIVE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL arraybridge_numpy
#ifndef ARRAYBRIDGE_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030C0000 /* there, and promised from 3.12 on */
PyAPI_FUNC(PyObject *) PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);
PyAPI_FUNC(PyObject *) PyVectorcall_Call(PyObject *, PyObject *, PyObject *);
PyAPI_FUNC(PyObject *) PyObject_VectorcallMethod(PyObject *, PyObject *const *, size_t, PyObject *);
#endif

/* Each file's functions, and what it does when the module is made: 0, or -1 with an exception. */
extern PyMethodDef ab_lookup_methods[], ab_signatures_methods[];
PyObject *ab_bound(PyMethodDef *function, PyObject *args, Py_ssize_t size);
int ab_lookup_setup(PyObject *module);
int ab_signatures_setup(void);

#endif
