-- The SQL of the documents that Weir was conceived from, block by block: what
-- each gives when it is read. "parses" is all but a name of an error.

--@ 000 projection of a dimension: SCD2 columns renamed, catalog from the configuration: parses
CREATE OR REFRESH MATERIALIZED VIEW IDENTIFIER(:catalog || '.gold.dim_customer') AS
SELECT customer_id, customer_name,
       __START_AT AS _tech_valid_from, __END_AT AS _tech_valid_to, __END_AT IS NULL AS _tech_is_current
FROM IDENTIFIER(:catalog || '.silver.customer_history');

--@ 002 where files land: UNSUPPORTED_PIPELINE_STATEMENT
CREATE EXTERNAL LOCATION IF NOT EXISTS landing_orders
URL 'abfss://landing@stlakeprod.dfs.core.windows.net/orders' WITH (STORAGE CREDENTIAL sc_lake);
--@ 002 who may read them: UNSUPPORTED_PIPELINE_STATEMENT
GRANT READ FILES ON EXTERNAL LOCATION landing_orders TO `data-engineers`;
--@ 002 checkpoints: UNSUPPORTED_PIPELINE_STATEMENT
CREATE VOLUME IF NOT EXISTS ops.pipelines.autoloader;
--@ 002 gold of a job: UNSUPPORTED_PIPELINE_STATEMENT
CREATE OR REPLACE TABLE main.gold.daily_sales AS
SELECT order_date, region, count(*) AS orders, sum(amount) AS revenue FROM main.silver.orders GROUP BY order_date, region;
--@ 002 the pipeline: parses
CREATE OR REFRESH STREAMING TABLE orders_raw AS
SELECT *, _metadata.file_path AS source_file, current_timestamp() AS ingest_ts
FROM STREAM read_files('abfss://landing@stlakeprod.dfs.core.windows.net/orders/',
                       format => 'json', schemaHints => 'amount DECIMAL(18,2)');
CREATE OR REFRESH STREAMING TABLE orders (
  CONSTRAINT valid_id EXPECT (order_id IS NOT NULL) ON VIOLATION DROP ROW
) AS SELECT * FROM STREAM(orders_raw) WHERE _rescued_data IS NULL;
CREATE OR REFRESH MATERIALIZED VIEW daily_sales AS
SELECT to_date(order_ts) AS order_date, region, count(*) orders, sum(amount) revenue FROM orders GROUP BY ALL;
--@ 002 files of a stream: UNSUPPORTED_PIPELINE_STATEMENT
SELECT * FROM cloud_files_state('/Volumes/ops/pipelines/autoloader/orders/_checkpoint_bronze') ORDER BY commit_time DESC LIMIT 20;

