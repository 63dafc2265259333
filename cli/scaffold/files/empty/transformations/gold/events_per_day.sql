-- Gold: what people look at. A materialized view is computed anew when what it reads has changed.
CREATE OR REFRESH MATERIALIZED VIEW gold.events_per_day
COMMENT 'How often each event happened on each day'
AS SELECT CAST(happened_at AS DATE) AS day, event, count(*) AS times
FROM silver.events
GROUP BY ALL;
