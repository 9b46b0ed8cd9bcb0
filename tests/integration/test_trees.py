"""``ab.tree`` of what Flax, Equinox, Optax, TensorDict and Transformers call a tree."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arraybridge import tree
from tests.support.optional import needs

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # of their imports

X = jnp.linspace(-1, 1, 6, dtype=jnp.float32).reshape(3, 2)


def there_and_back(given):
    """Return a tree in PyTorch, and again in JAX: bit for bit, and with the same structure."""
    moved = tree.convert(given, "torch")
    for path, x in tree.leaves(given).items():
        assert isinstance(tree.leaves(moved)[path], torch.Tensor) == isinstance(x, jax.Array)
    back = tree.convert(moved, "jax")
    assert jax.tree.structure(back) == jax.tree.structure(given)
    assert jax.tree.all(jax.tree.map(np.array_equal, back, given))
    return moved, back


@needs("flax")
def test_flax():
    from flax import linen, nnx
    from flax.core import freeze

    model = linen.Dense(3)
    variables = model.init(jax.random.key(0), X)
    for given in (variables, freeze(variables)):
        moved, back = there_and_back(given)
        assert type(moved) is type(given)
        assert np.array_equal(model.apply(back, X), model.apply(variables, X))
    assert [*tree.leaves(variables)] == ["params.kernel", "params.bias"]

    layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    moved, _ = there_and_back(nnx.state(layer))
    assert isinstance(moved["kernel"], nnx.Param)
    _, back = there_and_back(layer)
    assert np.array_equal(back(X), layer(X))


@needs("equinox", "optax")
def test_equinox_and_optax():
    import equinox
    import optax

    model = equinox.nn.MLP(2, 3, 4, 1, key=jax.random.key(0))
    moved = tree.convert(model, "torch")
    assert isinstance(moved.layers[0].weight, torch.Tensor)
    assert moved.activation is model.activation
    assert np.array_equal(jax.vmap(tree.convert(moved, "jax"))(X), jax.vmap(model)(X))
    params = {"w": jnp.ones(2)}
    state = optax.chain(optax.clip(1.0), optax.adamw(1e-3)).init(params)
    moved, _ = there_and_back(state)
    assert "[1][0].mu.w" in tree.leaves(moved)


@needs("tensordict")
def test_tensordict():
    from tensordict import TensorDict, lazy_stack

    given = TensorDict(
        {"a": torch.ones(3, 2), "b": {"c": torch.ones(3)}, "n": "text"}, batch_size=[3]
    )
    for x in (given, lazy_stack([given, given])[0]):
        moved = tree.convert({"x": x}, "numpy")["x"]
        assert (type(moved), type(moved["b"]), moved["n"]) == (dict, dict, "text")
        assert np.shares_memory(moved["a"], given["a"].numpy())
    assert TensorDict(tree.convert(given, "torch", dtype="float16"), [3]).shape == (3,)


@needs("transformers")
def test_transformers():
    from transformers import BatchEncoding
    from transformers.modeling_outputs import BaseModelOutput

    batch = BatchEncoding({"input_ids": np.ones((1, 2), np.int64), "text": ["a"]})
    moved = tree.convert(batch, "torch")
    assert type(moved) is BatchEncoding
    assert isinstance(moved.input_ids, torch.Tensor)
    assert isinstance(batch.input_ids, np.ndarray)
    output = BaseModelOutput(last_hidden_state=torch.ones(2), hidden_states=(torch.ones(1),))
    moved = tree.convert(output, "numpy")
    assert type(moved) is BaseModelOutput
    assert isinstance(moved.last_hidden_state, np.ndarray)
    assert isinstance(moved[1][0], np.ndarray)
