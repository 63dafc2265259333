"""Lets other engines read, change and look after the tables that the program in tables/ wrote.

For every table and engine: the engine reads the rows (and the change feed) that weir reads; then it appends and
deletes, and weir reads what must have come of it; then weir compacts and vacuums what the engine left, and the engine
reads again; then the engine compacts and vacuums, and weir reads again. What an engine cannot do is printed with the
reason. A table that both find empty, or that was never compared, counts as a failure.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys

import pyarrow as pa

from compare import json_lines, multiset
from engines import ENGINES


class Weir:
    def __init__(self, program):
        self.program = program

    def rows(self, path, verb="dump"):
        """Gives rows and the type names of their columns."""
        lines = json_lines([self.program, verb, str(path)])
        return lines[:-1], lines[-1]["__types"]

    def run(self, verb, path):
        json_lines([self.program, verb, str(path)])


class Comparison:
    def __init__(self):
        self.equal = 0
        self.bad = 0

    def check(self, what, schema, left, right, sides, no_null_lists=False):
        a, b = multiset(left, schema, no_null_lists), multiset(right, schema, no_null_lists)
        if a == b:
            self.equal += 1
            print(f"interop: {what}: {sum(a.values())} rows equal in {sides[0]} and {sides[1]}")
            return
        self.bad += 1
        print(f"interop: {what}: {sides[0]} has {sum(a.values())} rows, {sides[1]} {sum(b.values())}", file=sys.stderr)
        for label, diff in ((sides[0], a - b), (sides[1], b - a)):
            for row in list(diff)[:3]:
                print(f"  only {label}: {row}", file=sys.stderr)

    def fail(self, what, error):
        self.bad += 1
        print(f"interop: {what}: FAILED: {error}"[:2000], file=sys.stderr)


def new_rows(schema):
    """Two rows for an engine to append: one of values, one of nulls."""
    values = {"id": 100001, "name": "by another", "qty": 5, "twice": 200002}
    full = {f.name: values.get(f.name) for f in schema}
    return [full, {f.name: {"id": 100002, "twice": 200004}.get(f.name) for f in schema}]


def first_line(error):
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]


def try_table(engine, entry, source, work, weir, result):
    name = entry["name"]
    what = f"{name} [{engine.name}]"
    path = work / name
    shutil.copytree(source / name, path)

    ours, _ = weir.rows(path)
    if len(ours) != entry["rows"] or not ours:
        result.fail(what, f"weir reads {len(ours)} rows, wrote {entry['rows']}")
        return
    try:
        theirs, schema = engine.read(path)
    except Exception as error:
        if engine.name not in entry.get("not", {}):
            raise
        print(f"interop: {what}: not read: {entry['not'][engine.name]}: {first_line(error)}")
        return
    result.check(f"{what}: read", schema, ours, theirs, ("weir", engine.name), engine.no_null_lists)
    if entry["feed"] and engine.feeds:
        ours, _ = weir.rows(path, "changes")
        theirs, feed = engine.changes(path)
        # Times of commits are those of files, which the copy changed.
        feed = pa.schema([f for f in feed if f.name != "_commit_timestamp"])
        result.check(f"{what}: change feed", feed, ours, theirs, ("weir", engine.name))

    if not engine.writes:
        return
    before, schema = engine.read(path)
    appended = new_rows(schema)
    try:
        engine.append(path, appended, schema)
        engine.delete(path, "id % 5 = 4")
    except Exception as error:
        if engine.name not in entry.get("read_only", {}):
            raise
        print(f"interop: {what}: not written: {entry['read_only'][engine.name]}: {first_line(error)}")
        return
    expected = [r for r in before + appended if r["id"] % 5 != 4]
    if engine.updates:
        engine.update(path, "id % 5 = 3", "name", "changed")
        expected = [dict(r, name="changed") if r["id"] % 5 == 3 else r for r in expected]
    ours, _ = weir.rows(path)
    result.check(f"{what}: written by {engine.name}", schema, expected, ours, (engine.name, "weir"))
    if entry["feed"] and engine.feeds:
        ours, _ = weir.rows(path, "changes")
        theirs, feed = engine.changes(path)
        feed = pa.schema([f for f in feed if f.name != "_commit_timestamp"])
        result.check(f"{what}: change feed, both wrote", feed, ours, theirs, ("weir", engine.name))
    weir.run("check", path)

    weir.run("vacuum", path)
    theirs, schema = engine.read(path)
    result.check(f"{what}: optimized and vacuumed by weir", schema, expected, theirs, ("before", engine.name))
    engine.append(path, appended, schema)
    try:
        engine.care(path)
    except Exception as error:
        if engine.name not in entry.get("read_only", {}):
            raise
        print(f"interop: {what}: not optimized by {engine.name}: {entry['read_only'][engine.name]}: {first_line(error)}")
        return
    theirs, schema = engine.read(path)
    ours, _ = weir.rows(path)
    result.check(f"{what}: optimized and vacuumed by {engine.name}", schema, theirs, ours, (engine.name, "weir"))
    weir.run("check", path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--program", required=True, help="the built program of tables/")
    p.add_argument("--dir", required=True, type=pathlib.Path)
    p.add_argument("--engines", default="deltalake")
    p.add_argument("--only", help="some tables, with commas between")
    p.add_argument("--node")
    a = p.parse_args()
    weir = Weir(a.program)
    shutil.rmtree(a.dir, ignore_errors=True)
    source = a.dir / "weir"
    source.mkdir(parents=True)
    json_lines([a.program, "write", str(source)])
    result = Comparison()
    for name in a.engines.split(","):
        engine = ENGINES[name](a)
        for entry in json.loads((source / "tables.json").read_text()):
            if a.only and entry["name"] not in a.only.split(","):
                continue
            try:
                try_table(engine, entry, source, a.dir / name, weir, result)
            except Exception as error:  # one table must not hide the others
                result.fail(f"{entry['name']} [{name}]", f"{type(error).__name__}: {error}")
    print(f"interop: {result.equal} comparisons equal, {result.bad} failed")
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of pyarrow now and then abort the interpreter while it is torn down.
    os._exit(1 if result.bad or not result.equal else 0)


if __name__ == "__main__":
    main()
