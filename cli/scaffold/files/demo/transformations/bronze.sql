-- Bronze: every record as it came, with where and when. Nothing is parsed away.

CREATE OR REFRESH STREAMING TABLE bronze.shop_order
COMMENT 'One row per webshop order document. Raw; technical columns only.'
AS SELECT
  *,
  current_timestamp()   AS _tech_loaded_at,
  _metadata.file_path   AS _tech_source_file,
  '${dwh.batch_id}'     AS _tech_batch_id
FROM STREAM read_files(
  '${dwh.landing}/shop_order',
  format              => 'json',
  schemaEvolutionMode => 'addNewColumns',
  schemaHints         => 'order_id STRING, order_ts TIMESTAMP, total_amount DECIMAL(18,2)'
);

CREATE OR REFRESH STREAMING TABLE bronze.sap_vbak
COMMENT 'Change records of SAP order headers (VBAK), names and values as SAP sends them.'
AS SELECT
  *,
  current_timestamp()   AS _tech_loaded_at,
  _metadata.file_path   AS _tech_source_file,
  '${dwh.batch_id}'     AS _tech_batch_id
FROM STREAM read_files(
  '${dwh.landing}/sap_vbak',
  format      => 'csv',
  schemaHints => 'VBELN STRING, KUNNR STRING, ERDAT DATE, LOEKZ STRING, change_type STRING, change_seq BIGINT'
);

CREATE OR REFRESH STREAMING TABLE bronze.sap_vbap
COMMENT 'Change records of SAP order items (VBAP), names and values as SAP sends them.'
AS SELECT
  *,
  current_timestamp()   AS _tech_loaded_at,
  _metadata.file_path   AS _tech_source_file,
  '${dwh.batch_id}'     AS _tech_batch_id
FROM STREAM read_files(
  '${dwh.landing}/sap_vbap',
  format      => 'csv',
  schemaHints => 'VBELN STRING, POSNR STRING, NETWR DECIMAL(18,2), WAERK STRING, ERDAT DATE, change_type STRING, change_seq BIGINT'
);

-- A full extract of the customers a day. Nothing in it says what changed: that is the
-- difference to the extract before. Which day it is of stands in the name of the file;
-- when it was loaded says nothing. Every extract is kept: they are all there is of history.
CREATE OR REFRESH STREAMING TABLE bronze.sap_kna1 (
  CONSTRAINT has_date EXPECT (_tech_extract_date IS NOT NULL) ON VIOLATION FAIL UPDATE
)
COMMENT 'Full extracts of SAP customers (KNA1), one row per customer and extract.'
AS SELECT
  *,
  to_date(regexp_extract(_metadata.file_name, 'sap_kna1_([0-9]{8})', 1), 'yyyyMMdd') AS _tech_extract_date,
  current_timestamp()   AS _tech_loaded_at,
  _metadata.file_path   AS _tech_source_file,
  '${dwh.batch_id}'     AS _tech_batch_id
FROM STREAM read_files(
  '${dwh.landing}/sap_kna1',
  format      => 'csv',
  schemaHints => 'KUNNR STRING, NAME1 STRING, STRAS STRING, PSTLZ STRING, ORT01 STRING, LAND1 STRING, KUKLA STRING'
);

-- The ECB's file is wide: one column a currency, N/A where there is no rate.
CREATE OR REFRESH STREAMING TABLE bronze.ecb_rates
COMMENT 'Euro reference rates as the ECB publishes them, one row a day.'
AS SELECT
  *,
  current_timestamp()   AS _tech_loaded_at,
  _metadata.file_path   AS _tech_source_file
FROM STREAM read_files('${dwh.landing}/ecb_rates', format => 'csv', inferColumnTypes => 'false');
