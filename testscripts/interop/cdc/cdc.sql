CREATE STREAMING TABLE feed AS SELECT * FROM STREAM read_files('./landing', format => 'json',
  schema => 'id INT, region STRING, name STRING, city STRING, amount DOUBLE, op STRING, seq BIGINT, rescued STRING', rescuedDataColumn => 'rescued');

CREATE STREAMING TABLE one TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
CREATE FLOW one AS AUTO CDC INTO one FROM STREAM(feed) KEYS (id, region) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq
COLUMNS * EXCEPT (op, seq, rescued) STORED AS SCD TYPE 1;

CREATE STREAMING TABLE two;
CREATE FLOW two AS AUTO CDC INTO two FROM STREAM(feed) KEYS (id, region) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq
COLUMNS * EXCEPT (op, seq, rescued) STORED AS SCD TYPE 2;

CREATE STREAMING TABLE tracked;
CREATE FLOW tracked AS AUTO CDC INTO tracked FROM STREAM(feed) KEYS (id, region) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq
COLUMNS * EXCEPT (op, seq, rescued) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (city, amount);
