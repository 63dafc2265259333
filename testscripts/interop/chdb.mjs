// Prints every row of a Delta table as JSON, read by ClickHouse.
import { query } from "chdb";

const table = process.argv[2].replaceAll("'", "\\'");
process.stdout.write(query(
  `SELECT * FROM deltaLakeLocal('${table}') SETTINGS output_format_json_quote_decimals=1, ` +
  "output_format_json_quote_64bit_integers=0, output_format_json_named_tuples_as_objects=1, " +
  "date_time_output_format='iso', session_timezone='UTC', output_format_json_quote_denormals=1",
  "JSONEachRow"));
