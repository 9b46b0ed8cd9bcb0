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
PyAPI_FUNC(PyObject *) PyObject_VectorcallMethod(PyObject *, PyObject *const *, size_t, PyObject *);
#endif

/* A row of a PyMethodDef for a function of METH_FASTCALL, with or without keywords. */
#define FASTCALL(name, doc) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, doc}
#define KEYWORDS(name, doc) \
    {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL | METH_KEYWORDS, doc}

#endif
