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

-- SAP's change records under canonical names: plugins/sap renames the headers
-- and converts each item's amount to euro, by the rate of its day or the last before it.
CREATE OR REFRESH STREAMING TABLE silver.sales_order_changes
COMMENT 'Changes of SAP sales orders, in the order they came'
AS SELECT * FROM STREAM(vbak_typed);

CREATE OR REFRESH STREAMING TABLE silver.sales_order_line_changes (
  CONSTRAINT has_key EXPECT (order_id IS NOT NULL AND line_number IS NOT NULL) ON VIOLATION FAIL UPDATE
)
COMMENT 'Changes of SAP sales order items, with their amount in euro'
TBLPROPERTIES ('weir.onRowError' = 'quarantine')
AS SELECT * FROM STREAM(vbap_typed);