--@ 003 the form of AUTO CDC: parses
CREATE OR REFRESH STREAMING TABLE target_table;
CREATE FLOW flow_name AS AUTO CDC INTO target_table
FROM STREAM(source_table_or_view)
KEYS (key1, key2)
IGNORE NULL UPDATES
APPLY AS DELETE WHEN operation = 'DELETE'
APPLY AS TRUNCATE WHEN operation = 'TRUNCATE'
SEQUENCE BY seq
COLUMNS * EXCEPT (operation, seq)
STORED AS SCD TYPE 1;
--@ 003 AUTO CDC, latest rows: parses
CREATE OR REFRESH STREAMING TABLE users;
CREATE FLOW user_flow AS AUTO CDC INTO users
FROM STREAM(user_changes)
KEYS (user_id)
SEQUENCE BY updated_at;
--@ 003 AUTO CDC after a view: parses
CREATE OR REFRESH TEMPORARY VIEW filtered_changes AS
SELECT * FROM source_table WHERE status = 'active';
CREATE OR REFRESH STREAMING TABLE active_records;
CREATE FLOW active_flow AS AUTO CDC INTO active_records
FROM STREAM(filtered_changes)
KEYS (record_id)
SEQUENCE BY updated_at;
--@ 003 AUTO CDC, deletes and sparse updates: parses
CREATE FLOW order_flow AS AUTO CDC INTO orders
FROM STREAM(order_events)
KEYS (order_id)
IGNORE NULL UPDATES
APPLY AS DELETE WHEN operation = 'DELETE'
SEQUENCE BY event_timestamp;
--@ 003 AUTO CDC, history: parses
CREATE FLOW customer_flow AS AUTO CDC INTO customer_history
FROM STREAM(customer_changes)
KEYS (customer_id)
SEQUENCE BY changed_at
STORED AS SCD TYPE 2;
--@ 003 AUTO CDC, history of two columns: parses
CREATE FLOW f AS AUTO CDC INTO h FROM STREAM(c) KEYS (id) SEQUENCE BY at_time
STORED AS SCD TYPE 2 TRACK HISTORY ON balance, status;
--@ 003 AUTO CDC, history of all but two columns: parses
CREATE FLOW f AS AUTO CDC INTO h FROM STREAM(c) KEYS (id) SEQUENCE BY at_time
STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (last_login, view_count);
--@ 003 AUTO CDC, some columns: parses
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(c) KEYS (account_id) SEQUENCE BY n COLUMNS account_id, balance, status;
--@ 003 AUTO CDC, all but some columns: parses
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(c) KEYS (account_id) SEQUENCE BY n COLUMNS * EXCEPT (internal_notes, temp_field);
--@ 003 AUTO CDC, a counter breaks ties: parses
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(c) KEYS (id) SEQUENCE BY STRUCT(event_timestamp, event_id);
--@ 003 AUTO CDC, DELETE after SEQUENCE BY: PARSE_SYNTAX_ERROR
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(c) KEYS (id) SEQUENCE BY n APPLY AS DELETE WHEN operation = 'DELETE';
--@ 003 files: parses
CREATE OR REFRESH STREAMING TABLE my_table
AS SELECT * FROM STREAM read_files('s3://bucket/path', format => 'json');
--@ 003 files by a flow: parses
CREATE OR REFRESH STREAMING TABLE target_table;
CREATE FLOW ingest_flow
AS INSERT INTO target_table BY NAME
SELECT * FROM STREAM read_files('s3://bucket/path', format => 'json');
--@ 003 migrated bronze: parses
CREATE OR REFRESH STREAMING TABLE bronze_sales
COMMENT 'Raw sales' AS
SELECT *, current_timestamp() AS _ingested_at
FROM STREAM read_files('/Volumes/cat/sch/raw/sales', format => 'json');
--@ 003 migrated silver: parses
CREATE OR REFRESH STREAMING TABLE silver_sales AS
SELECT sale_id, customer_id, CAST(amount AS DECIMAL(10,2)) AS amount, CAST(sale_date AS DATE) AS sale_date
FROM STREAM(bronze_sales)
WHERE amount > 0 AND sale_id IS NOT NULL;
--@ 003 migrated history: parses
CREATE OR REFRESH STREAMING TABLE customers_history;
CREATE FLOW customers_scd2_flow AS
AUTO CDC INTO customers_history
FROM STREAM(customers_cdc_clean)
KEYS (customer_id)
APPLY AS DELETE WHEN operation = 'DELETE'
SEQUENCE BY event_timestamp
COLUMNS * EXCEPT (operation, _ingested_at, _source_file)
STORED AS SCD TYPE 2;
--@ 003 a migrated expectation: parses
CREATE OR REFRESH STREAMING TABLE silver_sales (
  CONSTRAINT valid_amount EXPECT (amount > 0) ON VIOLATION DROP ROW
) AS SELECT * FROM STREAM(bronze_sales);
--@ 003 a function becomes CASE: parses
CREATE OR REFRESH MATERIALIZED VIEW categories AS
SELECT *, CASE WHEN amount > 1000 THEN 'High' WHEN amount > 100 THEN 'Medium' ELSE 'Low' END AS category FROM sales;
--@ 003 expectations of three kinds: parses
CREATE OR REFRESH STREAMING TABLE customers_clean (
  CONSTRAINT valid_email EXPECT (email LIKE '%@%')      ON VIOLATION DROP ROW,
  CONSTRAINT required_id EXPECT (id IS NOT NULL)        ON VIOLATION FAIL UPDATE,
  CONSTRAINT valid_age   EXPECT (age BETWEEN 0 AND 120) -- warn only
) AS SELECT * FROM STREAM(raw_customers);
--@ 003 expectations with functions: parses
CREATE OR REFRESH STREAMING TABLE transactions (
  CONSTRAINT valid_date          EXPECT (year(transaction_date) >= 2020),
  CONSTRAINT non_negative_price  EXPECT (price >= 0),
  CONSTRAINT recent_purchase     EXPECT (transaction_date <= current_date())
) AS SELECT * FROM STREAM(raw_transactions);
--@ 003 an expectation on a materialized view: parses
CREATE OR REFRESH MATERIALIZED VIEW active_subscriptions (
  CONSTRAINT valid_dates EXPECT (
    start_date <= end_date
    AND end_date <= current_date()
    AND start_date >= '2020-01-01'
  ) ON VIOLATION DROP ROW
) AS SELECT * FROM subscriptions WHERE status = 'active';
--@ 003 an expectation on a view: parses
CREATE LIVE VIEW high_value_customers (
  CONSTRAINT valid_total EXPECT (total_purchases > 0)
) AS
SELECT customer_id, SUM(amount) AS total_purchases
FROM orders
GROUP BY customer_id
HAVING total_purchases > 1000;
--@ 003 an expectation on a temporary view: NOT_SUPPORTED
CREATE TEMPORARY VIEW high_value_customers (
  CONSTRAINT valid_total EXPECT (total_purchases > 0)
) AS SELECT 1 AS total_purchases;
--@ 003 Kafka: NOT_SUPPORTED
CREATE OR REFRESH STREAMING TABLE bronze_kafka_events AS
SELECT CAST(key AS STRING) AS event_key, CAST(value AS STRING) AS event_value,
       topic, partition, offset, timestamp AS kafka_timestamp, current_timestamp() AS _ingested_at
