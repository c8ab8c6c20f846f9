import multiprocessing
import os
import signal

import dgl
import numpy as np
import pytest
import torch
from dgl import DGLError
from dgl.dataloading import GraphDataLoader
from torch.utils.data import ConcatDataset, Subset

import dgl_orient
from dgl_orient.data import Shapes
from dgl_orient.data.dataset import PointCloudDataset, PointClouds
from dgl_orient.data.loader import DistributedBatchSampler, WorkerDeath, point_cloud_loader
from dgl_orient.data.transforms import RandomJitter, RandomPointDropout, RandomRotate
from tests.clouds import ball

RANDOM_ROTATIONS = dgl.transforms.Compose([RandomRotate("so3"), RandomJitter(), RandomPointDropout()])


class Balls(PointCloudDataset):
    """Clouds of differing sizes, the label being the number of the cloud."""

    def __init__(self, number=11, **options):
        self.number = number
        super().__init__("balls", **options)

    def process(self):
        clouds = [
            {"pos": ball(5 + seed, seed, torch.float32).numpy(), "part": np.arange(5 + seed)}
            for seed in range(self.number)
        ]
        self.clouds = PointClouds.concatenate(clouds, label=np.arange(self.number))


class Unlabelled(Balls):
    def process(self):
        super().process()
        self.clouds = PointClouds(self.clouds.num_points, self.clouds.node)


def content(batch):
    """All that a batch holds, in a form that can be compared."""
    graph, label = batch
    data = {name: value.tolist() for name, value in graph.ndata.items()}
    return label.tolist(), graph.batch_num_nodes().tolist(), data


def contents(loader, epochs=(0,)):
    batches = []
    for epoch in epochs:
        loader.set_epoch(epoch)
        batches += [content(batch) for batch in loader]
    return batches


def labels(loader):
    return [label.tolist() for _, label in loader]


def test_it_is_dgls_loader_and_gives_what_that_gives():
    ours = point_cloud_loader(Balls(), batch_size=4)
    plain = GraphDataLoader(Balls(), batch_size=4)
    assert isinstance(ours, GraphDataLoader) and len(ours) == len(plain) == 3
    assert [content(batch) for batch in ours] == [content(batch) for batch in plain]
    graph = next(iter(point_cloud_loader(Unlabelled(), batch_size=4)))
    assert graph.batch_size == 4 and graph.batch_num_nodes().tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("persistent", [False, True])
def test_batches_do_not_depend_on_the_number_of_workers(persistent):
    expected = contents(
        point_cloud_loader(Balls(transform=RANDOM_ROTATIONS), 4, shuffle=True, seed=3), (0, 1, 2)
    )
    assert len({str(batch) for batch in expected}) == 9
    for workers in (1, 2):
        loader = point_cloud_loader(
            Balls(transform=RANDOM_ROTATIONS),
            4,
            shuffle=True,
            seed=3,
            num_workers=workers,
            persistent_workers=persistent,
        )
        assert contents(loader, (0, 1, 2)) == expected


def test_an_epoch_left_early_does_not_disturb_the_next():
    expected = contents(point_cloud_loader(Balls(transform=RANDOM_ROTATIONS), 2, shuffle=True), (5,))
    for options in ({}, dict(num_workers=2), dict(num_workers=2, persistent_workers=True)):
        loader = point_cloud_loader(Balls(transform=RANDOM_ROTATIONS), 2, shuffle=True, **options)
        next(iter(loader))
        assert contents(loader, (5,)) == expected


