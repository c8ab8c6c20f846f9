import numpy as np
import pytest

from dgl_orient.data.random_stream import RandomStream, cos_sin


def test_a_stream_is_fixed_by_its_key_to_the_last_bit():
    # Written down once: other values would mean other data under the same arguments.
    assert [value.hex() for value in RandomStream("shapes", 0).random(2).tolist()] == [
        "0x1.d95df7920c0cdp-1",
        "0x1.45964eccdf356p-1",
    ]
    assert np.array_equal(RandomStream("a", np.int64(3)).random(5), RandomStream("a", 3).random(5))


@pytest.mark.parametrize("other", [("a", 2), ("b", 1), (1, "a"), ("a", "1"), ("a",), ("a", 1, 0), ("a", -1)])
def test_other_keys_give_other_streams(other):
    assert not np.isclose(RandomStream("a", 1).random(8), RandomStream(*other).random(8)).any()


def test_numbers_are_uniform_and_within_their_bounds():
    stream = RandomStream("bounds")
    unit = stream.random(4, 25_000)
    assert unit.min() >= 0 and unit.max() < 1
    counts = np.histogram(unit, 50, (0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 90  # chi-square of 49 degrees of freedom: 85 in 1 of 1000
    between = [stream.uniform(-3, 2) for _ in range(1000)]
    assert -3 <= min(between) < -2.9 and 1.9 < max(between) <= 2
    assert {stream.integer(2, 4) for _ in range(200)} == {2, 3, 4}
    assert {stream.choice("x", "y") for _ in range(50)} == {"x", "y"}
    assert 200 < sum(stream.bernoulli(0.25) for _ in range(1000)) < 300


def test_cos_sin_is_cosine_and_sine():
    revolutions = np.concatenate([np.linspace(-3, 3, 10_001), [1e-300, 0.125, 0.5, 1e6 + 0.3]])
    cosine, sine = cos_sin(revolutions)
    np.testing.assert_allclose(cosine, np.cos(2 * np.pi * (revolutions % 1)), atol=1e-12)
    np.testing.assert_allclose(sine, np.sin(2 * np.pi * (revolutions % 1)), atol=1e-12)
    np.testing.assert_allclose(cosine**2 + sine**2, 1, atol=1e-15)
