"""Properties of all networks: symmetries, sizes, states, learning, further features of points."""

import copy

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.models import (
    DGCNN,
    RSCNN,
    DGCNNSeg,
    OrientedDGCNN,
    OrientedDGCNNSeg,
    OrientedRSCNN,
    PointCNN,
    PointCNNSeg,
    PointNet,
    PointNet2,
    PointNet2Seg,
    PointNetSeg,
    ShellNet,
    ShellNetSeg,
)
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball, duplicates, generator, plane

SIZES = [70, 41, 9]

TINY = dict(num_orientations=2, orientation_k=8)
COVARIANCE = dict(input_features="covariance", num_layers=0, hidden_feats=8, hidden_vectors=8)
TRANSFORMS = dict(transform_feats=(8, 16), transform_head_feats=(8,))
POINTNET = dict(widths=(8,), transformed_widths=(8, 16), head_feats=(12,), **TRANSFORMS)
LEVELS = dict(level_sizes=(24, 8), max_neighbours=((8,), (8,)), global_widths=(16, 32))
POINTNET2 = dict(radii=((0.8,), (1.5,)), widths=(((8, 8),), ((16,),)), head_feats=(12,), **LEVELS)
SCALES = dict(radii=((0.5, 1.0), (1.5,)), widths=(((4, 8), (8,)), ((16,),)))
SCALES |= dict(max_neighbours=((8, 12), (8,)), head_feats=(12,), level_sizes=(24, 8), global_widths=(16,))
SHELLS = dict(level_sizes=(24, 8), k=(12, 8), num_shells=(3, 2), widths=(8, 16), head_feats=(12,))
BACK = dict(decoder_k=(4, 6), decoder_shells=(1, 2))
POINTCNN = dict(level_sizes=(24, 8), k=(6, 6, 4), dilation=(1, 2, 2), widths=(8, 8, 16), head_feats=(12,))
DECONVOLUTIONS = dict(decoder_k=(4, 4, 6, 6), decoder_dilation=(1, 2, 2, 2))
MODELS = {
    "pointcnn": lambda **kw: PointCNN(5, **(POINTCNN | kw)),
    "pointcnn parts": lambda **kw: PointCNNSeg(5, **(POINTCNN | DECONVOLUTIONS | kw)),
    "pointcnn normals": lambda **kw: PointCNNSeg(2, "vectors", **(POINTCNN | DECONVOLUTIONS | kw)),
    "shellnet": lambda **kw: ShellNet(5, **(SHELLS | kw)),
    "shellnet parts": lambda **kw: ShellNetSeg(5, **(SHELLS | BACK | kw)),
    "shellnet normals": lambda **kw: ShellNetSeg(2, "vectors", **(SHELLS | BACK | kw)),
    "pointnet": lambda **kw: PointNet(5, **(POINTNET | kw)),
    "pointnet parts": lambda **kw: PointNetSeg(5, **(POINTNET | kw)),
    "pointnet normals": lambda **kw: PointNetSeg(2, "vectors", **(POINTNET | kw)),
    "pointnet2": lambda **kw: PointNet2(5, **(POINTNET2 | kw)),
    "pointnet2, scales": lambda **kw: PointNet2(5, **(SCALES | kw)),
    "pointnet2 parts": lambda **kw: PointNet2Seg(
        5, **(SCALES | dict(propagation_widths=((16,), (16,), (8,))) | kw)
    ),
    "pointnet2 normals": lambda **kw: PointNet2Seg(
        2, "vectors", **(POINTNET2 | dict(propagation_widths=((16,), (16,), (8,))) | kw)
    ),
    "dgcnn": lambda **kw: DGCNN(5, (8, 8, 16), 16, (12,), k=6, **kw),
    "rscnn": lambda **kw: RSCNN(5, (8, 8, 16, 32), (24, 8), (8, 8), (12,), **kw),
    "plain parts": lambda **kw: DGCNNSeg(5, "labels", 0, (8, 8), 16, (12,), k=6, **kw),
    "plain normals": lambda **kw: DGCNNSeg(2, "vectors", 0, (8, 8), 16, (12,), k=6, **kw),
    "oriented dgcnn": lambda **kw: OrientedDGCNN(
        5, (8, 8, 16), 16, (12,), k=6, level_sizes=(24, 8), **TINY, **kw
    ),
    "oriented dgcnn, covariance": lambda **kw: OrientedDGCNN(
        5,
        (8, 16),
        16,
        (12,),
        k=8,
        level_sizes=(),
        **TINY,
        orientation=COVARIANCE,
        **({"initial_feats": "all_scales"} | kw),
    ),
    "oriented dgcnn, all layers": lambda **kw: OrientedDGCNN(
        5, (8, 8), 16, (12,), k=8, level_sizes=(), **TINY, oriented_layers=2, **kw
    ),
    "oriented rscnn": lambda **kw: OrientedRSCNN(5, (8, 8, 16, 32), (24, 8), (8, 8), (12,), **TINY, **kw),
    "oriented rscnn, two scales": lambda **kw: OrientedRSCNN(
        5, (8, 8, 16, 32), (24, 8), (8, 8), (12,), **TINY, orientation_level_sizes=(), **kw
    ),
    "parts": lambda **kw: OrientedDGCNNSeg(
        5, "labels", 0, (8, 8), 16, (12,), k=6, level_sizes=(24, 8), **TINY, **kw
    ),
    "normals": lambda **kw: OrientedDGCNNSeg(
        2, "vectors", 0, (8, 8), 16, (12,), k=6, level_sizes=(24, 8), **TINY, **kw
    ),
}
PLAIN = ["dgcnn", "rscnn", "plain parts", "plain normals"]
PLAIN += [name for name in MODELS if name.startswith(("pointcnn", "pointnet", "shellnet"))]
ORIENTED = [name for name in MODELS if name not in PLAIN]
KIND = {name: "vectors" if "normals" in name else "invariant" for name in MODELS}
PER = {name: "node" if "parts" in name or "normals" in name else "cloud" for name in MODELS}


