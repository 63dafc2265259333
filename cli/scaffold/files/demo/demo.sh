#!/usr/bin/env bash
# Runs the demo: first with the files that have landed, then with those that
# come later. Running it again adds no rows.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }

counts() {
  weir query "
    SELECT 'bronze.shop_order' AS dataset, count(*) AS rows FROM bronze.shop_order
    UNION ALL SELECT 'bronze.sap_vbak', count(*) FROM bronze.sap_vbak
    UNION ALL SELECT 'bronze.sap_vbap', count(*) FROM bronze.sap_vbap
    UNION ALL SELECT 'bronze.ecb_rates', count(*) FROM bronze.ecb_rates
    UNION ALL SELECT 'silver.shop_order', count(*) FROM silver.shop_order
    UNION ALL SELECT 'silver.shop_order_quarantine', count(*) FROM silver.shop_order_quarantine
    UNION ALL SELECT 'silver.shop_order_line', count(*) FROM silver.shop_order_line
    UNION ALL SELECT 'silver.shop_order_line_quarantine', count(*) FROM silver.shop_order_line_quarantine
    UNION ALL SELECT 'silver.ecb_rates', count(*) FROM silver.ecb_rates
    UNION ALL SELECT 'silver.sales_order_changes', count(*) FROM silver.sales_order_changes
    UNION ALL SELECT 'silver.sales_order_line_changes', count(*) FROM silver.sales_order_line_changes
    UNION ALL SELECT 'silver.sales_order_line_changes_quarantine', count(*) FROM silver.sales_order_line_changes_quarantine" "$@"
}

say "build the plugins"
weir plugin build plugins/sap -o build/sap.wasm
weir plugin build plugins/webshop -o build/webshop.wasm

say "the pipeline"
weir graph

say "run: everything that has landed"
weir run

say "rows in each dataset"
counts

say "orders of the webshop, typed by plugins/webshop"
weir query 'SELECT * FROM silver.shop_order ORDER BY order_id LIMIT 5'

say "SAP order items, their amount converted to euro by plugins/sap"
weir query 'SELECT order_id, line_number, net_amount_eur, change_type, change_seq FROM silver.sales_order_line_changes ORDER BY change_seq LIMIT 5'

say "why rows are in quarantine"
quarantine() {
  weir query "
    SELECT 'silver.shop_order' AS dataset, array_to_string(_rule, ', ') AS rules, _code AS code, count(*) AS rows FROM silver.shop_order_quarantine GROUP BY ALL
    UNION ALL SELECT 'silver.shop_order_line', array_to_string(_rule, ', '), _code, count(*) FROM silver.shop_order_line_quarantine GROUP BY ALL
    UNION ALL SELECT 'silver.sales_order_line_changes', array_to_string(_rule, ', '), _code, count(*) FROM silver.sales_order_line_changes_quarantine GROUP BY ALL
    ORDER BY ALL"
}
quarantine

say "later: a late file, a file with a new column, a broken file, new rates and changes"
(cd later && find . -type f | sort) | while read -r file; do
  [ -e "landing/$file" ] && continue
  mkdir -p "landing/$(dirname "$file")"
  cp "later/$file" "landing/$file"
  echo "landed ${file#./}"
done

say "run again: only what is new"
weir run

say "gold: computed anew, since silver has changed"
weir query 'SELECT * FROM gold.revenue ORDER BY month, currency LIMIT 5'

say "the late file was read, though its name and day are older"
weir query "SELECT order_id, order_ts, parse_filename(_tech_source_file) AS file FROM bronze.shop_order WHERE order_id = 'W-100900'"

say "the new column was added, and its value is there"
weir query 'SELECT order_id, gift_note FROM bronze.shop_order WHERE gift_note IS NOT NULL'

say "the broken document was kept, whole, in _rescued_data, and quarantined on the way to silver"
weir query "SELECT left(_rescued_data, 60) || '…' AS rescued, parse_filename(_tech_source_file) AS file FROM bronze.shop_order WHERE order_id IS NULL"
quarantine

say "rows in each dataset (running this again adds none)"
counts
