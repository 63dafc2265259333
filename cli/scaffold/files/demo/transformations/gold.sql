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