FROM read_kafka(
  bootstrapServers => '${kafka_brokers}',
  subscribe        => 'events-topic',
  startingOffsets  => 'latest'
);
--@ 003 payloads of Kafka: parses
CREATE OR REFRESH STREAMING TABLE silver_events AS
SELECT data.*, kafka_timestamp, _ingested_at
FROM (
  SELECT from_json(event_value, 'event_id STRING, event_type STRING, timestamp TIMESTAMP') AS data,
         kafka_timestamp, _ingested_at
  FROM STREAM(bronze_kafka_events)
);
--@ 003 the form of a materialized view: parses
CREATE OR REFRESH PRIVATE MATERIALIZED VIEW view_name
  ( a BIGINT NOT NULL COMMENT 'key', b STRING,
    CONSTRAINT known EXPECT (b IS NOT NULL) ON VIOLATION FAIL UPDATE,
    CONSTRAINT pk PRIMARY KEY (a) )
  CLUSTER BY (a)
  COMMENT 'rows'
  TBLPROPERTIES ('delta.enableRowTracking' = 'true')
  AS SELECT a, b FROM source;
--@ 003 a clustered aggregate: parses
CREATE OR REFRESH MATERIALIZED VIEW daily_sales_summary
CLUSTER BY (sale_date, region)
AS
SELECT DATE(order_timestamp) AS sale_date, region, COUNT(*) AS order_count, SUM(amount) AS total_revenue
FROM raw.orders
GROUP BY DATE(order_timestamp), region;
--@ 003 a generated column: parses
CREATE OR REFRESH MATERIALIZED VIEW orders_with_day (
  order_datetime    STRING,
  order_day_of_week STRING GENERATED ALWAYS AS (dayofweek(order_datetime)),
  customer_id       BIGINT,
  amount            DECIMAL(10,2)
)
CLUSTER BY (order_day_of_week, customer_id)
AS SELECT order_datetime, customer_id, amount FROM raw.orders;
--@ 003 a row filter: NOT_SUPPORTED
CREATE OR REFRESH MATERIALIZED VIEW employees (
  emp_id INT, emp_name STRING, dept STRING, salary DECIMAL(10,2)
)
WITH ROW FILTER my_catalog.my_schema.filter_by_dept ON (dept)
AS SELECT * FROM source.employees;
--@ 003 a column mask: NOT_SUPPORTED
CREATE OR REFRESH MATERIALIZED VIEW users_with_masked_ssn (
  user_id BIGINT,
  ssn     STRING MASK catalog.schema.ssn_mask_fn USING COLUMNS (region),
  region  STRING
)
AS SELECT user_id, ssn, region FROM raw.users;
--@ 003 a clustered stream: parses
CREATE OR REFRESH STREAMING TABLE bronze_events
CLUSTER BY (event_type, event_date)
AS SELECT *, current_timestamp() AS _ingested_at
FROM STREAM read_files('/Volumes/cat/sch/raw/events/', format => 'json');
--@ 003 clustering by itself: parses
CREATE OR REFRESH STREAMING TABLE t CLUSTER BY (AUTO) AS SELECT * FROM STREAM(bronze_events);
--@ 003 what clustering replaces: PARSE_SYNTAX_ERROR
CREATE OR REFRESH STREAMING TABLE t PARTITIONED BY (date DATE)
TBLPROPERTIES ('pipelines.autoOptimize.zOrderCols' = 'user_id,event_type') AS SELECT * FROM STREAM(bronze_events);
--@ 003 properties of a table: parses
CREATE OR REFRESH STREAMING TABLE t TBLPROPERTIES (
  'delta.autoOptimize.optimizeWrite' = 'true',     -- right-size new files on write
  'delta.autoOptimize.autoCompact'   = 'true',
  'delta.enableChangeDataFeed'       = 'true',
  'delta.logRetentionDuration'        = '7 days',
  'delta.deletedFileRetentionDuration' = '7 days'
) AS SELECT * FROM STREAM(bronze_events);
--@ 003 a view by the clock: NOT_SUPPORTED
CREATE OR REFRESH MATERIALIZED VIEW gold_live_metrics
REFRESH EVERY 5 MINUTES
AS SELECT metric_name, AVG(metric_value) AS avg_value, MAX(last_updated) AS freshness
   FROM silver_metrics GROUP BY metric_name;
