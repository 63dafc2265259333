"""Writes a random change feed as batches of JSON lines: late events, exact duplicates, deletes before inserts, NULLs."""
import json
import pathlib
import random


def write(folder, seed, batches=3, keys=40, most=24):
    r = random.Random(seed)
    events = []
    for key in range(keys):
        for seq in r.sample(range(1000), r.randint(1, most)):
            e = {"id": key // 2, "region": ["north", "süd"][key % 2], "op": "D" if r.random() < 0.2 else "U", "seq": seq}
            # Few values, so that neighbours are often equal and runs form.
            for name, value in (("name", r.choice("abc")), ("city", r.choice("xyz")), ("amount", r.randint(0, 3) / 4)):
                e[name] = None if r.random() < 0.25 else value
            events.append(e)
            if r.random() < 0.15:
                events.append(dict(e))
    r.shuffle(events)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(batches):
        lines = [json.dumps(e, ensure_ascii=False) + "\n" for e in events[n::batches]]
        (folder / f"batch_{n}.json").write_text("".join(lines), encoding="utf-8")
    return len(events)
