"""MERGE of 10,000 changes into a Delta table, by delta-rs or by Spark.

p9.py ENGINE FOLDER ROWS CHANGES TIMES prints the seconds of each merge. Nine
tenths of the changes update a row, one twentieth inserts and one deletes.
"""

import os
import random
import sys
import time

engine, folder, rows, changes, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
random.seed(8)
following = rows


def batch(seq):
    """The changes as columns; no key comes twice."""
    global following
    ids, ops = [], []
    for i, id in enumerate(random.sample(range(rows), changes)):
        if i % 20 == 0:
            id = following
            following += 1
        ids.append(id)
        ops.append("D" if i % 20 == 1 else "U")
    return {
        "id": ids,
        "name": [f"customer {id * 7919 % 1000003} of {id % 97}" for id in ids],
        "city": [f"city {random.randrange(500)}" for _ in ids],
        "amount": [random.randrange(100000) + id % 100 / 100 for id in ids],
        "op": ops,
    }


def delta_rs():
    import deltalake
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("city", pa.string()), ("amount", pa.float64())])

    def load():
        for start in range(0, rows, 100_000):
            ids = range(start, min(rows, start + 100_000))
            yield pa.record_batch(
                [
                    list(ids),
                    [f"customer {id * 7919 % 1000003} of {id % 97}" for id in ids],
                    [f"city {id * 31 % 500}" for id in ids],
                    [id * 17 % 100000 + id % 100 / 100 for id in ids],
                ],
                schema=schema,
            )

    deltalake.write_deltalake(folder, pa.RecordBatchReader.from_batches(schema, load()))
    for i in range(times):
        source = pa.table(batch(i))
        began = time.perf_counter()
        table = deltalake.DeltaTable(folder)
        values = {c: f"s.{c}" for c in schema.names}
        (
            table.merge(source, predicate="t.id = s.id", source_alias="s", target_alias="t")
            .when_matched_delete(predicate="s.op = 'D'")
            .when_matched_update(updates=values)
            .when_not_matched_insert(updates=values, predicate="s.op <> 'D'")
            .execute()
        )
        print("seconds", time.perf_counter() - began, flush=True)


def spark():
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.1")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.log.level", "OFF")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.range(rows).selectExpr(
        "id",
        "concat('customer ', id * 7919 % 1000003, ' of ', id % 97) AS name",
        "concat('city ', id * 31 % 500) AS city",
        "CAST(id * 17 % 100000 + id % 100 / 100 AS DOUBLE) AS amount",
    ).write.format("delta").option("delta.enableDeletionVectors", "true").save(folder)
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i in range(times):
        file = f"{folder}-changes-{i}.parquet"
        pq.write_table(pa.table(batch(i)), file)
        session.read.parquet(file).createOrReplaceTempView("s")
        began = time.perf_counter()
        session.sql(
            f"MERGE INTO delta.`{folder}` t USING s ON t.id = s.id "
            "WHEN MATCHED AND s.op = 'D' THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET id = s.id, name = s.name, city = s.city, amount = s.amount "
            "WHEN NOT MATCHED AND s.op <> 'D' THEN INSERT (id, name, city, amount) VALUES (s.id, s.name, s.city, s.amount)"
        )
        print("seconds", time.perf_counter() - began, flush=True)
    session.stop()


spark() if engine == "spark" else delta_rs()
sys.stdout.flush()
os._exit(0)  # the interpreter now and then aborts while it is torn down
