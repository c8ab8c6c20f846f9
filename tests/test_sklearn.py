"""scikit-learn's interface: its own tools work with the estimators."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from dgl import DGLError
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from dgl_orient.data import Shapes
from dgl_orient.sklearn import PartSegmenter, PointCloudClassifier, PointCloudFeatures
from tests.go import tiny

NUM, POINTS = 12, 50


@pytest.fixture(scope="module")
def shapes() -> Shapes:
    return Shapes("train", POINTS, NUM, classes=["mug", "chair"])


@pytest.fixture(scope="module")
def X(shapes) -> np.ndarray:
    return shapes.clouds.node["pos"].reshape(NUM, POINTS, 3)


@pytest.fixture(scope="module")
def y(shapes) -> np.ndarray:
    return np.array(["mug", "chair"])[shapes.labels]


def features(**options) -> PointCloudFeatures:
    return PointCloudFeatures(str(tiny.trained("pointcls")), **options)


def test_features_in_a_pipeline_cross_validation_and_grid_search(X, y):
    pipeline = make_pipeline(features(), LogisticRegression())
    assert pipeline.fit(X, y).predict_proba(X[:3]).shape == (3, 2)
    assert cross_val_score(pipeline, list(X), y, cv=2).shape == (2,)
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_ and search.score(X, y) >= 0.5


def test_features_of_files_are_those_of_arrays(X, tmp_path):
    paths = [tmp_path / f"{number}.npy" for number in range(2)]
    for path, cloud in zip(paths, X):
        np.save(path, cloud)
    transformer = features().fit(X)
    expected = transformer.transform(X[:2])
    np.testing.assert_allclose(transformer.transform(list(map(str, paths))), expected, atol=1e-4)


def test_a_classifier_is_cloned_fitted_and_stored(X, y, tmp_path):
    original = PointCloudClassifier(str(tiny.trained("pointcls")), freeze=True, num_epochs=1)
    copy = clone(original)
    assert copy.get_params() == original.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)
    copy.fit(list(X), y)
    probabilities = copy.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-4)
    assert set(copy.predict(X)) <= {"mug", "chair"} == set(copy.classes_)
    assert copy.score(X, y) == np.mean(copy.predict(X) == y)
    joblib.dump(copy, tmp_path / "classifier.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "classifier.joblib").predict_proba(X), probabilities)


def test_training_from_scratch_is_repeatable(X, y):
    options = dict(init_from=None, num_points=32, num_epochs=1, batch_size=6)
    one, other = (PointCloudClassifier(**options).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_parts_of_points(X, shapes, tmp_path):
    parts = shapes.clouds.node["part"].reshape(NUM, POINTS)
    segmenter = PartSegmenter(num_points=32, num_epochs=1, batch_size=6).fit(X, parts)
    found = segmenter.predict(X)
    assert found.shape == parts.shape and set(found.ravel()) <= set(parts.ravel())
    assert segmenter.score(X, parts) == np.mean(found == parts)
    ragged = segmenter.predict([X[0], X[1][:30]])
    assert [len(each) for each in ragged] == [POINTS, 30]
    with pytest.raises(DGLError):
        segmenter.fit(X, parts[:, :10])
