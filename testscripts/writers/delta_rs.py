"""A writer of the test that is delta-rs: argv: place, number, steps. It prints its deeds as the others do."""
import json
import os
import sys
import time

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

place, number, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
APPENDED, POOL = 100_000_000, 1_000_000


def until_it_lands(change):
    """delta-rs gives up on a conflict, for appends beside deletions too, and when it
    lists the folder while others write into it; nothing has been written then."""
    for _ in range(1000):
        try:
            return change()
        except CommitFailedError:
            time.sleep(0.005)
        except DeltaError as e:
            if "found gap" not in str(e):
                raise
    raise SystemExit("1000 conflicts")


def append(ids):
    write_deltalake(place, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def delete(ids):
    metrics = DeltaTable(place).delete("id in (%s)" % ", ".join(map(str, ids)))
    if metrics["num_deleted_rows"] != len(ids):
        raise SystemExit("deleted %s of %s" % (metrics, ids))


for step in range(steps):
    deed = {"writer": number, "version": -1}
    own = APPENDED + number * 1_000_000 + step * 10
    if step % 4 != 3:
        deed["added"] = [own + i for i in range(5)]
        until_it_lands(lambda: append(deed["added"]))
    else:
        deed["deleted"] = [own - 10, own - 20 + 4, POOL + number * 100_000 + step]
        until_it_lands(lambda: delete(deed["deleted"]))
    print(json.dumps(deed), flush=True)

# Threads of pyarrow now and then abort the interpreter while it is torn down.
os._exit(0)
