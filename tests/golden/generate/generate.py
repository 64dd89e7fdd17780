"""Writes tests/golden/data and tests/golden/ops.txt; tests/golden/README.md says with what.

Usage: generate.py [FAMILY]...     (all families by default; ops.txt is written with all)
"""

import collections
import pathlib
import sys
import time

import oracle
import binary
import elementwise
import indexing
import movement
import nets
import reductions
import state

MODULES = [elementwise, binary, reductions, movement, indexing, nets, state]
HERE = pathlib.Path(__file__).resolve().parent.parent


def main(wanted):
    counts = collections.defaultdict(lambda: [0, 0])
    for module in MODULES:
        for family, make in module.FAMILIES.items():
            if wanted and family not in wanted:
                continue
            start = time.time()
            cases = list(make())
            names = collections.Counter(case.name for case in cases)
            twice = [name for name, n in names.items() if n > 1]
            assert not twice, f"{family}: names are not unique: {twice}"
            for case in cases:
                case.compute()
                refused = any(run.error for run in case.runs)
                if refused != ("refused" in case.name):
                    print(f"{family}: {case.name}: " +
                          (f"TensorFlow refuses: {case.why[:300]}" if refused else
                           "TensorFlow does not refuse"))
                for run in case.runs:
                    if hasattr(run, "no_gradient"):
                        print(f"{family}: {case.name}: no gradient: {run.no_gradient[:200]}")
                counts[case.op][0] += 1
                counts[case.op][1] += case.has_gradient()
            path = HERE / "data" / f"{family}.gz"
            oracle.write_family(path, cases)
            print(f"{family}: {len(cases)} cases, {path.stat().st_size} bytes, "
                  f"{time.time() - start:.1f} s", flush=True)
    if not wanted:
        lines = [f"{op} {forward} {gradient}\n" for op, (forward, gradient) in sorted(counts.items())]
        (HERE / "ops.txt").write_text("# op, cases, cases with gradients\n" + "".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
