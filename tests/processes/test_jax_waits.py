"""JAX's threads end what they computed from while the main thread waits for the result."""

import pytest

from tests.support.processes import python

PROGRAM = """
import numpy as np, jax, jax.numpy as jnp
import arraybridge as ab

step = jax.jit(lambda x: jnp.tanh(x @ x.T).sum(axis=0))
for number in range(300):
    x = ab.convert(np.ones((64, 64), np.float32), "jax")
    y = step(x)
    del x  # what is computed has the last reference to its memory
    assert ab.inspect(y).data  # waits for it
print("done")
"""


def test_a_deleter_on_a_thread_of_jax_gets_the_gil():
    pytest.importorskip("jax")
    assert "done" in python(PROGRAM)