def test_the_order_is_that_of_seed_and_epoch():
    loader = point_cloud_loader(Balls(), 4, shuffle=True, seed=1)
    first = labels(loader)
    assert labels(loader) == first and sorted(sum(first, [])) == list(range(11))
    loader.set_epoch(1)
    second = labels(loader)
    assert second != first and sorted(sum(second, [])) == list(range(11))
    assert labels(point_cloud_loader(Balls(), 4, shuffle=True, seed=1)) == first
    assert labels(point_cloud_loader(Balls(), 4, shuffle=True, seed=-2)) != first
    assert labels(point_cloud_loader(Balls(), 4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert labels(point_cloud_loader(Balls(), 4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_loading_takes_nothing_from_the_global_generator():
    state = torch.random.get_rng_state()
    for workers in (0, 1):
        list(point_cloud_loader(Balls(transform=RANDOM_ROTATIONS), 4, shuffle=True, num_workers=workers))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("workers", [0, 2])
def test_processes_share_the_batches_of_one(world_size, workers):
    dataset = Balls(transform=RANDOM_ROTATIONS)
    whole = contents(point_cloud_loader(dataset, 4, shuffle=True, seed=2), (0, 1))
    per_rank = [
        contents(
            point_cloud_loader(
                dataset, 4, shuffle=True, seed=2, rank=rank, world_size=world_size, num_workers=workers
            ),
            (0, 1),
        )
        for rank in range(world_size)
    ]
    assert {len(batches) for batches in per_rank} == {6}
    for number, (label, _, data) in enumerate(whole):
        parts = [batches[number] for batches in per_rank]
        concatenated = sum((part[0] for part in parts), [])
        assert sorted(concatenated) == sorted(label)
        # The same points as well, cloud by cloud.
        points = sum((part[2]["pos"] for part in parts), [])
        assert sorted(points) == sorted(data["pos"])


@pytest.mark.parametrize("dataset", [Balls(9), Unlabelled(9)], ids=["labelled", "unlabelled"])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_process_without_clouds_gets_a_graph_of_no_clouds(dataset, workers):
    loader = point_cloud_loader(dataset, 4, rank=1, world_size=2, num_workers=workers)
    batches = list(loader)
    assert len(batches) == len(loader) == 3
    graph = batches[-1][0] if isinstance(dataset[0], tuple) else batches[-1]
    assert graph.batch_size == 0 and graph.num_nodes() == 0
    assert graph.ndata["pos"].shape == (0, 3) and graph.ndata["part"].dtype == torch.int64
    if isinstance(dataset[0], tuple):
        assert batches[-1][1].shape == (0,) and batches[-1][1].dtype == torch.int64


def test_every_cloud_is_counted_once_in_evaluation():
    for length in range(1, 12):
        for world_size in (1, 2, 3, 5):
            per_rank = [
                list(DistributedBatchSampler(length, 4, rank=r, world_size=world_size))
                for r in range(world_size)
            ]
            assert sorted(sum(sum(per_rank, []), [])) == list(range(length))
            sizes = [[len(batch) for batch in batches] for batches in per_rank]
            assert all(max(batch) - min(batch) <= 1 for batch in zip(*sizes))


def test_subsets_and_sums_learn_of_the_epoch():
    dataset = Balls(transform=RANDOM_ROTATIONS)
    for inner in (Subset(dataset, [3, 4]), ConcatDataset([dataset, dataset])):
        loader = point_cloud_loader(inner, 2)
        assert contents(loader, (0,))[0] != contents(loader, (1,))[0]
    plain = [dgl_orient.point_cloud(torch.rand(3, 3)) for _ in range(3)]
    loader = point_cloud_loader(plain, 2)
    loader.set_epoch(4)
    assert [graph.batch_size for graph in loader] == [2, 1]


def test_graphs_with_edges_are_batched_too():
    graphs = [dgl_orient.knn_graph(torch.rand(6, 3), 2) for _ in range(3)]
    batches = list(point_cloud_loader(graphs, 2, rank=1, world_size=2))
    assert [batch.batch_num_edges().tolist() for batch in batches] == [[12], []]


@pytest.mark.parametrize("labeled", [True, False])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_has_the_attributes_that_all_of_its_clouds_have(labeled, workers):
    clouds = [dgl_orient.point_cloud(torch.rand(5 + i, 3)) for i in range(4)]
    for cloud in clouds[1:]:
        cloud.ndata["part"] = torch.arange(cloud.num_nodes())
    clouds[2].ndata["normal"] = torch.rand(7, 3)
    clouds[3].ndata["normal"] = torch.rand(8, 3).double()
    items = [(cloud, torch.tensor(i)) for i, cloud in enumerate(clouds)] if labeled else clouds
    batches = list(point_cloud_loader(items, 2, num_workers=workers))
    graphs = [batch[0] for batch in batches] if labeled else batches
    assert [set(graph.ndata) for graph in graphs] == [{"pos"}, {"pos", "part"}]
    assert [graph.batch_num_nodes().tolist() for graph in graphs] == [[5, 6], [7, 8]]
    assert torch.equal(graphs[1].ndata["part"], torch.cat([torch.arange(7), torch.arange(8)]))
    assert not labeled or batches[1][1].tolist() == [2, 3]
    assert set(clouds[2].ndata) == {"pos", "part", "normal"}  # the items stay as they are


def test_coordinates_of_different_types_are_refused():
    clouds = [
        dgl_orient.point_cloud(torch.rand(5, 3, dtype=dtype)) for dtype in (torch.float32, torch.float64)
    ]
    with pytest.raises(DGLError):
        next(iter(point_cloud_loader(clouds, 2)))


class Threads:
    """How many threads a transform may use."""

    def __call__(self, graph):
        graph.ndata["threads"] = torch.full((graph.num_nodes(),), torch.get_num_threads())
        return graph


def test_a_worker_uses_one_thread():
    graph, _ = next(iter(point_cloud_loader(Balls(transform=Threads()), 2, num_workers=1)))
    assert set(graph.ndata["threads"].tolist()) == {1}


class Failing:
    def __init__(self, error):
        self.error = error

    def __call__(self, graph):
        if graph.num_nodes() == 8:
            raise self.error
        return graph


@pytest.mark.parametrize("persistent", [False, True])
def test_a_sentence_from_a_worker_stays_a_sentence(persistent):
    dataset = Balls(transform=Failing(DGLError("Expected one thing: got another.")))
    loader = point_cloud_loader(dataset, 2, num_workers=1, persistent_workers=persistent)
    with pytest.raises(DGLError) as caught:
        list(loader)
    assert str(caught.value) == "Expected one thing: got another."


def test_any_failure_in_a_worker_is_reported():
    loader = point_cloud_loader(Balls(transform=Failing(KeyError("feat"))), 2, num_workers=1)
    with pytest.raises(DGLError, match="feat"):
        list(loader)
    with pytest.raises(KeyError):
        list(point_cloud_loader(Balls(transform=Failing(KeyError("feat"))), 2))


class Dying:
    def __call__(self, graph):
        os._exit(1)


def test_a_worker_that_dies_is_reported():
    with pytest.raises(WorkerDeath):
        list(point_cloud_loader(Balls(transform=Dying()), 2, num_workers=1))


def test_ctrl_c_while_workers_start_is_not_lost():
    pending = [signal.SIGINT]
    # Python ignores what is raised here, as in the hooks of its own logging.
    os.register_at_fork(after_in_parent=lambda: pending and signal.raise_signal(pending.pop()))
    with pytest.raises(KeyboardInterrupt):
        next(iter(point_cloud_loader(Balls(), 2, num_workers=1)))
    assert not pending


def test_ctrl_c_does_not_reach_workers():
    batches = iter(point_cloud_loader(Balls(), 2, num_workers=2))
    first = next(batches)
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGINT)
    assert labels([first, *batches]) == labels(point_cloud_loader(Balls(), 2))


@pytest.mark.parametrize(
    "error", [ConnectionResetError(104, "Connection reset by peer"), EOFError()], ids=repr
)
def test_a_pipe_that_breaks_is_a_worker_that_died(error, monkeypatch):
    def next_batch(self):
        raise error

    monkeypatch.setattr(torch.utils.data.dataloader._MultiProcessingDataLoaderIter, "_next_data", next_batch)
    with pytest.raises(WorkerDeath):
        list(point_cloud_loader(Balls(), 2, num_workers=1))


def test_a_worker_without_connection_has_not_died():
    with pytest.raises(DGLError, match="worker process could not load a batch: ConnectionError: no route$"):
        list(point_cloud_loader(Balls(transform=Failing(ConnectionError("no route"))), 2, num_workers=1))


@pytest.mark.parametrize(
    "options",
    [
        dict(batch_size=0),
        dict(batch_size=2.5),
        dict(num_workers=-1),
        dict(num_workers="two"),
        dict(seed="a"),
        dict(rank=2, world_size=2),
        dict(rank=0),
        dict(world_size=2),
        dict(rank=-1, world_size=2),
        dict(batch_size=12, drop_last=True),
    ],
)
def test_bad_arguments_are_refused(options):
    with pytest.raises(DGLError):
        point_cloud_loader(Balls(), **options)


def test_no_clouds_and_bad_epochs_are_refused():
    with pytest.raises(DGLError):
        point_cloud_loader([])
    for epoch in (-1, 0.5, None, "a", 2**63):
        with pytest.raises(DGLError):
            point_cloud_loader(Balls()).set_epoch(epoch)
        with pytest.raises(DGLError):
            Shapes("test", num_shapes=1).set_epoch(epoch)
    for seed in ("a", 1.5, None):
        with pytest.raises(DGLError):
            Shapes("test", num_shapes=1, seed=seed)