--@ 003 state without bounds: UNSUPPORTED_STREAMING_OPERATION
CREATE OR REFRESH STREAMING TABLE t AS
SELECT user_id, product_id, session_id, COUNT(*) AS n
FROM STREAM(bronze_events)
GROUP BY user_id, product_id, session_id;
--@ 003 state per hour: NOT_SUPPORTED
CREATE OR REFRESH STREAMING TABLE t AS
SELECT user_id, count(*) AS n FROM STREAM(bronze_events) GROUP BY user_id, window(event_time, '1 hour');
--@ 003 daily counts of a stream: UNSUPPORTED_STREAMING_OPERATION
CREATE OR REFRESH STREAMING TABLE user_daily_stats AS
SELECT user_id, DATE(event_time) AS event_date, COUNT(*) AS event_count
FROM STREAM(bronze_events)
GROUP BY user_id, DATE(event_time);
--@ 003 monthly counts of a table: parses
CREATE OR REFRESH MATERIALIZED VIEW user_monthly_stats AS
SELECT user_id, DATE_TRUNC('month', event_date) AS month, SUM(event_count) AS total_events
FROM user_daily_stats
GROUP BY user_id, DATE_TRUNC('month', event_date);
--@ 003 a stream joins a table: parses
CREATE OR REFRESH STREAMING TABLE sales_enriched AS
SELECT s.sale_id, s.product_id, s.amount, p.product_name, p.category
FROM STREAM(bronze_sales) s
LEFT JOIN dim_products p ON s.product_id = p.product_id;
--@ 003 a stream joins a stream: NOT_SUPPORTED
CREATE OR REFRESH STREAMING TABLE orders_with_payments AS
SELECT o.order_id, o.amount AS order_amount, p.payment_id, p.amount AS payment_amount
FROM STREAM(bronze_orders) o
INNER JOIN STREAM(bronze_payments) p
  ON o.order_id = p.order_id
 AND p.payment_time BETWEEN o.order_time AND o.order_time + INTERVAL 1 HOUR;
--@ 003 filter early: parses
CREATE OR REFRESH STREAMING TABLE silver_recent AS
SELECT * FROM STREAM(bronze_events)
WHERE event_date >= CURRENT_DATE() - INTERVAL 7 DAYS;
--@ 003 aggregate early: parses
CREATE OR REFRESH MATERIALIZED VIEW orders_monthly AS
SELECT customer_id, YEAR(order_date) AS year, MONTH(order_date) AS month, SUM(amount) AS total
FROM large_orders_table
GROUP BY customer_id, YEAR(order_date), MONTH(order_date);
--@ 003 freshness: UNSUPPORTED_PIPELINE_STATEMENT
SELECT table_name, MAX(event_timestamp) AS latest_event,
       TIMESTAMPDIFF(MINUTE, MAX(event_timestamp), CURRENT_TIMESTAMP()) AS lag_minutes
FROM pipeline_monitoring.table_metrics
GROUP BY table_name;
--@ 003 current rows of a history: parses
CREATE OR REFRESH MATERIALIZED VIEW dim_customers_current AS
SELECT customer_id, customer_name, email, phone, address, __START_AT AS valid_from
FROM dim_customers
WHERE __END_AT IS NULL;
--@ 003 a history at a day: parses
CREATE OR REFRESH MATERIALIZED VIEW products_as_of_2024_01_01 AS
SELECT product_id, product_name, price, category, __START_AT, __END_AT
FROM products_history
WHERE __START_AT <= '2024-01-01'
  AND (__END_AT > '2024-01-01' OR __END_AT IS NULL);
--@ 003 all versions of one: parses
CREATE OR REFRESH MATERIALIZED VIEW versions AS
SELECT customer_id, customer_name, email, phone,
       COALESCE(DATEDIFF(DAY, __START_AT, __END_AT), DATEDIFF(DAY, __START_AT, CURRENT_TIMESTAMP())) AS days_active
