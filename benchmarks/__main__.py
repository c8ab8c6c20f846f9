"""Run measurements and store their results."""

from __future__ import annotations

import argparse

from . import growth, knn, layer, loading, network, orientation, precision, recipes, stages
from .report import store

MODULES = (growth, knn, layer, loading, network, orientation, precision, recipes, stages)
BENCHMARKS = {module.__name__.rpartition(".")[2]: module.run for module in MODULES}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare alternatives side by side, in one run.",
        epilog="Example: python -m benchmarks knn --full --store. Networks for particles are compared by "
        "python -m benchmarks.nbody, those for shapes by python -m benchmarks.modelnet40.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which of {', '.join(BENCHMARKS)}; all if none is named"
    )
    parser.add_argument("--full", action="store_true", help="the long version, minutes and not seconds")
    parser.add_argument("--store", action="store_true", help="write benchmarks/results/NAME.json")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}, expected one of {', '.join(BENCHMARKS)}")
    for name in arguments.names or BENCHMARKS:
        print(f"== {name}", flush=True)
        rows = BENCHMARKS[name](full=arguments.full, seed=arguments.seed)
        if arguments.store:
            store(name, rows, full=arguments.full, seed=arguments.seed)


if __name__ == "__main__":
    main()
