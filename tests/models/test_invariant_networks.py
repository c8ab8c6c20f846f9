"""Networks that are rotation-invariant or -equivariant by themselves, without orientations."""

import copy

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.models import (
    VNDGCNN,
    GCConvNet,
    GCConvNetSeg,
    RIConvNet,
    RIConvNetSeg,
    RIFramework,
    RIFrameworkSeg,
    VNDGCNNSeg,
    VNPointNet,
    VNPointNetSeg,
)
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball, duplicates, generator, line, plane
from tests.models.test_networks import on_clouds, settled

SIZES = [70, 41, 9]

VN = dict(embed_vectors=8, head_feats=(12,), k=6)
VN_POINTNET = dict(widths=(6, 6), transformed_widths=(8,), transform_vectors=(6, 8), **VN)
VN_POINTNET |= dict(transform_head_vectors=(6,))
RICONV = dict(level_sizes=(24, 8), k=(12, 8), num_bins=(3, 2), widths=(8, 16), head_feats=(12,))
GCCONV = RICONV | dict(num_bins=(8, 2))
BACK = dict(decoder_k=(4, 6), decoder_bins=(1, 2))
RIF = dict(level_sizes=(24, 8), radii=((0.8, 1.2), (1.5,)), max_neighbours=((8, 8), (8,)), head_feats=(12,))
RIF |= dict(widths=(((8,), (8, 8)), ((16,),)), global_widths=(16,))
MODELS = {
    "riframework": lambda **kw: RIFramework(5, **(RIF | kw)),
    "riframework parts": lambda **kw: RIFrameworkSeg(
        5, propagation_widths=((16,), (16,), (8,)), **(RIF | kw)
    ),
    "gcconv": lambda **kw: GCConvNet(5, **(GCCONV | kw)),
    "gcconv parts": lambda **kw: GCConvNetSeg(5, **(GCCONV | BACK | kw)),
    "gcconv normals": lambda **kw: GCConvNetSeg(2, "vectors", **(GCCONV | BACK | kw)),
    "riconv": lambda **kw: RIConvNet(5, **(RICONV | kw)),
    "riconv parts": lambda **kw: RIConvNetSeg(5, **(RICONV | BACK | kw)),
    "vn-pointnet": lambda **kw: VNPointNet(5, **(VN_POINTNET | kw)),
    "vn-pointnet parts": lambda **kw: VNPointNetSeg(5, **(VN_POINTNET | kw)),
    "vn-pointnet normals": lambda **kw: VNPointNetSeg(2, "vectors", **(VN_POINTNET | kw)),
    "vn-dgcnn": lambda **kw: VNDGCNN(5, (6, 6, 8), **(VN | kw)),
    "vn-dgcnn parts": lambda **kw: VNDGCNNSeg(5, widths=((6, 6), (8,)), **(VN | kw)),
    "vn-dgcnn normals": lambda **kw: VNDGCNNSeg(2, "vectors", widths=((6, 6), (8,)), **(VN | kw)),
}
WITH_VECTORS = [name for name in MODELS if name.startswith("vn-")]
KIND = {name: "vectors" if "normals" in name else "invariant" for name in MODELS}
PER = {name: "node" if "parts" in name or "normals" in name else "cloud" for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_equivariant(name):
    pos = ball(sum(SIZES))
    model = settled(MODELS[name]().double(), pos)
    assert_equivariant(on_clouds(model), pos + 1e3, KIND[name], SIZES, per=PER[name], trials=1)
    one, other = on_clouds(model)(pos), on_clouds(model)(ball(sum(SIZES), seed=1))
    assert (one - other).abs().max() > 0.02 * one.abs().max(), "the same prediction for all point clouds"


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_equivariant_in_training(name):
    model = MODELS[name](dropout=0.5).double()
    motions = dict(symmetries=("rotation", "translation"), trials=1)
    assert_equivariant(on_clouds(model), ball(sum(SIZES)), KIND[name], SIZES, PER[name], **motions)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "pos, sizes",
    [
        (ball(30), [1, 29]),
        (ball(30), [0, 18, 12]),
        (duplicates(40), [20, 20]),
        (torch.ones(20, 3, dtype=torch.float64), [12, 8]),
        (plane(30), [3, 27]),
        (line(20), [10, 10]),
    ],
    ids=["one point", "no point", "duplicates", "one place", "plane", "line"],
)
def test_degenerate_point_clouds_give_finite_predictions_and_gradients(name, pos, sizes):
    model = MODELS[name]().double()
    result = model(dgl_orient.point_cloud(pos, sizes))
    assert len(result) == (len(sizes) if PER[name] == "cloud" else len(pos))
    result.square().sum().backward()
    assert torch.isfinite(result).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_states_round_trip_and_all_parameters_learn(name):
    pos, sizes = ball(120, dtype=torch.float32), [40, 30, 30, 20]
    cloud, model = dgl_orient.point_cloud(pos, sizes), MODELS[name](dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    label = torch.randint(2, (len(sizes) if PER[name] == "cloud" else len(pos),), generator=generator())
    before, losses = [p.detach().clone() for p in model.parameters()], []
    while len(losses) < 3 or (losses[-1] > 0.8 * losses[0] and len(losses) < 60):
        optimizer.zero_grad()
        result = model(cloud)
        if KIND[name] == "vectors":
            loss = (result - pos.unsqueeze(1)).square().mean()
        else:
            loss = torch.nn.functional.cross_entropy(result, label)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] <= 0.8 * losses[0]
    assert not [n for (n, p), b in zip(model.named_parameters(), before) if torch.equal(p, b)]
    other = MODELS[name]()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(cloud), model.eval()(cloud))
    assert torch.equal(copy.deepcopy(model)(cloud), model(cloud))


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_further_vectors_rotate_with_the_points_and_features_do_not(name):
    def fn(pos, batch_num_nodes=None, **inputs):
        graph = dgl_orient.point_cloud(pos, batch_num_nodes)
        graph.ndata.update(inputs)
        return model(graph)

    pos = ball(sum(SIZES))
    feat, vec = (
        torch.randn(sum(SIZES), *shape, generator=generator(7), dtype=torch.float64)
        for shape in ((2,), (3, 3))
    )
    model = MODELS[name](in_feats=2, in_vectors=3).double().eval()
    inputs = dict(scalars={"feat": feat}, vectors={"vec": vec})
    assert_equivariant(fn, pos, KIND[name], SIZES, PER[name], trials=1, **inputs)
    result = fn(pos, SIZES, feat=feat, vec=vec)
    for changed in (fn(pos, SIZES, feat=-feat, vec=vec), fn(pos, SIZES, feat=feat, vec=-vec)):
        assert (changed - result).abs().max() > 1e-6 * result.abs().max()


