"""The pipeline of P14 and P15 in Spark with Delta: NDJSON to bronze, silver and gold."""

import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

work = sys.argv[1]
spark = (
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
began = time.monotonic()
lake = work + "/spark"


def stream(frame, table):
    frame.writeStream.format("delta").option("checkpointLocation", f"{lake}/_checkpoints/{table}").trigger(availableNow=True).start(
        f"{lake}/{table}"
    ).awaitTermination()


schema = spark.read.json(work + "/landing/0000.json").schema
stream(spark.readStream.schema(schema).json(work + "/landing"), "bronze")
stream(spark.readStream.format("delta").load(f"{lake}/bronze").where("order_id IS NOT NULL"), "silver")
gold = spark.read.format("delta").load(f"{lake}/silver").groupBy("order_id").agg(F.count("*").alias("n"))
gold.write.format("delta").mode("overwrite").save(f"{lake}/gold")
# The time after the start of the JVM, and what was made of it.
print("seconds", time.monotonic() - began, "rows", gold.count())
spark.stop()
