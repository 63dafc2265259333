package main

import "github.com/weir-data/weir/sdk/go"

const (
	defaultSource = "bronze.sap_kna1"

	// SAP's fields are texts, those that hold digits only (KUNNR, PSTLZ) too.
	customerColumns = "customer_id string, customer_name string, street string, postal_code string, city string, country string, customer_segment string"
)

// firstQuery and laterQuery find the next extract that has not been applied. An extract is known by
// its business date: the time it was loaded changes when it is loaded again.
func firstQuery(source string) string {
	return "SELECT min(_tech_extract_date) AS day FROM " + source
}

func laterQuery(source string) string { return firstQuery(source) + " WHERE _tech_extract_date > ?" }

// extractQuery gives the extract of a day: SAP names in, canonical names out.
func extractQuery(source string) string {
	return "SELECT CAST(KUNNR AS STRING) AS customer_id, CAST(NAME1 AS STRING) AS customer_name, CAST(STRAS AS STRING) AS street, " +
		"CAST(PSTLZ AS STRING) AS postal_code, CAST(ORT01 AS STRING) AS city, CAST(LAND1 AS STRING) AS country, " +
		"CAST(KUKLA AS STRING) AS customer_segment FROM " + source + " WHERE _tech_extract_date = ?"
}

// nextSnapshot gives the first extract after the latest that was applied, under its date; several that
// have come since then are given one call each, the oldest first.
func nextSnapshot(c *weir.Call) error {
	source := c.ConfOr("kna1.source", defaultSource)
	c.Input(0).Close() // it is queried: an extract among many is all that is wanted
	day, found, err := nextDay(c, source, c.Context().LatestVersion)
	if err != nil {
		return err
	}
	if !found {
		return c.SnapshotDone()
	}
	if err := c.SnapshotVersion(weir.DateVersion(day)); err != nil {
		return err
	}
	in, err := c.Query(extractQuery(source), day)
	if err != nil {
		return err
	}
	defer in.Close()
	out := c.Output()
	for in.Next() {
		b := in.Batch()
		for _, f := range out.Fields() {
			from, to := b.Column(f.Name), out.Column(f.Name)
			for i := range b.Len() {
				to.Copy(from, i)
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

// nextDay gives the date of the first extract after the latest version.
func nextDay(c *weir.Call, source string, latest *weir.Version) (day weir.Date, found bool, err error) {
	query, params := firstQuery(source), []any(nil)
	if latest != nil {
		query, params = laterQuery(source), []any{weir.Typed{Type: latest.Type, Value: latest.Value}}
	}
	in, err := c.Query(query, params...)
	if err != nil {
		return 0, false, err
	}
	defer in.Close()
	for in.Next() {
		if days := in.Batch().Column("day"); in.Batch().Len() > 0 && !days.Null(0) {
			day, found = days.Date().At(0), true
		}
	}
	return day, found, in.Err()
}
