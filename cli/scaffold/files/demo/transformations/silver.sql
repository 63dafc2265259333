-- Silver: typed rows under names of ours. What breaks a rule is kept beside its
-- table, in <table>_quarantine, with the rule and the place it came from.

-- silver.shop_order and silver.shop_order_line are declared by plugins/webshop,
-- which turns each raw document into typed rows.

-- The ECB's file is wide; here it has one row a currency and day.
CREATE OR REFRESH STREAMING TABLE silver.ecb_rates
COMMENT 'Units of a currency for one euro, by day'
AS SELECT
  CAST(rate_date AS DATE)             AS rate_date,
  quote.currency                      AS currency,
  CAST(quote.rate AS DECIMAL(18,6))   AS rate
FROM (
  SELECT `Date` AS rate_date, UNNEST([
      {'currency': 'USD', 'rate': USD}, {'currency': 'JPY', 'rate': JPY}, {'currency': 'CZK', 'rate': CZK},
      {'currency': 'DKK', 'rate': DKK}, {'currency': 'GBP', 'rate': GBP}, {'currency': 'HUF', 'rate': HUF},
      {'currency': 'PLN', 'rate': PLN}, {'currency': 'RON', 'rate': RON}, {'currency': 'SEK', 'rate': SEK},
      {'currency': 'CHF', 'rate': CHF}, {'currency': 'ISK', 'rate': ISK}, {'currency': 'NOK', 'rate': NOK},
      {'currency': 'TRY', 'rate': `TRY`}, {'currency': 'AUD', 'rate': AUD}, {'currency': 'BRL', 'rate': BRL},
      {'currency': 'CAD', 'rate': CAD}, {'currency': 'CNY', 'rate': CNY}, {'currency': 'HKD', 'rate': HKD},
      {'currency': 'IDR', 'rate': IDR}, {'currency': 'ILS', 'rate': ILS}, {'currency': 'INR', 'rate': INR},
      {'currency': 'KRW', 'rate': KRW}, {'currency': 'MXN', 'rate': MXN}, {'currency': 'MYR', 'rate': MYR},
      {'currency': 'NZD', 'rate': NZD}, {'currency': 'PHP', 'rate': PHP}, {'currency': 'SGD', 'rate': SGD},
      {'currency': 'THB', 'rate': THB}, {'currency': 'ZAR', 'rate': ZAR}
    ]) AS quote
  FROM STREAM(bronze.ecb_rates)
)
WHERE quote.rate <> 'N/A';

-- SAP's change records, under canonical names (plugins/sap), applied in the order of
-- change_seq, however they come: twice, late, or a delete before its insert. An order
-- is deleted by a record that says so, or by SAP's deletion flag.
CREATE OR REFRESH STREAMING TABLE silver.sales_order
COMMENT 'One row per SAP sales order, current state (SCD 1)';

CREATE FLOW sales_order_changes AS AUTO CDC INTO silver.sales_order
FROM STREAM(vbak_typed)
KEYS (order_id)
APPLY AS DELETE WHEN change_type = 'D' OR deletion_flag = 'X'
SEQUENCE BY change_seq
COLUMNS * EXCEPT (change_type, change_seq, deletion_flag)
STORED AS SCD TYPE 1;

-- The items are a flow of their own: header and line meet in gold, where the unknown
-- member is. plugins/sap converts each amount to euro, by the rate of its day or the last
-- before it; what it cannot convert is set aside. Items have no deletion flag.
CREATE OR REFRESH STREAMING TABLE silver.sales_order_line
COMMENT 'One row per SAP sales order item, current state (SCD 1), amounts in euro'
TBLPROPERTIES ('weir.onRowError' = 'quarantine');

CREATE FLOW sales_order_line_changes AS AUTO CDC INTO silver.sales_order_line
FROM STREAM(vbap_typed)
KEYS (order_id, line_number)
APPLY AS DELETE WHEN change_type = 'D'
SEQUENCE BY change_seq
COLUMNS * EXCEPT (change_type, change_seq)
STORED AS SCD TYPE 1;

-- silver.customer is declared by plugins/kna1: the history of the customers (SCD 2), from
-- one extract to the next. Only a change of the segment opens a version.
