"""Planning is pure: every rule on made-up tensors, no library needed."""

from __future__ import annotations

import pytest

from arraybridge.core.records import Accepts, Route, TensorInfo
from arraybridge.dlpack import CPU, DataType, Device, DeviceType
from tests.support.planning import plan

F32 = DataType.named("float32")
CUDA = Device.parse("cuda:0")
ANY = Accepts("target", "1.0", frozenset({"float32"}), readonly=True)


def info(**changes) -> TensorInfo:
    tensor = TensorInfo("source", 0x1000, 0, (3, 4), (4, 1), F32, CPU)
    return tensor._replace(**changes)


def test_what_fits_is_a_view_of_no_bytes():
    route = plan(info(), ANY)
    assert route == Route("view", "target takes it as it is", 0, "source", "target", CPU)


@pytest.mark.parametrize(
    ("tensor", "accepts", "why"),
    [
        (info(strides=(-4, 1)), ANY._replace(strides="non-negative"), "no negative strides"),
        (info(strides=(1, 3)), ANY._replace(strides="c"), "C order only"),
        (info(strides=(8, 2)), ANY._replace(strides="compact"), "compact strides only"),
        (
            info(data=0x1008),
            ANY._replace(alignment=64),
            "aligned to 64 bytes; this is aligned to 8",
        ),
        (info(readonly=True), ANY._replace(readonly=False), "cannot mark it so"),
        (info(pending=("conj",)), ANY, "conjugate bit"),
        (info(pending=("neg", "byteorder")), ANY, "negative bit is set and its bytes"),
        (info(), ANY._replace(copies=True), "copies whatever it imports"),
    ],
)
def test_what_the_target_cannot_hold_is_copied_or_refused(tensor, accepts, why):
    route = plan(tensor, accepts)
    assert (route.kind, route.nbytes) == ("copy", 48)
    assert why in route.why
    refused = plan(tensor, accepts, copy=False)
    assert (refused.kind, refused.nbytes) == ("refuse", 0)
    assert why in refused.why


@pytest.mark.parametrize(
    ("tensor", "accepts"),
    [
        (info(strides=(1, 3)), ANY._replace(strides="compact")),
        (info(strides=(8, 2)), ANY._replace(strides="non-negative")),
        (info(shape=(1, 4), strides=(-7, 1)), ANY._replace(strides="c")),
        (info(shape=(0, 4), strides=(9, -9), data=0), ANY._replace(strides="c", alignment=64)),
        (info(readonly=True), ANY),
        (info(data=0x1040), ANY._replace(alignment=64)),
    ],
)
def test_what_only_looks_odd_is_a_view(tensor, accepts):
    assert plan(tensor, accepts).kind == "view"
    assert plan(tensor, accepts, copy=False).kind == "view"


def test_alias_readonly_asks_for_the_view():
    lossy = ANY._replace(readonly=False)
    assert plan(info(readonly=True), lossy, alias_readonly=True).kind == "view"
    refused = plan(info(readonly=True), lossy, copy=False)
    assert "alias_readonly=True" in refused.why
    # ... which helps only if nothing else prevents it
    strided = plan(info(readonly=True, strides=(-4, 1)), lossy._replace(strides="c"), copy=False)
    assert "alias_readonly" not in strided.why


@pytest.mark.parametrize("data", [0x1000, 0x1008])
def test_what_may_change_is_not_shared_with_what_never_does(data):
    accepts = ANY._replace(immutable=True, alignment=64)
    route = plan(info(data=data), accepts)
    assert route.kind == "copy"
    assert "with copy=False for the view" in route.why
    assert plan(info(data=data), accepts, alias_readonly=True) == route
    kind = "view" if data % 64 == 0 else "refuse"
    assert plan(info(data=data), accepts, copy=False).kind == kind
    assert plan(info(readonly=True), accepts).kind == "view"
    for other in (info(strides=(1, 3)), info(pending=("conj",))):  # a copy=False would not help
        route = plan(other._replace(data=data), accepts._replace(strides="c"))
        assert route.kind == "copy"
        assert "copy=False" not in route.why


def test_extents_and_strides_beyond_what_the_target_counts_in():
    small = ANY._replace(largest=40, strides="any")
    assert plan(info(strides=(10, 1)), small).kind == "view"
    for copy in (None, False):
        route = plan(info(strides=(11, 1)), small, copy=copy)
        assert route.kind == "refuse"
        assert "copy=True" in route.why
    assert plan(info(strides=(11, 1)), small, copy=True).kind == "copy"
    for copy in (None, True, False):
        route = plan(info(shape=(41,), strides=(1,)), small, copy=copy)
        assert (route.kind, "in parts" in route.why) == ("refuse", True)


