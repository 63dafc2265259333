"""What tables.py asks of an engine: read, changes, append, delete, update, care."""
import base64
import pathlib
import subprocess
import json
import decimal

import pyarrow as pa


class DeltaLake:
    """The Python package deltalake (delta-rs)."""

    name, writes, updates, feeds, no_null_lists = "deltalake", True, False, True, False

    def __init__(self, args):
        pass

    def table(self, path):
        import deltalake

        return deltalake.DeltaTable(str(path))

    def read(self, path):
        from deltalake import QueryBuilder

        # Not to_pyarrow_table: it knows no deletion vectors and spells negative decimals of partitions wrong.
        got = pa.table(QueryBuilder().register("t", self.table(path)).execute("SELECT * FROM t").read_all())
        return got.to_pylist(), got.schema

    def changes(self, path):
        got = pa.table(self.table(path).load_cdf(starting_version=0).read_all())
        return got.to_pylist(), got.schema

    def append(self, path, rows, schema):
        import deltalake

        deltalake.write_deltalake(str(path), pa.Table.from_pylist(rows, schema), mode="append")

    def delete(self, path, where):
        self.table(path).delete(where)

    def care(self, path):
        t = self.table(path)
        t.optimize.compact()
        t.create_checkpoint()
        t.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


class Spark:
    """PySpark with the Delta package of the same release, from Maven."""

    name, writes, updates, feeds, no_null_lists = "spark", True, True, True, False

    def __init__(self, args):
        from pyspark.sql import SparkSession

        self.session = (
            SparkSession.builder.master("local[2]")
            .config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.1")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .config("spark.databricks.delta.snapshotPartitions", "2")
            .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # VACUUM makes ten thousand tasks of it otherwise
            .config("spark.log.level", "OFF")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )

    def rows(self, frame):
        got = frame.toArrow()
        return got.to_pylist(), got.schema

    def read(self, path):
        return self.rows(self.session.sql(f"SELECT * FROM delta.`{path}`"))

    def changes(self, path):
        return self.rows(self.session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(str(path)))

    def append(self, path, rows, schema):
        target = self.session.table(f"delta.`{path}`").schema
        frame = self.session.createDataFrame([tuple(r[f] for f in target.names) for r in rows], target)
        frame.write.format("delta").mode("append").save(str(path))

    def delete(self, path, where):
        self.session.sql(f"DELETE FROM delta.`{path}` WHERE {where}")

    def update(self, path, where, column, value):
        self.session.sql(f"UPDATE delta.`{path}` SET {column} = '{value}' WHERE {where}")

    def care(self, path):
        self.session.sql(f"OPTIMIZE delta.`{path}`")
        self.session.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")


class Chdb:
    """The npm package chdb: ClickHouse, whose Delta reader is delta-kernel-rs."""

    name, writes, updates, feeds, no_null_lists = "chdb", False, False, False, True

    def __init__(self, args):
        self.script = str(pathlib.Path(args.node, "chdb.mjs").resolve())
        self.program = args.program

    def read(self, path):
        # ClickHouse reads only below its working directory.
        path = path.resolve()
        out = subprocess.run(["node", self.script, str(path)], cwd=path.parent, check=True, stdout=subprocess.PIPE).stdout.decode()
        rows = [json.loads(line, parse_float=decimal.Decimal) for line in out.split("\n") if line]
        schema = pa.schema(DeltaLake(None).table(path).schema().to_arrow())
        for f in schema:
            if pa.types.is_binary(f.type):  # ClickHouse's JSON has them as texts
                for r in rows:
                    r[f.name] = r[f.name] and base64.b64encode(r[f.name].encode()).decode()
        return rows, schema


ENGINES = {"deltalake": DeltaLake, "spark": Spark, "chdb": Chdb}
