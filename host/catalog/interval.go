package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Contract is how the tables of a catalog say from when until when a row holds. The
// first table with history decides it, for all pipelines: a query that joins two
// tables must not have to know which of them does it which way.
type Contract struct {
	Format   int       `json:"format"`
	Catalog  string    `json:"catalog"`
	Columns  string    `json:"interval_columns"`
	Table    string    `json:"table"`
	Pipeline string    `json:"pipeline"`
	Since    time.Time `json:"since"`
}

func contractPath(catalog string) string { return "_weir/_catalog/" + catalog + ".intervals.json" }

// Contract reads the contract of a catalog; false when no table has made it yet.
func (c *Catalog) Contract(ctx context.Context, catalog string) (Contract, bool, error) {
	var found Contract
	ok, err := c.load(ctx, contractPath(catalog), &found)
	return found, ok, err
}

// Agree makes the contract that the table wants, or holds it to the one there is.
func (c *Catalog) Agree(ctx context.Context, table Name, pipeline, columns string) error {
	have, found, err := c.Contract(ctx, table.Catalog)
	if err != nil {
		return err
	}
	if !found {
		mine := Contract{Format: 1, Catalog: table.Catalog, Columns: columns, Table: table.String(), Pipeline: pipeline, Since: c.now()}
		record, err := encode(mine)
		if err != nil {
			return err
		}
		if err = c.store.PutIfAbsent(ctx, contractPath(table.Catalog), record); err == nil {
			return nil
		}
		if !errors.Is(err, storage.ErrExist) {
			return fault.Wrap(err, "CATALOG_UNAVAILABLE", "cannot record the contract of the intervals of %s", table.Catalog)
		}
		if have, found, err = c.Contract(ctx, table.Catalog); err != nil {
			return err
		}
		if !found {
			return fault.New("CATALOG_UNAVAILABLE", "the contract of the intervals of %s vanished while it was read", table.Catalog).Retryable()
		}
	}
	return have.Check(table, columns)
}

// Check refuses a table that wants another contract than the catalog's.
func (k Contract) Check(table Name, columns string) error {
	if k.Columns == columns {
		return nil
	}
	return fault.New("INTERVAL_CONTRACT_CONFLICT", "the tables of catalog %s keep interval_columns: %s since %s (%s, made by pipeline %s), and this pipeline has %s",
		k.Catalog, k.Columns, k.Since.Format(time.RFC3339), k.Table, k.Pipeline, columns).
		WithHint("Set interval_columns: %s in the spec, or publish to another catalog: one contract holds for all tables of one", k.Columns).
		At(fault.Where{Dataset: table.String()})
}
