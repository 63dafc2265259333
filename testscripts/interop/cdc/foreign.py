"""Other engines write AUTO CDC's targets between its batches.

What rearranges or tidies up (OPTIMIZE, VACUUM, a checkpoint) must leave no trace in the next batch's outcome. What adds,
takes out or changes rows must stop the next batch by name, and a full refresh must make the table right again.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import feed  # noqa: E402
from engines import ENGINES  # noqa: E402
from run import TARGETS, rows, run  # noqa: E402
from tables import first_line  # noqa: E402


def change(engine, path, how):
    """Lets the engine change rows; where it has no UPDATE that weir's tables allow, it deletes."""
    before, schema = engine.read(path)
    if how == "append":
        engine.append(path, [dict(before[0], id=987654)], schema)
    elif how == "delete" or not engine.updates:
        engine.delete(path, f"id = {before[0]['id']}")
    else:
        engine.update(path, f"id = {before[0]['id']}", "name", "by another")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--weir", required=True)
    p.add_argument("--dir", required=True, type=pathlib.Path)
    p.add_argument("--engines", default="deltalake")
    a = p.parse_args()
    work = a.dir.resolve()
    shutil.rmtree(work, ignore_errors=True)
    feed.write(work / "feed", 2)
    batches = sorted((work / "feed").glob("*.json"))
    half = len(batches) // 2
    run(a.weir, work / "undisturbed", [batches])
    want = {t: sorted(map(str, rows(a.weir, work / "undisturbed", t))) for t in TARGETS}
    run(a.weir, work / "half", [[b] for b in batches[:half]])

    bad = equal = 0

    def check(ok, what, why=""):
        nonlocal bad, equal
        bad, equal = bad + (not ok), equal + ok
        print(f"interop: {what}: {'as it must be' if ok else 'FAILED: ' + why[:600]}", file=sys.stdout if ok else sys.stderr)

    for name in a.engines.split(","):
        if not ENGINES[name].writes:
            continue
        engine = ENGINES[name](a)
        for how in ("care", "rows"):
            project = work / f"{name}-{how}"
            shutil.copytree(work / "half", project)
            done_to = []
            for t, what in zip(TARGETS, ("append", "delete", "update")):
                path = next(project.glob(f"lake/*/*/{t}"))
                try:
                    if how == "care":
                        engine.care(path)
                    else:
                        change(engine, path, what)
                except Exception as error:
                    print(f"interop: {t} [{name}, {what}]: not done: {first_line(error)}")
                    continue
                done_to.append(t)
            if not done_to:
                continue
            for b in batches[half:]:
                shutil.copy(b, project / "landing")
            done = subprocess.run([a.weir, "run"], cwd=project, capture_output=True, text=True)
            for t in done_to:
                what = f"{t} [{name}, {how}]"
                if how != "care":
                    check(any("[CDC_TARGET_CHANGED]" in line and f".{t}:" in line for line in done.stderr.split("\n")), f"{what}: the stop", done.stderr)
            if how != "care":
                args = [a.weir, "run", "--full-refresh", ",".join(done_to), "--yes"]
                done = subprocess.run(args, cwd=project, capture_output=True, text=True)
            check(done.returncode == 0, f"[{name}, {how}]: the run", done.stderr)
            for t in done_to:
                got = sorted(map(str, rows(a.weir, project, t)))
                check(got == want[t], f"{t} [{name}, {how}]: {len(got)} rows", f"{len(want[t])} are right")
    print(f"interop: {equal} checks of other writers of change targets passed, {bad} failed")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if bad or not equal else 0)  # as in run.py


if __name__ == "__main__":
    main()
