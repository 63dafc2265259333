"""Writes NDJSON files FROM to TO (exclusive) into a folder, the same each time."""
import json
import pathlib
import sys

folder, start, end = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
new_column = "--new-column" in sys.argv


def row(n):
    r = {
        "i8": n % 200 - 100, "i16": n * 31 % 60000 - 30000, "i32": n * 7919 - 10**6, "i64": n * 10**12 + n,
        "f32": n / 4, "f64": n / 3, "yes": n % 2 == 0, "amount": round(n * 1.01, 2), "big": f"{n}.{n % 10**10:010d}",
        "d": f"20{n % 30:02d}-0{n % 9 + 1}-{n % 28 + 1:02d}", "ts": f"2026-04-{n % 28 + 1:02d}T{n % 24:02d}:{n % 60:02d}:{n % 60:02d}.{n % 10**6:06d}Z",
        "text": ["plain", "", "grüße ✓ 漢字", 'quote " and \\ and \n line'][n % 4], "tags": [f"t{k}" for k in range(n % 4)],
        "buyer": {"name": f"b{n % 9}", "age": n % 90}, "counts": {f"k{k}": k * n for k in range(n % 3)},
        "region": ["north", "süd", "a b", "x=y/z"][n % 4],
    }
    if n % 5 == 0:
        r = {k: None if k not in ("i64", "region") else v for k, v in r.items()}
    if n % 11 == 0:
        r["region"] = None
    if new_column:
        r["later"] = f"new {n}"
    return r


for f in range(start, end):
    text = "".join(json.dumps(row(f * 50 + k), ensure_ascii=False) + "\n" for k in range(50))
    (folder / f"part_{f:03d}.json").write_text(text, encoding="utf-8")