def on_clouds(model):
    return lambda pos, batch_num_nodes=None: model(dgl_orient.point_cloud(pos, batch_num_nodes))


def settled(model, pos):
    """The model in evaluation mode, with the statistics of these points in its batch norms."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.momentum = 1.0
    model(dgl_orient.point_cloud(pos, [len(pos) // 2, len(pos) - len(pos) // 2]))
    return model.eval()


# The features by themselves are tested with the orientation encoder: here each kind, and each network.
@pytest.mark.parametrize(
    "name, initial_feats",
    [
        *((name, "canonical") for name in ORIENTED),
        ("oriented dgcnn", "all_scales"),
        ("oriented rscnn", "all_scales+vectors"),
        ("parts", "constant"),
    ],
)
def test_predictions_are_equivariant(name, initial_feats):
    pos = ball(sum(SIZES))
    model = settled(MODELS[name](initial_feats=initial_feats).double(), pos)
    assert_equivariant(on_clouds(model), pos + 1e6, KIND[name], SIZES, per=PER[name], trials=1)
    one, other = on_clouds(model)(pos), on_clouds(model)(ball(sum(SIZES), seed=1))
    assert (one - other).abs().max() > 0.05 * one.abs().max(), "the same prediction for all point clouds"


@pytest.mark.parametrize("name", ORIENTED)
def test_predictions_are_equivariant_in_training(name):
    model = MODELS[name](dropout=0.5).double()
    motions = dict(symmetries=("rotation", "translation"), trials=1)
    assert_equivariant(on_clouds(model), ball(sum(SIZES)), KIND[name], SIZES, PER[name], **motions)


@pytest.mark.parametrize("name", ORIENTED)
def test_predictions_are_equivariant_in_float32(name):
    pos = ball(100, dtype=torch.float32)
    extra = dict(dynamic=False) if "rscnn" not in name else {}
    model = settled(MODELS[name](**extra), pos)
    assert_equivariant(on_clouds(model), pos, KIND[name], [60, 40], PER[name], trials=1)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_networks_are_permutation_equivariant_but_not_rotation_invariant(name):
    pos = ball(sum(SIZES))
    model = settled(MODELS[name]().double(), pos)

    def check(*symmetries):
        assert_equivariant(on_clouds(model), pos, KIND[name], SIZES, PER[name], symmetries=symmetries)

    check("permutation", "batching")
    relative = name.startswith(("pointcnn", "rscnn", "shellnet"))
    for motion in ("rotation",) if relative else ("rotation", "translation"):
        with pytest.raises(AssertionError, match=f"{motion} changes"):
            check(motion)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "pos, sizes",
    [
        (ball(30), [1, 29]),
        (ball(30), [0, 18, 12]),
        (duplicates(40), [20, 20]),
        (torch.ones(20, 3, dtype=torch.float64), [12, 8]),
        (plane(30), [3, 27]),
    ],
    ids=["one point", "no point", "duplicates", "one place", "plane"],
)
def test_degenerate_point_clouds_give_finite_predictions_and_gradients(name, pos, sizes):
    model = MODELS[name]().double()
    result = model(dgl_orient.point_cloud(pos, sizes))
    assert len(result) == (len(sizes) if PER[name] == "cloud" else len(pos))
    result.square().sum().backward()
    assert torch.isfinite(result).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_state_dicts_round_trip(name):
    pos = ball(100, dtype=torch.float32)
    model = settled(MODELS[name](), pos)
    other = MODELS[name]()
    other.load_state_dict(model.state_dict())
    cloud = dgl_orient.point_cloud(pos)
    assert torch.equal(other.eval()(cloud), model(cloud))
    assert torch.equal(copy.deepcopy(model)(cloud), model(cloud))
    names = {key.split(".")[0] for key in model.state_dict()}
    assert "backbone" in names and ("orientation_encoder" in names) == (name in ORIENTED)


@pytest.mark.parametrize("name", MODELS)
def test_all_parameters_learn(name):
    pos, sizes = ball(120, dtype=torch.float32), [40, 30, 30, 20]
    cloud, model = dgl_orient.point_cloud(pos, sizes), MODELS[name](dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rows = len(sizes) if PER[name] == "cloud" else len(pos)
    label = torch.randint(2, (rows,), generator=generator())
    before = [p.detach().clone() for p in model.parameters()]
    losses = []
    # With four clouds in a batch norm the rate is high, and rounding decides by which steps it goes.
    while len(losses) < 3 or (losses[-1] > 0.7 * losses[0] and len(losses) < 40):
        optimizer.zero_grad()
        result = model(cloud)
        if KIND[name] == "vectors":
            loss = (result - pos.unsqueeze(1)).square().mean()
        else:
            loss = torch.nn.functional.cross_entropy(result, label)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] <= 0.7 * losses[0]
    unchanged = [n for (n, p), b in zip(model.named_parameters(), before) if torch.equal(p, b)]
    assert not unchanged


def test_presets_and_defaults_run():
    cloud = dgl_orient.point_cloud(ball(300, dtype=torch.float32), [200, 100])
    for make in (DGCNN, RSCNN, OrientedDGCNN, OrientedRSCNN, PointCNN, PointNet, PointNet2, ShellNet):
        assert make.light(7)(cloud).shape == (2, 7)
        light = sum(p.numel() for p in make.light(7).parameters())
        assert light < 0.25 * sum(p.numel() for p in make(7).parameters())
    for make in (DGCNNSeg, OrientedDGCNNSeg, PointCNNSeg, PointNetSeg, PointNet2Seg, ShellNetSeg):
        assert make.light(7)(cloud).shape == make(7)(cloud).shape == (300, 7)
        assert make.light(1, out="vectors")(cloud).shape == (300, 1, 3)


BAD_HEADS = {
    "head_feats": ["[0]", "(16, -3)", "(8.5,)", "64", "'ab'"],
    "dropout": ["7", "-0.1", "1", "True", "'much'", "float('nan')"],
}
BAD_EMBEDDINGS = {"embed_feats": ["0", "-64", "1.5", "None"]}
BAD_OF_DGCNN = {
    "widths": ["()", "(8, 0)", "(-8,)", "8"],
    "k": ["0", "-1", "2.5"],
    **BAD_EMBEDDINGS,
    **BAD_HEADS,
}
BAD_OF_RSCNN = {
    "widths": ["(8, 8, 0, 8)", "8"],
    "k": ["(8, 0)", "-8"],
    "level_sizes": ["(0, 8)", "8"],
    **BAD_HEADS,
}
BAD_ORIENTATION = {
    "orientation_k": ["0", "-4", "'8'"],
    "num_orientations": ["0", "-1"],
    "level_sizes": ["(0,)", "4"],
}
BAD_LAYERS = {"oriented_layers": ["0", "1.5"]}
BAD_OF_SEGMENTATION = {"num_outputs": ["0"], "num_categories": ["-1", "2.5"], **BAD_OF_DGCNN}
BAD_ARGUMENTS = {
    DGCNN: {"num_classes": ["0", "-5"], **BAD_OF_DGCNN},
    RSCNN: {"num_classes": ["0"], **BAD_OF_RSCNN},
    OrientedDGCNN: {"num_classes": ["0"], **BAD_OF_DGCNN, **BAD_ORIENTATION, **BAD_LAYERS},
    OrientedRSCNN: {"num_classes": ["0"], **BAD_OF_RSCNN, **BAD_ORIENTATION},
    DGCNNSeg: BAD_OF_SEGMENTATION,
    OrientedDGCNNSeg: BAD_OF_SEGMENTATION | BAD_ORIENTATION | BAD_LAYERS,
}


@pytest.mark.parametrize(
    "make, name, value",
    [
        pytest.param(make, name, value, id=f"{make.__name__}-{name}-{value}")
        for make, wrong in BAD_ARGUMENTS.items()
        for name, values in wrong.items()
        for value in values
    ],
)
def test_bad_sizes_are_refused_by_name(make, name, value):
    first = "num_outputs" if make in (DGCNNSeg, OrientedDGCNNSeg) else "num_classes"
    given = {first: 5} | {name: eval(value)}
    with pytest.raises(DGLError, match=rf"^Expected {name}\b.*, got .*\.$"):
        make(**given)


def test_the_smallest_networks_can_be_made():
    cloud = dgl_orient.point_cloud(ball(20, dtype=torch.float32), [12, 8])
    least = dict(widths=(1,), embed_feats=1, head_feats=(), k=1, dropout=0)
    few = dict(num_orientations=1, level_sizes=(), orientation_k=1)
    assert DGCNN(1, **least)(cloud).shape == (2, 1)
    assert OrientedDGCNN(1, **least, **few)(cloud).shape == (2, 1)
    assert DGCNNSeg(1, **least)(cloud).shape == (20, 1)
    assert OrientedDGCNNSeg(1, **least, **few)(cloud).shape == (20, 1)
    assert RSCNN(1, widths=[1, 1], level_sizes=[], k=[], head_feats=[], dropout=0.0)(cloud).shape == (2, 1)


def test_bad_inputs_are_refused():
    pos = ball(30, dtype=torch.float32)
    with pytest.raises(DGLError, match=r'points in ndata\["pos"\]'):
        DGCNN.light(3)(dgl_orient.knn_graph(pos, 4))
    with pytest.raises(DGLError):
        OrientedDGCNN.light(3, initial_feats="zero")
    for make in (DGCNNSeg, OrientedDGCNNSeg):
        with pytest.raises(DGLError):
            make.light(3, out="scalars")
    with pytest.raises(DGLError):
        RSCNN(3, widths=(8, 8))
    with pytest.raises(DGLError):
        RSCNN(3, level_sizes=(5, 50))
    for name, make in MODELS.items():
        for bad in (dgl_orient.point_cloud(pos.double()), dgl_orient.point_cloud(pos[:, :2]), pos):
            with pytest.raises(DGLError):
                make()(bad), name


def on_features(model):
    def function(pos, batch_num_nodes=None, *, feat, vec):
        graph = dgl_orient.point_cloud(pos, batch_num_nodes)
        graph.ndata["feat"], graph.ndata["vec"] = feat, vec
        return model(graph)

    return function


def random_features(number, dtype=torch.float64):
    feat, vec = (torch.randn(number, *shape, generator=generator(7)).to(dtype) for shape in ((2,), (3, 3)))
    return {"feat": feat}, {"vec": vec}


@pytest.mark.parametrize(
    "name, initial_feats",
    [*((name, "canonical") for name in ORIENTED), ("normals", "all_scales+vectors"), ("parts", "constant")],
)
def test_predictions_with_further_features_are_equivariant_and_depend_on_them(name, initial_feats):
    pos, (scalars, vectors) = ball(sum(SIZES)), random_features(sum(SIZES))
    model = MODELS[name](initial_feats=initial_feats, in_feats=2, in_vectors=3).double()
    fn = on_features(model.eval())
    inputs = dict(scalars=scalars, vectors=vectors)
    assert_equivariant(fn, pos, KIND[name], SIZES, per=PER[name], trials=1, **inputs)
    result = fn(pos, SIZES, **scalars, **vectors)
    for key, value in (scalars | vectors).items():
        changed = fn(pos, SIZES, **(scalars | vectors | {key: -value}))
        assert (changed - result).abs().max() > 1e-4 * result.abs().max(), key


@pytest.mark.parametrize("name", PLAIN)
def test_plain_networks_take_further_features(name):
    pos, (scalars, vectors) = ball(sum(SIZES)), random_features(sum(SIZES))
    fn = on_features(MODELS[name](in_feats=2, in_vectors=3).double().eval())
    symmetries = ("permutation", "batching")
    assert_equivariant(
        fn, pos, KIND[name], SIZES, PER[name], scalars=scalars, vectors=vectors, symmetries=symmetries
    )
    result = fn(pos, SIZES, **scalars, **vectors)
    for key, value in (scalars | vectors).items():
        assert not torch.allclose(fn(pos, SIZES, **(scalars | vectors | {key: -value})), result)


@pytest.mark.parametrize("name", MODELS)
def test_missing_and_misshaped_features_are_named(name):
    model = MODELS[name](in_feats=2, in_vectors=3).double()
    graph = dgl_orient.point_cloud(ball(30))
    with pytest.raises(DGLError, match=r'in_feats=2; .*\(30, 2\), into graph.ndata\["feat"\]'):
        model(graph)
    graph.ndata["feat"] = torch.zeros(30, 2, dtype=torch.float64)
    with pytest.raises(DGLError, match=r'in_vectors=3; .*\(30, 3, 3\), into graph.ndata\["vec"\]'):
        model(graph)
    graph.ndata["vec"] = torch.zeros(30, 2, 3, dtype=torch.float64)
    with pytest.raises(DGLError):
        model(graph)
    for size in (-1, 1.5):
        with pytest.raises(DGLError):
            MODELS[name](in_feats=size)


@pytest.mark.parametrize("name", MODELS)
def test_numbers_that_are_not_finite_are_refused_once_at_the_entry(name):
    model, graph = MODELS[name](in_feats=2).double(), dgl_orient.point_cloud(ball(30))
    graph.ndata["feat"] = torch.zeros(30, 2, dtype=torch.float64)
    for key, value in (("pos", torch.nan), ("pos", torch.inf), ("feat", torch.nan), ("feat", -torch.inf)):
        broken = graph.local_var()
        broken.ndata[key] = broken.ndata[key].clone()
        broken.ndata[key][3, 1] = value
        with pytest.raises(DGLError, match=rf'finite numbers in ndata\["{key}"\]'):
            model(broken)
    with pytest.raises(DGLError, match="coordinates of at most 8e.* scale the point cloud down"):
        far = dgl_orient.point_cloud(1e160 * ball(30))
        far.ndata["feat"] = graph.ndata["feat"]
        model(far)
