package sql

import (
	"errors"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// prepared is a statement and the columns it gives.
type prepared struct {
	stmt  mapping.PreparedStatement
	names []string
	types []outType
}

// prepare binds a text; wide is canonical's. The error is DuckDB's message.
func (c *connection) prepare(text string, wide bool) (*prepared, error) {
	p := &prepared{}
	if mapping.Prepare(c.conn, text, &p.stmt) == mapping.StateError {
		err := errors.New(mapping.PrepareError(p.stmt))
		mapping.DestroyPrepare(&p.stmt)
		return nil, err
	}
	for i := range mapping.PreparedStatementColumnCount(p.stmt) {
		p.names = append(p.names, mapping.PreparedStatementColumnName(p.stmt, i))
		t := mapping.PreparedStatementColumnLogicalType(p.stmt, i)
		p.types = append(p.types, canonical(t, wide))
		mapping.DestroyLogicalType(&t)
	}
	return p, nil
}

func (p *prepared) close() { mapping.DestroyPrepare(&p.stmt) }

// typeOf names the type of column i.
func (p *prepared) typeOf(i int) string {
	if t := p.types[i]; t.sql != "" {
		return t.sql
	}
	return "of a type of its own"
}
