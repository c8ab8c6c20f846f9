"""Run benchmarks and store their results."""

from __future__ import annotations

import argparse

from . import knn, layer, loading, network, precision, recipes, scaling, stages
from .report import store

MODULES = (knn, layer, loading, network, precision, recipes, scaling, stages)
BENCHMARKS = {module.__name__.rpartition(".")[2]: module.run for module in MODULES}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the library, side by side with alternatives.",
        epilog="Example: python -m benchmarks knn --full --store. Experiments, which train networks, are "
        "python -m benchmarks.experiments.modelnet40 and python -m benchmarks.experiments.nbody.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default all"
    )
    parser.add_argument("--full", action="store_true", help="all cases and repeats, which takes minutes")
    parser.add_argument("--store", action="store_true", help="write benchmarks/results/NAME.json")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}, expected one of {', '.join(BENCHMARKS)}")
    for name in arguments.names or BENCHMARKS:
        print(f"== {name}", flush=True)
        rows = []
        for row in BENCHMARKS[name](full=arguments.full, seed=arguments.seed):
            print(row, flush=True)
            rows.append(row)
        if arguments.store:
            store(name, rows, full=arguments.full, seed=arguments.seed)


if __name__ == "__main__":
    main()