@pytest.mark.parametrize(
    ("tensor", "accepts", "why"),
    [
        (info(refused="masked: fill it"), ANY, "masked: fill it"),
        (info(dtype=DataType.named("float64")), ANY, "target has no float64"),
        (
            info(dtype=DataType.named("float64")),
            ANY._replace(remedies={"float64": "enable x64"}),
            "enable x64",
        ),
        (info(dtype=DataType.named("float64")), ANY._replace(remedies={"": "cast"}), "cast"),
        (
            info(shape=(), strides=()),
            ANY._replace(ndim=(1, 4)),
            "1 to 4 dimensions, this array has 0",
        ),
        (
            info(shape=(), strides=()),
            ANY._replace(ndim=(2, 2)),
            "t supports 2 dimensions, this array has 0",
        ),
    ],
)
@pytest.mark.parametrize("copy", [None, True, False])
def test_what_can_never_be_right_is_refused(tensor, accepts, why, copy):
    route = plan(tensor, accepts, copy=copy)
    assert route.kind == "refuse"
    assert why in route.why


def test_packed_and_padded_are_two_types():
    packed = info(dtype=DataType.named("float4_e2m1fn"))
    accepts = ANY._replace(dtypes=frozenset({"float4_e2m1fn"}))
    assert plan(packed, accepts).kind == "refuse"
    assert plan(packed._replace(padded=True), accepts).kind == "view"
    both = ANY._replace(dtypes=frozenset({"float4_e2m1fn (packed)"}), strides="c")
    assert plan(packed, both, copy=True).nbytes == 6
    assert plan(packed._replace(strides=(1, 3)), both).kind == "refuse"


class TestDevices:
    BOTH = ANY._replace(devices=frozenset({DeviceType.CPU, DeviceType.CUDA}))

    def test_nothing_leaves_its_device_unasked(self):
        route = plan(info(device=CUDA), ANY)
        assert route.kind == "refuse"
        assert "device='cpu'" in route.why

    def test_a_device_asked_for_is_a_transfer(self):
        route = plan(info(device=CUDA), ANY, device=CPU)
        assert (route.kind, route.nbytes, route.device) == ("transfer", 48, CPU)
        assert plan(info(device=CUDA), ANY, device=CPU, copy=False).kind == "refuse"

    def test_the_same_device_is_a_view(self):
        assert plan(info(device=CUDA), self.BOTH).kind == "view"
        assert plan(info(device=CUDA), self.BOTH, device=CUDA).kind == "view"
        other = plan(info(device=CUDA), self.BOTH, device=Device.parse("cuda:1"))
        assert other.kind == "transfer"

    def test_a_device_that_the_target_has_not(self):
        route = plan(info(), ANY, device=CUDA)
        assert route.kind == "refuse"
        assert "target has no arrays on cuda:0; it has them on cpu" in route.why

    @pytest.mark.parametrize("kind", ["cuda_host", "rocm_host", "cuda_managed"])
    def test_host_memory_under_another_label_is_the_cpu(self, kind):
        route = plan(info(device=Device.parse(kind)), ANY)
        assert (route.kind, route.device) == ("view", CPU)

    def test_pinned_memory_is_copied_to_plain_memory(self):
        pinned = info(device=Device.parse("cuda_host"))
        both = ANY._replace(devices=frozenset({DeviceType.CPU, DeviceType.CUDA_HOST}))
        assert plan(pinned, both).device == pinned.device
        assert plan(pinned, both, copy=True).device == CPU

    def test_cpus_are_told_apart_where_the_target_does(self):
        third = Device.parse("cpu:2")
        several = ANY._replace(cpus=3)
        for wanted, result in ((None, third), (CPU, CPU), (third, third)):
            route = plan(info(device=third), several, device=wanted)
            assert (route.kind, route.device) == ("view", result)
        assert plan(info(device=third), several, copy=True).device == third
        assert plan(info(device=third), ANY).device == CPU
        for accepts, known in ((several, "cpu to cpu:2"), (ANY, "cpu")):
            route = plan(info(), accepts, device=Device.parse("cpu:9"))
            assert route.kind == "refuse"
            assert route.why == f"target has no arrays on cpu:9; it has them on {known}"
