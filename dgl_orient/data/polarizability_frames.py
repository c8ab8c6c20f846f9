"""Polarizabilities from the axes in which Gaussian prints them to those of the positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .progress import progress_bar

__all__ = ["align_polarizabilities", "thole_polarizabilities"]

BOHR = 0.529177210903  # Å

# Atomic polarizabilities in Bohr³ and the damping of Thole's model: van Duijnen and Swart (1998), table 1.
_ATOMIC = {1: 2.7927, 6: 8.6959, 7: 6.5565, 8: 5.7494, 9: 3.0013}
_DAMPING = 2.1304
# Rotations about the principal axes by 180 degrees: their signs are a convention.
_SIGNS = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
_CHUNK = 512


def align_polarizabilities(
    num_atoms: np.ndarray, element: np.ndarray, pos: np.ndarray, tensor: np.ndarray, verbose: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Polarizabilities in the axes of the coordinates, and how certain their signs are.

    Gaussian prints tensors in its standard orientation, whose axes are the principal axes of the nuclear
    charge in the order of their moments. Either direction of an axis is possible, which changes the signs of
    the off-diagonal elements. Of the four choices it is the one that is nearest to the tensor of Thole's
    model of interacting dipoles, which needs nothing but elements and positions.

    Parameters
    ----------
    num_atoms : np.ndarray
        Number of atoms of each molecule, ``(B,)``.
    element, pos : np.ndarray
        Atomic numbers ``(N,)`` and positions in Å ``(N, 3)`` of all molecules.
    tensor : np.ndarray
        Tensors in the standard orientation, ``(B, 3, 3)``.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    aligned : np.ndarray
        The tensors in the axes of the positions, ``(B, 3, 3)``.
    margin : np.ndarray
        By how much the second best choice differs more from the model than the best one, as a fraction of the
        tensor's norm, ``(B,)``.
    """
    aligned, margin = np.empty_like(tensor, dtype=float), np.empty(len(tensor))
    progress = progress_bar(None, "Aligning polarizabilities", "molecules", len(tensor), always=verbose)
    with progress:
        for rows, z, x in _of_one_size(num_atoms, element, pos):
            axes = _principal_axes(z, x)  # (b, 3, 3) in columns
            model = np.swapaxes(axes, 1, 2) @ thole_polarizabilities(z, x) @ axes
            given = tensor[rows]
            model *= (np.trace(given, axis1=1, axis2=2) / np.trace(model, axis1=1, axis2=2))[:, None, None]
            candidates = _SIGNS[:, None, :, None] * given * _SIGNS[:, None, None, :]  # (4, b, 3, 3)
            error = np.linalg.norm(candidates - model, axis=(2, 3)) / np.linalg.norm(given, axis=(1, 2))
            best = candidates[error.argmin(0), np.arange(len(rows))]
            aligned[rows] = axes @ best @ np.swapaxes(axes, 1, 2)
            first, second = np.partition(error, 1, axis=0)[:2]
            margin[rows] = second - first
            progress.update(len(rows))
    return aligned, margin


def _of_one_size(
    num_atoms: np.ndarray, element: np.ndarray, pos: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Molecules of equally many atoms: their rows, atomic numbers ``(b, n)`` and positions ``(b, n, 3)``."""
    first = np.cumsum(num_atoms) - num_atoms
    for size in np.unique(num_atoms):
        rows = np.flatnonzero(num_atoms == size)
        for chunk in np.split(rows, range(_CHUNK, len(rows), _CHUNK)):
            atoms = first[chunk, None] + np.arange(size)
            yield chunk, element[atoms], pos[atoms].astype(float)


def _principal_axes(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Right-handed principal axes of the nuclear charge in columns, the smallest moment first."""
    charge = z[..., None].astype(float)
    x = x - (charge * x).sum(1, keepdims=True) / charge.sum(1, keepdims=True)
    second = np.swapaxes(charge * x, 1, 2) @ x  # (b, 3, 3)
    moments = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    axes = np.linalg.eigh(moments)[1]
    axes[:, :, 2] *= np.linalg.det(axes)[:, None]
    return axes


def thole_polarizabilities(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Polarizabilities in Bohr³ by Thole's model: atomic dipoles that induce each other.

    Parameters
    ----------
    z, x : np.ndarray
        Atomic numbers ``(b, n)``, of H, C, N, O and F, and positions in Å ``(b, n, 3)``.

    Returns
    -------
    np.ndarray
        Tensors ``(b, 3, 3)``.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.polarizability_frames import thole_polarizabilities
    >>> hydrogen = thole_polarizabilities(np.array([[1, 1]]), np.array([[[0, 0, 0], [0, 0, 0.74]]]))
    >>> hydrogen[0].diagonal().round(2)
    array([4.1, 4.1, 6.5])
    """
    b, n = z.shape
    atomic = np.vectorize(_ATOMIC.__getitem__, otypes=[float])(z)  # (b, n)
    vec = (x[:, None] - x[:, :, None]) / BOHR  # (b, n, n, 3)
    distance = np.linalg.norm(vec, axis=3) + np.eye(n)
    u = _DAMPING * distance / (atomic[:, :, None] * atomic[:, None]) ** (1 / 6)
    fading = np.exp(-u)
    damped = 1 - (u * u / 2 + u + 1) * fading
    field = -damped / distance**3
    outer = 3 * (damped - u**3 / 6 * fading) / distance**5
    interaction = outer[..., None, None] * vec[..., :, None] * vec[..., None, :]  # (b, n, n, 3, 3)
    interaction += field[..., None, None] * np.eye(3)
    interaction[:, range(n), range(n)] = -np.eye(3) / atomic[..., None, None]
    matrix = -np.swapaxes(interaction, 2, 3).reshape(b, 3 * n, 3 * n)
    uniform = np.broadcast_to(np.tile(np.eye(3), (n, 1)), (b, 3 * n, 3))
    return np.linalg.solve(matrix, uniform).reshape(b, n, 3, 3).sum(1)
