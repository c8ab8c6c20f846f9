"""Names of recipes: data sets and models, those of this package and those that users register.

A model or data set of one's own is registered by a decorator, in a module that is a plugin: see
:mod:`dgl_orient.config.plugins`.

A class is written as ``"module:Class"`` and imported when it is needed: importing this module does not import
torch.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .plugins import load_entry_points, refuse

__all__ = [
    "DATA",
    "DGLGO_APPLY",
    "DGLGO_PIPELINES",
    "FIXED_OUTPUTS",
    "MODELS",
    "MOLECULES",
    "PER_CLOUD",
    "PHYSICAL",
    "PIPELINES",
    "DataName",
    "ModelName",
    "data_class",
    "data_entry",
    "data_names",
    "following_options",
    "model_class",
    "model_maker",
    "model_names",
    "model_pipelines",
    "output_argument",
    "register_data",
    "register_model",
]

#: A registered name may be part of the name of a file.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")

#: Our pipelines and what they are for.
PIPELINES = {
    "pointcls": "Classification of point clouds",
    "partseg": "Segmentation of point clouds into parts",
    "normals": "Estimation of the points' normals",
    "upright": "Estimation of which way is up",
    "nbody": "Prediction of charged particles' positions",
    "molprop": "Prediction of molecules' scalar properties",
    "moltensor": "Prediction of molecules' vectors and tensors",
}

#: Those whose inputs are molecules.
MOLECULES = ("molprop", "moltensor")

#: Those that say something of a whole cloud, from a sample of its points.
PER_CLOUD = ("pointcls", "upright")

#: Those whose networks have the same outputs for all data sets.
FIXED_OUTPUTS = ("nbody", "upright")

#: Those whose distances have a meaning: clouds are neither scaled nor rotated nor otherwise changed.
PHYSICAL = ("nbody", *MOLECULES)

#: dglgo's own pipelines, known without importing it.
DGLGO_PIPELINES = {
    "nodepred": "Node classification pipeline",
    "nodepred-ns": "Node classification neighbor sampling pipeline",
    "linkpred": "Link prediction pipeline",
    "graphpred": "Graph property prediction pipeline on binary classification",
}

#: Those of dglgo's pipelines that have an inference pipeline.
DGLGO_APPLY = ("nodepred", "nodepred-ns", "graphpred")

#: Arguments of data sets that the pipeline gives: a recipe cannot.
GIVEN_TO_DATA = ("split", "transform", "seed", "force_reload", "verbose", "normals", "parts")

#: Arguments of models that follow from the data set.
GIVEN_TO_MODELS = (
    "num_classes",
    "num_outputs",
    "num_categories",
    "out",
    "pools",
    "elements",
    "references",
    "scales",
)


class DataName(NamedTuple):
    """A data set by name."""

    where: str | type  #: ``"module:Class"``, or the class
    pipelines: tuple[str, ...]  #: that can train with it
    per_split: tuple[str, ...] = ()  #: arguments that may be a map from split to value


class ModelName(NamedTuple):
    """A model by name."""

    where: dict[str, str | type]  #: pipeline → ``"module:Class"``, or the class

    @property
    def pipelines(self) -> tuple[str, ...]:
        """That can train it."""
        return tuple(self.where)


_POINTS = ("pointcls", "partseg", "normals")
_UPRIGHT = ("pointcls", "normals", "upright")

DATA = {
    "shapes": DataName("dgl_orient.data:Shapes", (*_POINTS, "upright"), ("num_shapes",)),
    "modelnet40": DataName("dgl_orient.data:ModelNet40", _UPRIGHT, ("num_points",)),
    "modelnet10": DataName("dgl_orient.data:ModelNet10", _UPRIGHT, ("num_points",)),
    "shapenetpart": DataName("dgl_orient.data:ShapeNetPart", _POINTS, ("num_points",)),
    "charged": DataName("dgl_orient.data:ChargedParticles", ("nbody",), ("size",)),
    "charged-files": DataName("dgl_orient.data:ChargedParticleFiles", ("nbody",), ("size",)),
    "qm9": DataName("dgl_orient.data:QM9", MOLECULES, ("size", "rotate")),
    "molecules": DataName("dgl_orient.data:MoleculeFiles", MOLECULES, ("size", "rotate")),
    "folder": DataName("dgl_orient.data:FolderDataset", (*_POINTS, "upright")),
}


def _networks(name: str, *others: str) -> ModelName:
    """A network for classes, and its form for the other pipelines of points, which has the suffix Seg."""
    where = {"pointcls": f"dgl_orient.models:{name}"}
    return ModelName(where | dict.fromkeys(others, f"dgl_orient.models:{name}Seg"))


MODELS = {
    "oriented-dgcnn": _networks("OrientedDGCNN", "partseg", "normals"),
    "oriented-pointnet2": _networks("OrientedPointNet2", "partseg"),
    "oriented-rscnn": _networks("OrientedRSCNN"),
    "canonical-dgcnn": _networks("CanonicalDGCNN"),
    "dgcnn": _networks("DGCNN", "partseg", "normals"),
    "rscnn": _networks("RSCNN"),
    "pointcnn": _networks("PointCNN", "partseg", "normals"),
    "pointnet": _networks("PointNet", "partseg", "normals"),
    "pointnet2": _networks("PointNet2", "partseg", "normals"),
    "gcconv": _networks("GCConvNet", "partseg", "normals"),
    "riconv": _networks("RIConvNet", "partseg", "normals"),
    "riframework": _networks("RIFramework", "partseg"),
    "shellnet": _networks("ShellNet", "partseg", "normals"),
    "vn-pointnet": _networks("VNPointNet", "partseg", "normals"),
    "vn-dgcnn": _networks("VNDGCNN", "partseg", "normals"),
    "upright-net": ModelName({"upright": "dgl_orient.models:UprightNet"}),
    "oriented-nbody": ModelName({"nbody": "dgl_orient.models:OrientedNBody"}),
    "oriented-mol": ModelName(dict.fromkeys(MOLECULES, "dgl_orient.models:OrientedMol")),
    "schnet": ModelName({"molprop": "dgl_orient.models:SchNet"}),
    "painn": ModelName(dict.fromkeys(MOLECULES, "dgl_orient.models:PaiNN")),
    "egnn": ModelName({"nbody": "dgl_orient.models:EGNN", "molprop": "dgl_orient.models:EGNNMol"}),
    "gnn": ModelName({"nbody": "dgl_orient.models:GNN"}),
    "tfn": ModelName({"nbody": "dgl_orient.models:TFN"}),
    "se3-transformer": ModelName({"nbody": "dgl_orient.models:SE3Transformer"}),
    "linear": ModelName({"nbody": "dgl_orient.models:LinearVelocity"}),
}

_data: dict[str, DataName] = dict(DATA)
_models: dict[str, ModelName] = dict(MODELS)


def register_data(
    name: str, pipelines: Sequence[str], per_split: Sequence[str] = ()
) -> Callable[[type], type]:
    """Give a data set a name for recipes.

    Its constructor is like that of :class:`dgl_orient.data.Shapes`: it takes ``split``, ``transform`` and
    ``seed`` from the pipeline, and from the recipe all other arguments. Their type hints and defaults are the
    recipe's schema.

    Parameters
    ----------
    name : str
        The name.
    pipelines : sequence of str
        Some of ``pointcls``, ``partseg``, ``normals``, ``upright``, ``nbody``, ``molprop`` and
        ``moltensor``.
    per_split : sequence of str
        Arguments that a recipe may give for each split.

    Examples
    --------
    >>> from dgl_orient.data import Shapes
    >>> from dgl_orient.config.registry import data_class, register_data
    >>> @register_data("doctest-chairs", pipelines=["pointcls"])
    ... class Chairs(Shapes):
    ...     pass
    >>> data_class("doctest-chairs").__name__
    'Chairs'
    """

    def register(cls: type) -> type:
        _check(name, pipelines, cls, _data.get(name) and _data[name].where)
        _data[name] = DataName(cls, tuple(pipelines), tuple(per_split))
        return cls

    return register


def register_model(name: str, pipelines: Sequence[str]) -> Callable[[type], type]:
    """Give a model a name for recipes.

    Its first argument is the number of outputs, as that of :class:`dgl_orient.models.DGCNN`; for ``nbody``
    and ``upright`` there is none. Its ``forward`` takes a batch of clouds, for ``partseg`` also their
    categories ``(B,)``, and returns for ``pointcls`` logits ``(B, outputs)``, for ``partseg`` logits
    ``(N, outputs)``, for ``normals`` vectors ``(N, 3)`` or ``(N, 1, 3)``, for ``upright`` directions and
    their scores ``(B, K, 4)``, and for ``nbody`` positions ``(N, 3)``. An argument
    ``num_categories`` (of ``partseg``) or ``out`` (of ``normals``, which is ``"vectors"``) is filled in if
    there is one. For ``molprop`` and ``moltensor`` it takes those of
    :attr:`dgl_orient.data.MoleculeDataset.outputs` by name, and returns scalars ``(B, T)``, vectors
    ``(B, 3)`` or tensors ``(B, 3, 3)``. All other arguments are the recipe's: their type hints and defaults
    are its schema. If it has class methods ``light`` or ``paper``, recipes can name them as ``preset``.

    Parameters
    ----------
    name : str
        The name.
    pipelines : sequence of str
        Some of ``pointcls``, ``partseg``, ``normals``, ``upright``, ``nbody``, ``molprop`` and
        ``moltensor``.

    Examples
    --------
    >>> from dgl_orient.config.registry import model_class, register_model
    >>> from dgl_orient.models import DGCNN
    >>> @register_model("doctest-net", pipelines=["pointcls"])
    ... class Net(DGCNN):
    ...     pass
    >>> model_class("doctest-net", "pointcls").__name__
    'Net'
    """

    def register(cls: type) -> type:
        from .._init_args import record_init_args

        _check(name, pipelines, cls, None)
        where = dict(_models[name].where) if name in _models else {}
        for pipeline in pipelines:
            _check(name, pipelines, cls, where.get(pipeline))
            where[pipeline] = cls
        _models[name] = ModelName(where)
        return record_init_args(cls)

    return register


def _check(name: str, pipelines: Sequence[str], cls: type, before: str | type | None) -> None:
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        refuse(f"Expected a name of letters, digits, -, _ and . to register, got {name!r}.")
    if not isinstance(cls, type):
        refuse(f"Expected a class to register as {name!r}, got {cls!r}.")
    unknown = [each for each in pipelines if each not in PIPELINES]
    if unknown or isinstance(pipelines, str) or not pipelines:
        listed = ", ".join(PIPELINES)
        refuse(f"Expected pipelines of {name!r} to be a list of some of {listed}, got {pipelines!r}.")
    # A module that is imported again brings the same class.
    if before is not None and _identity(before) != _identity(cls):
        refuse(f"The name {name!r} is taken by {_identity(before)}; choose another for {cls.__name__}.")


def _identity(where: str | type) -> str:
    return where if isinstance(where, str) else f"{where.__module__}:{where.__qualname__}"


def data_names(pipeline: str | None = None) -> list[str]:
    """The data sets of a pipeline, or all."""
    load_entry_points()
    return [name for name, entry in _data.items() if pipeline is None or pipeline in entry.pipelines]


def model_names(pipeline: str | None = None) -> list[str]:
    """The models of a pipeline, or all."""
    load_entry_points()
    return [name for name, entry in _models.items() if pipeline is None or pipeline in entry.where]


def data_class(name: str) -> type:
    """The class of a data set."""
    return _resolve(data_entry(name).where)


def data_entry(name: str) -> DataName:
    """The entry of a data set, which is not imported."""
    load_entry_points()
    return _data[name]


def model_class(name: str, pipeline: str) -> type:
    """The class of a model, which for one name may depend on the pipeline."""
    load_entry_points()
    return _resolve(_models[name].where[pipeline])


def model_maker(section: Mapping[str, object], pipeline: str) -> Callable:
    """The class of the model that a recipe describes, or its class method for the preset."""
    cls = model_class(section["name"], pipeline)
    preset = section.get("preset", "full")
    return cls if preset == "full" else getattr(cls, preset)


def following_options(make: Callable, options: Mapping[str, object]) -> dict[str, object]:
    """Of the arguments that follow from the task, those that the model takes.

    Parameters
    ----------
    make : callable
        As :func:`model_maker` returns it. Its first argument is the number of outputs.
    options : mapping
        The arguments.
    """
    takes = list(inspect.signature(make).parameters.values())[1:]
    if any(each.kind is each.VAR_KEYWORD for each in takes):
        return dict(options)
    taken = {each.name for each in takes}
    return {option: value for option, value in options.items() if option in taken}


def output_argument(cls: type, pipeline: str) -> tuple[str, ...]:
    """The name of a model's first argument, its number of outputs; none where all data sets have the same."""
    return () if pipeline in FIXED_OUTPUTS else tuple(inspect.signature(cls).parameters)[:1]


def model_pipelines(name: str) -> tuple[str, ...]:
    """The pipelines of a model."""
    return _models[name].pipelines


def _resolve(where: str | type) -> type:
    if isinstance(where, type):
        return where
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)