FROM dim_customers
WHERE customer_id = '12345'
ORDER BY __START_AT DESC;
--@ 003 changes in a quarter: parses
CREATE OR REFRESH MATERIALIZED VIEW changes AS
SELECT customer_id, customer_name, __START_AT AS change_timestamp, 'UPDATE' AS change_type
FROM dim_customers c
WHERE __START_AT BETWEEN '2024-01-01' AND '2024-03-31'
  AND __START_AT != (SELECT MIN(__START_AT) FROM dim_customers c2 WHERE c2.customer_id = c.customer_id)
ORDER BY __START_AT;
--@ 003 facts with the dimension of their time: parses
CREATE OR REFRESH MATERIALIZED VIEW sales_with_historical_prices AS
SELECT s.sale_id, s.product_id, s.sale_date, s.quantity, p.product_name, p.price AS unit_price_at_sale_time,
       s.quantity * p.price AS calculated_amount, p.category
FROM sales_fact s
INNER JOIN products_history p
  ON s.product_id = p.product_id
 AND s.sale_date  >= p.__START_AT
 AND (s.sale_date < p.__END_AT OR p.__END_AT IS NULL);
--@ 003 facts with the dimension of today: parses
CREATE OR REFRESH MATERIALIZED VIEW sales_with_current_prices AS
SELECT s.sale_id, s.product_id, s.sale_date, s.quantity, s.amount AS amount_at_sale,
       p.product_name AS current_product_name, p.price AS current_price
FROM sales_fact s
INNER JOIN products_history p
  ON s.product_id = p.product_id
 AND p.__END_AT IS NULL;
--@ 003 a filter kept: parses
CREATE OR REFRESH MATERIALIZED VIEW dim_products_current AS
SELECT * FROM products_history WHERE __END_AT IS NULL;
--@ 003 figures of a history: parses
CREATE OR REFRESH MATERIALIZED VIEW product_change_stats AS
SELECT product_id, COUNT(*) AS version_count, MIN(__START_AT) AS first_seen, MAX(__START_AT) AS last_updated
FROM products_history
GROUP BY product_id;

--@ 004 bronze: parses
CREATE OR REFRESH STREAMING TABLE orders_bronze
COMMENT 'Raw orders as received'
AS SELECT *, current_timestamp() AS _ingested_at
FROM STREAM read_files('${course.landing}', format => 'json');
--@ 004 gold: parses
CREATE MATERIALIZED VIEW gold_daily_revenue AS
SELECT order_date, COUNT(*) AS orders, ROUND(SUM(quantity * unit_price), 2) AS revenue
FROM orders_silver o JOIN dbx_course.products p USING (product_id)
WHERE status IN ('completed', 'shipped')
GROUP BY order_date;
--@ 004 expectations: parses
CREATE OR REFRESH STREAMING TABLE orders_clean (
  CONSTRAINT has_customer EXPECT (customer_id IS NOT NULL),
  CONSTRAINT positive_qty EXPECT (quantity > 0) ON VIOLATION DROP ROW,
  CONSTRAINT has_order_id EXPECT (order_id IS NOT NULL) ON VIOLATION FAIL UPDATE
) AS SELECT * FROM STREAM orders_silver;
--@ 004 history: parses
CREATE OR REFRESH STREAMING TABLE customers_history;
CREATE FLOW customers_cdc AS AUTO CDC INTO customers_history
FROM STREAM(dbx_course.customers_feed)
KEYS (customer_id)
APPLY AS DELETE WHEN operation = 'DELETE'
SEQUENCE BY seq
COLUMNS * EXCEPT (operation, seq)
STORED AS SCD TYPE 2;
--@ 004 how a view was computed: parses
CREATE OR REFRESH MATERIALIZED VIEW techniques AS
SELECT timestamp, message
FROM event_log(TABLE(main.dbx_pipeline.gold_daily_revenue))
WHERE event_type = 'planning_information'
ORDER BY timestamp DESC;
--@ 004 a value of the configuration: parses
CREATE OR REFRESH STREAMING TABLE orders_valid AS
SELECT * FROM STREAM orders_bronze WHERE quantity >= ${course.min_qty};
--@ 004 a catalog of the configuration: parses
USE CATALOG IDENTIFIER(:source_catalog);
CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT * FROM s.t;
--@ 004 the log of a pipeline: parses
CREATE OR REFRESH MATERIALIZED VIEW last_events AS
SELECT timestamp, event_type, message
FROM event_log('shop')
ORDER BY timestamp DESC
LIMIT 20;
