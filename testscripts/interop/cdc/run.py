"""Change feeds through weir's AUTO CDC, compared with Spark's own and read by other engines.

A random feed goes through weir batch by batch, and at once into a second project. The tables of both must be equal, and
those that Spark's AUTO CDC makes of the same batches (spark.py, when --spark names a Python with it). Then every engine
reads the targets, which have deletion vectors and, for the history, intervals.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import feed  # noqa: E402
from compare import json_lines  # noqa: E402
from engines import ENGINES  # noqa: E402
from tables import Comparison  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ["one", "two", "tracked"]


def rows(weir, project, table):
    return json_lines([weir, "query", f"SELECT * FROM {table}", "--output", "json"], project)


def run(weir, project, batches):
    """Runs the project after each list of batches has arrived."""
    shutil.rmtree(project, ignore_errors=True)
    (project / "landing").mkdir(parents=True)
    for name in ("weir.yaml", "cdc.sql"):
        shutil.copy(HERE / name, project)
    for arrived in batches:
        for path in arrived:
            shutil.copy(path, project / "landing")
        done = subprocess.run([weir, "run"], cwd=project, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"interop: weir run: {done.stdout}{done.stderr}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--weir", required=True)
    p.add_argument("--dir", required=True, type=pathlib.Path)
    p.add_argument("--engines", default="deltalake")
    p.add_argument("--node")
    p.add_argument("--spark", help="a Python with pyspark 4.3, whose AUTO CDC is the peer")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    a.program = None
    work = a.dir.resolve()
    shutil.rmtree(work, ignore_errors=True)
    events = feed.write(work / "feed", a.seed)
    batches = sorted((work / "feed").glob("*.json"))
    run(a.weir, work / "batches", [[path] for path in batches])
    run(a.weir, work / "once", [batches])

    result = Comparison()
    engines = [ENGINES[name](a) for name in a.engines.split(",")]
    schemas = {t: engines[0].read(work / "batches/lake/dev/cdc" / t)[1] for t in TARGETS}
    for t in TARGETS:
        ours = rows(a.weir, work / "batches", t)
        if not ours:
            result.fail(t, "no rows")
        what = f"cdc {t}, {events} events"
        result.check(what, schemas[t], ours, rows(a.weir, work / "once", t), (f"{len(batches)} batches", "one"))
        for engine in engines:
            theirs, schema = engine.read(work / "batches/lake/dev/cdc" / t)
            result.check(f"{what} [{engine.name}]", schema, ours, theirs, ("weir", engine.name), engine.no_null_lists)
    if a.spark:
        subprocess.run([a.spark, "-W", "ignore", HERE / "spark.py", work / "feed", work], check=True, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"})
        for t in TARGETS:
            theirs = json_lines(["cat", str(work / f"{t}.json")])
            result.check(f"cdc {t}, {events} events", schemas[t], rows(a.weir, work / "batches", t), theirs, ("weir", "Spark's AUTO CDC"))
    print(f"interop: {result.equal} comparisons of change feeds equal, {result.bad} failed")
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of pyarrow now and then abort the interpreter while it is torn down.
    os._exit(1 if result.bad or not result.equal else 0)


if __name__ == "__main__":
    main()