def test_vectors_of_riconv_do_not_rotate():
    pos = ball(sum(SIZES))
    model = settled(RIConvNetSeg(2, "vectors", **(RICONV | BACK)).double(), pos)
    case = (on_clouds(model), pos)
    with pytest.raises(AssertionError, match="rotation changes"):
        assert_equivariant(*case, "vectors", SIZES, symmetries=("rotation",), trials=1)
    assert_equivariant(*case, "invariant", SIZES, trials=1)


@pytest.mark.parametrize("name", [name for name in MODELS if name.endswith("parts")])
def test_parts_are_conditioned_on_the_category(name):
    model = MODELS[name](num_categories=3).eval()
    cloud = dgl_orient.point_cloud(ball(60, dtype=torch.float32), [30, 30])
    a, b = model(cloud, torch.tensor([0, 1])), model(cloud, torch.tensor([2, 1]))
    assert not torch.allclose(a[:30], b[:30]) and torch.equal(a[30:], b[30:])
    with pytest.raises(DGLError):
        model(cloud)
    with pytest.raises(DGLError, match="num_categories=0"):
        MODELS[name]()(cloud, torch.tensor([0, 1]))


@pytest.mark.parametrize("name", MODELS)
def test_bad_inputs_and_sizes_are_refused(name):
    pos = ball(30, dtype=torch.float32)
    for bad in (dgl_orient.point_cloud(pos.double()), dgl_orient.point_cloud(pos[:, :2]), pos):
        with pytest.raises(DGLError):
            MODELS[name]()(bad)
    for wrong in (dict(head_feats=(0,)), dict(dropout=1.0)):
        with pytest.raises(DGLError, match=f"^Expected {next(iter(wrong))}"):
            MODELS[name](**wrong)


def test_presets_run():
    cloud = dgl_orient.point_cloud(ball(100, dtype=torch.float32), [60, 40])
    for make in (VNDGCNN, VNPointNet, GCConvNet, RIConvNet, RIFramework):
        assert make.light(7)(cloud).shape == (2, 7)
    for make in (VNDGCNNSeg, VNPointNetSeg, GCConvNetSeg, RIConvNetSeg):
        assert make.light(7)(cloud).shape == (100, 7)
        assert make.light(1, out="vectors")(cloud).shape == (100, 1, 3)
    assert RIFrameworkSeg.light(7)(cloud).shape == (100, 7)


@pytest.mark.parametrize(
    "make, wrong",
    [
        (VNDGCNN, dict(k=0)),
        (VNPointNet, dict(k=0)),
        (VNPointNet, dict(widths=(4,))),
        (RIConvNet, dict(k=(64, 32))),
        (RIConvNet, dict(widths=(8, 0, 8))),
        (RIConvNetSeg, dict(decoder_k=(8,))),
        (GCConvNet, dict(num_bins=(8, 3, 2))),
        (GCConvNetSeg, dict(decoder_bins=(1, 2, 16))),
        (RIFramework, dict(radii=((0.1,), (0.2,)))),
        (RIFramework, dict(level_sizes=())),
        (RIFrameworkSeg, dict(propagation_widths=((8,),))),
    ],
)
def test_sizes_that_do_not_fit_are_refused(make, wrong):
    with pytest.raises(DGLError):
        make(5, **wrong)
