-- Gold: what people look at. A materialized view is computed anew when what it reads has changed.
CREATE OR REFRESH MATERIALIZED VIEW gold.revenue
COMMENT 'What the webshop sold, by month and currency'
AS SELECT
  date_trunc('month', o.order_ts)   AS month,
  l.currency                        AS currency,
  count(DISTINCT o.order_id)        AS orders,
  sum(l.line_amount)                AS amount
FROM silver.shop_order_line AS l
JOIN silver.shop_order AS o ON o.order_id = l.order_id
GROUP BY ALL;

-- The customers with their history, under the names that the warehouse has for intervals.
-- The key of a version follows from the customer and the start: it stays the same when
-- everything is computed anew. '-1' is the customer that is not known.
CREATE OR REFRESH MATERIALIZED VIEW gold.dim_customer
COMMENT 'One row per customer and validity interval, and the unknown member'
AS SELECT
  md5(customer_id || '|' || __START_AT)  AS customer_sk,
  customer_id, customer_name, street, postal_code, city, country, customer_segment,
  __START_AT           AS _tech_valid_from,
  __END_AT             AS _tech_valid_to,      -- exclusive
  __END_AT IS NULL     AS _tech_is_current
FROM silver.customer
UNION ALL
SELECT '-1', NULL, 'unknown', NULL, NULL, NULL, NULL, 'UNKNOWN', DATE '1900-01-01', NULL, true;

-- What SAP sold: header, line, and the customer as of the order date. A line whose header
-- has not come, or was deleted, is neither lost nor without a customer: it has the unknown
-- one, until the header comes. The end of an interval does not belong to it: BETWEEN would
-- find two versions on the day of a change.
CREATE OR REFRESH MATERIALIZED VIEW gold.sales
COMMENT 'One row per SAP sales order item, with the customer as of the order date'
AS SELECT
  l.order_id, l.line_number, o.order_date,
  coalesce(c.customer_sk, '-1')  AS customer_sk,
  l.net_amount_eur
FROM silver.sales_order_line AS l
LEFT JOIN silver.sales_order AS o ON o.order_id = l.order_id
LEFT JOIN gold.dim_customer AS c
  ON c.customer_id = o.customer_id
 AND o.order_date >= c._tech_valid_from
 AND (o.order_date < c._tech_valid_to OR c._tech_valid_to IS NULL);

CREATE OR REFRESH MATERIALIZED VIEW gold.sales_by_segment
COMMENT 'What SAP sold, by the segment that the customer was in at the time of the order'
AS SELECT c.customer_segment, count(*) AS lines, sum(s.net_amount_eur) AS net_amount_eur
FROM gold.sales AS s
JOIN gold.dim_customer AS c ON c.customer_sk = s.customer_sk
GROUP BY ALL;
