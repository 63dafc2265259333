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

-- The ECB's file is wide: one column a currency, N/A where there is no rate.
CREATE OR REFRESH STREAMING TABLE bronze.ecb_rates
COMMENT 'Euro reference rates as the ECB publishes them, one row a day.'
AS SELECT
  *,
  current_timestamp()   AS _tech_loaded_at,
  _metadata.file_path   AS _tech_source_file
FROM STREAM read_files('${dwh.landing}/ecb_rates', format => 'csv', inferColumnTypes => 'false');
