CREATE OR REFRESH STREAMING TABLE typed.everything
PARTITIONED BY (region)
COMMENT 'One column of each type'
AS SELECT *, current_timestamp() AS loaded_at, _metadata.file_name AS file_name
FROM STREAM read_files('./landing', format => 'json', maxFilesPerTrigger => 1,
  schemaHints => 'i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f32 FLOAT, f64 DOUBLE, yes BOOLEAN, amount DECIMAL(18,2), big DECIMAL(38,10), d DATE, ts TIMESTAMP, tags ARRAY<STRING>, buyer STRUCT<name: STRING, age: INT>, counts MAP<STRING,BIGINT>, region STRING');

CREATE OR REFRESH STREAMING TABLE typed.replaced
AS SELECT i64, amount, region FROM STREAM(typed.everything) WHERE i64 % 2 = 0;
