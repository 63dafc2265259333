-- Bronze: every record as it came. A field that is new in a file becomes a column.
CREATE OR REFRESH STREAMING TABLE bronze.events
COMMENT 'Events as they landed'
AS SELECT
  *,
  current_timestamp() AS _tech_loaded_at,
  _metadata.file_path AS _tech_source_file
FROM STREAM read_files('${dwh.landing}/events', format => 'json', schemaHints => 'id BIGINT, name STRING, happened_at TIMESTAMP');
