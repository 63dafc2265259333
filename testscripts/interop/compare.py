"""Compares every Delta table of a project, as weir reads it, with what other engines read: the rows as multisets."""
import argparse
import base64
import collections
import datetime
import decimal
import json
import os
import pathlib
import subprocess
import sys

import pyarrow as pa

from engines import DeltaLake

decimal.getcontext().prec = 60


def canonical(v, t, no_null_lists=False):
    """A value in one spelling, whichever engine's JSON or Python object it comes from.

    no_null_lists: the engine has no NULL for lists, maps and structs and reads an empty one instead.
    """
    nested = pa.types.is_list(t) or pa.types.is_map(t) or pa.types.is_struct(t)
    if v is None and no_null_lists and nested:
        v = {} if pa.types.is_struct(t) or pa.types.is_map(t) else []
    if v is None:
        return None
    if pa.types.is_decimal(t):
        return f"{decimal.Decimal(str(v)).normalize():f}"
    if pa.types.is_timestamp(t):
        if isinstance(v, str):
            v = datetime.datetime.fromisoformat(v.replace("Z", "+00:00"))
        if v.tzinfo is None:
            v = v.replace(tzinfo=datetime.timezone.utc)
        return v.astimezone(datetime.timezone.utc).isoformat()
    if pa.types.is_date(t):
        return v if isinstance(v, str) else v.isoformat()
    if pa.types.is_floating(t):
        return str(float(v)) if t.bit_width == 64 else str(round(float(v), 4))
    if pa.types.is_integer(t):
        return int(v)
    if pa.types.is_boolean(t):
        return bool(v)
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t):
        return v if isinstance(v, str) else base64.b64encode(v).decode()
    if pa.types.is_map(t):
        pairs = v.items() if isinstance(v, dict) else [(p["key"], p["value"]) if isinstance(p, dict) else p for p in v]
        return sorted((k, canonical(x, t.item_type, no_null_lists)) for k, x in pairs)
    if pa.types.is_struct(t):
        return {f.name: canonical(v.get(f.name), f.type, no_null_lists) for f in t}
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return [canonical(x, t.value_type, no_null_lists) for x in v]
    return v


def multiset(rows, schema, no_null_lists=False):
    return collections.Counter(
        json.dumps({f.name: canonical(r.get(f.name), f.type, no_null_lists) for f in schema}, sort_keys=True, ensure_ascii=False) for r in rows
    )


def json_lines(args, cwd=None):
    out = subprocess.run(args, cwd=cwd, check=True, stdout=subprocess.PIPE).stdout.decode()
    return [json.loads(line, parse_float=decimal.Decimal) for line in out.split("\n") if line]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--weir", required=True)
    p.add_argument("--project", required=True, type=pathlib.Path)
    p.add_argument("--engines", default="deltalake")
    p.add_argument("--node")
    a = p.parse_args()
    tables = sorted(log.parent for log in a.project.glob("lake/*/*/*/_delta_log") if not log.parts[-4].startswith("_"))
    if not tables:
        sys.exit(f"interop: no tables below {a.project}/lake")
    bad = 0
    for path in tables:
        name = ".".join(path.parts[-3:])
        theirs, schema = DeltaLake(None).read(path)
        quoted = ".".join(f"`{part}`" for part in path.parts[-3:])
        rows = json_lines([a.weir, "query", f"SELECT * FROM {quoted}", "--output", "json"], a.project)
        pairs = {"deltalake": (multiset(rows, schema), multiset(theirs, schema))}
        if "chdb" in a.engines:
            # ClickHouse reads only below its working directory.
            script = str(pathlib.Path(a.node, "chdb.mjs").resolve())
            theirs = json_lines(["node", script, str(path.resolve())], path.parent)
            pairs["chdb"] = (multiset(rows, schema, True), multiset(theirs, schema, True))
        for engine, (ours, rows) in pairs.items():
            if rows == ours:
                print(f"interop: {name}: {sum(ours.values())} rows equal in weir and {engine}")
                continue
            bad += 1
            print(f"interop: {name}: weir has {sum(ours.values())} rows, {engine} {sum(rows.values())}", file=sys.stderr)
            for label, diff in (("only weir", ours - rows), ("only " + engine, rows - ours)):
                for row in list(diff)[:3]:
                    print(f"  {label}: {row}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of pyarrow now and then abort the interpreter while it is torn down.
    os._exit(1 if bad else 0)


if __name__ == "__main__":
    main()
