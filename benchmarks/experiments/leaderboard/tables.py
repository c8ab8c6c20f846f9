"""The tables of the page of the leaderboard."""

from __future__ import annotations

from ..results_page import describe_machine, table
from .results import Board, cpu_minutes, has_failed, scores
from .tasks import TASKS

__all__ = ["make_tables"]

_HEADS = {"z/z": "z/z", "z/so3": "z/SO(3)", "so3/so3": "SO(3)/SO(3)", "n10": "10", "n20": "20"}


def make_tables(board: Board) -> dict[str, str]:
    """The tables for which there are records, by their names in ``page.md``."""
    tables = {"failed": _failed(board), "findings": _findings(board)}
    for task in TASKS:
        if board.rows(task):
            tables[task] = _scores(board, task)
            tables[f"{task}_cost"] = _cost(board, task)
            tables[f"{task}_minutes"] = f"{board.minutes(task):g}"
    if board.runs:
        tables["machine"] = describe_machine(next(iter(board.runs.values()))["machine"])
        tables["commands"] = "\n".join(record["command"] for record in board.runs.values())
    return tables


def _findings(board: Board) -> str:
    """The best network of each task, and the place of ours."""
    sentences = []
    for task, about in TASKS.items():
        rows = {model: scores(task, records) for model, records in board.rows(task).items()}
        ranked = [model for model, figures in rows.items() if about.protocol in figures]
        places = [
            f"`{model}` is number {ranked.index(model) + 1} ({rows[model][about.protocol]:.{about.digits}f})"
            for model in ranked
            if model.startswith("oriented-")
        ]
        if ranked:
            best = f"`{ranked[0]}` ({rows[ranked[0]][about.protocol]:.{about.digits}f})"
            of = f"{about.title}, {_HEADS[about.protocol]}: the best of {len(ranked)} networks is {best}"
            sentences.append(f"- {of}; of ours, {' and '.join(places) or 'none is measured'}.")
    return "\n".join(sentences) or "Not measured."


def _scores(board: Board, task: str) -> str:
    """Ours / the published figure by protocol, the best network first."""
    about = TASKS[task]
    protocols = [name for names in about.trainings.values() for name in names]
    rows = []
    for model, records in board.rows(task).items():
        ours, published = scores(task, records), about.published.get(model, {})
        row = [model]
        for name in protocols:
            row += [f"{ours[name]:.{about.digits}f}" if name in ours else "-", published.get(name, "-")]
        epochs = " / ".join(str(records[train]["epochs"]) for train in about.trainings if train in records)
        rows.append([*row, epochs])
    heads = [head for name in protocols for head in (_HEADS[name], "published")]
    return table(["network", *heads, f"epochs, {' / '.join(about.trainings)}"], rows)


def _cost(board: Board, task: str) -> str:
    rows = []
    for model, records in board.rows(task).items():
        first = next(iter(records.values()))
        cost, times = first["cost"], [cpu_minutes(record) for record in records.values()]
        minutes = " / ".join("-" if time is None else f"{time:.1f}" for time in times)
        rows.append([model, f"{first['params']:,}", minutes, f"{cost['step_ms']:.0f}"])
        rows[-1] += [f"{cost['inference_ms'] / cost['batch_size']:.2f}", f"{cost['peak_mb']:.0f}"]
    head = ["network", "parameters", "CPU minutes", "CPU ms of a step", "CPU ms to predict one", "peak MB"]
    return table(head, rows)


def _failed(board: Board) -> str:
    rows = [
        [task, model, train, record.get("failed", "-"), _curve(record["val_curve"])]
        for task in TASKS
        for model, records in board.rows(task).items()
        for train, record in records.items()
        if has_failed(task, record)
    ]
    head = ["task", "network", "training", "error", "validation by epoch"]
    return table(head, rows) if rows else "None."


def _curve(values: list[float]) -> str:
    """At most ten epochs, evenly spaced, and the last."""
    step = max(1, -(-len(values) // 10))
    shown = [*values[::step], *([values[-1]] if (len(values) - 1) % step else [])]
    return ", ".join(f"{value:.3g}" for value in shown) or "none complete"
