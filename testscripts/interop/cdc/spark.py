"""Applies the batches of a feed with Spark's own AUTO CDC and prints each target's rows as JSON lines.

It needs a target with row-level operations, which Delta's connector for Spark does not offer yet: the tables are in the
in-memory catalog of Spark's tests, whose jar Spark fetches from Maven. (The jar of 4.2.0 is the newest there is.)
"""
import json
import pathlib
import sys

from pyspark import pipelines as dp
from pyspark.pipelines.graph_element_registry import graph_element_registration_context
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run
from pyspark.sql import SparkSession

JAR = "https://repo1.maven.org/maven2/org/apache/spark/spark-catalyst_2.13/4.2.0/spark-catalyst_2.13-4.2.0-tests.jar"
CATALOG = "org.apache.spark.sql.connector.catalog.SharedTablesInMemoryRowLevelOperationTableCatalog"
SCHEMA = "id INT, region STRING, name STRING, city STRING, amount DOUBLE, op STRING, seq BIGINT"
TARGETS = {
    "one": {"stored_as_scd_type": 1},
    "two": {"stored_as_scd_type": 2},
    "tracked": {"stored_as_scd_type": 2, "track_history_except_column_list": ["city", "amount"]},
}


def define(spark, landing):
    @dp.temporary_view
    def feed():
        return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(f"{landing}/*.json")

    for name, options in TARGETS.items():
        dp.create_streaming_table(name)
        dp.create_auto_cdc_flow(
            target=name, source="feed", keys=["id", "region"], sequence_by="seq", apply_as_deletes="op = 'D'",
            except_column_list=["op", "seq"], **options,
        )


def main():
    landing, work = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.jars", JAR)
        .config("spark.sql.catalog.cat", CATALOG)
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    spark.sql("CREATE NAMESPACE cat.db")
    graph = create_dataflow_graph(spark, default_catalog="cat", default_database="db", sql_conf={"spark.sql.shuffle.partitions": "1"})
    with graph_element_registration_context(SparkConnectGraphElementRegistry(spark, graph)):
        define(spark, landing)
    failed = []
    run = start_run(spark, graph, full_refresh=None, full_refresh_all=False, refresh=None, dry=False, storage=f"file://{work}/storage")
    for event in run:
        if "pipeline_event_result" in event and "FAILED" in event["pipeline_event_result"].event.message:
            failed.append(event["pipeline_event_result"].event.message)
    if failed:
        sys.exit("\n".join(failed))
    for name in TARGETS:
        table = spark.table(f"cat.db.{name}")
        rows = table.drop("__spark_autocdc_metadata").toArrow().to_pylist()
        (work / f"{name}.json").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
