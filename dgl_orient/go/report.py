"""What ``apply`` prints: a table of the predictions, warnings, and the files that were left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from .._messages import counted, printable
from .console import echo, echo_rich, has_colors, terminal_width

if TYPE_CHECKING:
    from ..zoo.prediction_folder import Applied

__all__ = ["print_report"]

#: Rows of the table and of each list; files may be many.
_MAX_ROWS = 50
_NUM_CLASSES = 3


def print_report(applied: Applied) -> None:
    """Print what was predicted: on a terminal in its width and colours, otherwise as plain text."""
    echo("")
    echo_rich(_table(applied))
    hidden = len(applied.predictions) - _MAX_ROWS
    if hidden > 0:
        echo(f"and {hidden:,} more: see {applied.folder / 'predictions.csv'}")
    if applied.colors and not has_colors():
        echo("\nColours: " + ", ".join(f"{name} {color}" for name, color in applied.colors.items()))
    warned = [f"{each['file']}: {text}" for each in applied.predictions for text in each.get("warnings", ())]
    _echo_list("Warnings", warned)
    if any("outlier" in each for each in warned):
        echo("Outliers are points far from all others; --keep-outliers keeps them.")
    _echo_list("Skipped", [each["reason"] for each in applied.skipped])
    _echo_list("Unsupported formats", applied.unsupported)
    echo(f"\n{_summary(applied)}")


def _table(applied: Applied) -> Table:
    shown = applied.predictions[:_MAX_ROWS]
    rows = [{"file": each["file"]} | _cells(each, applied.colors) for each in shown]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    longest = max(cell_len(printable(row["file"])) for row in rows)
    for name in columns:
        is_number = name in ("probability", "points", "particles")
        align = "right" if is_number else "left"
        width = min(longest, max(terminal_width() // 3, 10)) if name == "file" else None
        table.add_column(name, overflow="fold", justify=align, width=width)
    for row in rows:
        cells = (row.get(name, "") for name in columns)
        table.add_row(*(each if isinstance(each, Text) else Text(printable(each)) for each in cells))
    return table


def _cells(entry: Mapping, colors: Mapping[str, str]) -> dict[str, str | Text]:
    """The columns of a prediction beside its file."""
    if "probabilities" in entry:
        return _class_cells(entry)
    if "properties" in entry:
        return _property_cells(entry)
    if "up" in entry:
        up = " ".join(f"{each:.2f}" for each in entry["up"])
        return {"up": up, "probability": f"{entry['probability']:.1%}", "written": entry.get("output", "")}
    cells = {"category": entry["category"]} if "category" in entry else {}
    cells |= {name: f"{entry[name]:,}" for name in ("points", "particles") if name in entry}
    if "parts" in entry:
        cells["parts"] = _part_cell(entry, colors)
    return cells | {"written": entry["output"]}


def _class_cells(entry: Mapping) -> dict[str, str]:
    ranked = sorted(entry["probabilities"].items(), key=lambda pair: -pair[1])[:_NUM_CLASSES]
    is_known = ranked[0][0] == entry["class"]
    probability = f"{entry['probability']:.1%}" if is_known else ""
    others = ", ".join(f"{name} {value:.1%}" for name, value in ranked[is_known:])
    cells = {"class": entry["class"], "probability": probability, "alternatives": others}
    return cells | ({"true class": entry["true_class"]} if "true_class" in entry else {})


def _property_cells(entry: Mapping) -> dict[str, str]:
    named = {name: str(entry[name]) for name in ("molecule", "formula", "atoms") if name in entry}
    values = entry["properties"] | entry.get("true_properties", {})
    return named | {name: f"{value:.5g}" for name, value in values.items()}


def _part_cell(entry: Mapping, colors: Mapping[str, str]) -> Text:
    """The number of points of each part that there is, on a terminal with its colour."""
    counts = [(name, count) for name, count in entry["parts"].items() if count]
    counts.sort(key=lambda pair: -pair[1])
    cell = Text()
    for number, (name, count) in enumerate(counts):
        cell.append(", " if number else "")
        if has_colors():
            cell.append("■ ", style=colors[name])
        cell.append(printable(f"{name.removeprefix(entry['category'] + '/')} {count:,}"))
    return cell


def _echo_list(title: str, items: Sequence[object]) -> None:
    if items:
        hidden = [f"and {len(items) - _MAX_ROWS:,} more"] if len(items) > _MAX_ROWS else []
        lines = [" ".join(str(item).split("\n")) for item in items[:_MAX_ROWS]] + hidden
        echo("\n".join([f"\n{title}:", *(f"  {line}" for line in lines)]))


def _summary(applied: Applied) -> str:
    clouds = len(applied.written) - 2
    names = ", ".join(path.name for path in applied.written[-2:])
    return f"Written to {applied.folder}: {names}" + (f" and {counted(clouds, 'cloud')}." if clouds else ".")
