package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
)

// maker makes one table, step by step.
type maker struct {
	ctx   context.Context
	table *delta.Table
	step  int
}

func (m *maker) create(ddl string, c delta.Commit) error {
	var err error
	if c.Schema, err = schemaOf(ddl); err != nil {
		return err
	}
	c.Operation = "CREATE TABLE"
	_, err = m.table.Commit(m.ctx, c)
	return err
}

// change commits something that adds no rows.
func (m *maker) change(c delta.Commit) error {
	var err error
	if c.Read, err = m.table.Snapshot(m.ctx); err != nil {
		return err
	}
	_, err = m.table.Commit(m.ctx, c)
	return err
}

// insert appends the rows from..to-1, in the columns that are given or in the table's.
func (m *maker) insert(from, to int, columns ...arrow.Field) error {
	s, err := m.table.Snapshot(m.ctx)
	if err != nil {
		return err
	}
	schema := s.Schema()
	if columns != nil {
		schema = arrow.NewSchema(columns, nil)
	}
	rec, err := rows(schema, from, to)
	if err != nil {
		return err
	}
	defer rec.Release()
	merged, _, err := delta.MergeSchema(s.Schema(), schema)
	if err != nil {
		return err
	}
	m.step++
	w, err := m.table.Write(m.ctx, delta.WriteOptions{Snapshot: s, Schema: merged, Name: fmt.Sprintf("step-%03d", m.step)})
	if err != nil {
		return err
	}
	if err := w.Write(m.ctx, rec); err != nil {
		return errors.Join(err, w.Abort(m.ctx))
	}
	added, err := w.Close(m.ctx)
	if err != nil {
		return err
	}
	_, err = m.table.Commit(m.ctx, delta.Commit{Read: s, Schema: merged, Operation: "WRITE", Add: added})
	return err
}

func (m *maker) delete(where string) error {
	_, err := m.table.Delete(m.ctx, delta.DeleteOptions{Where: where})
	return err
}

func (m *maker) update(where string, set map[string]string) error {
	_, err := m.table.Update(m.ctx, delta.UpdateOptions{Where: where, Set: set})
	return err
}

// all runs steps one after the other.
func all(steps ...error) error {
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	return nil
}

// writeAll writes every table below dir, and the list of them.
func writeAll(ctx context.Context, dir string) error {
	type entry struct {
		Name string            `json:"name"`
		Rows int64             `json:"rows"`
		Feed bool              `json:"feed"`
		Not  map[string]string `json:"not,omitempty"`
		Only map[string]string `json:"read_only,omitempty"`
	}
	var list []entry
	for _, s := range specs {
		path := filepath.Join(dir, s.name)
		t, done, err := open(ctx, path)
		if err != nil {
			return err
		}
		m := &maker{ctx: ctx, table: t}
		err = s.make(m)
		if err == nil {
			var snap *delta.Snapshot
			if snap, err = t.Snapshot(ctx); err == nil {
				e := entry{Name: s.name, Feed: s.feed, Not: s.not, Only: s.readOnly}
				e.Rows, err = snap.LiveRows()
				list = append(list, e)
			}
		}
		done()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	raw, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tables.json"), append(raw, '\n'), 0o644)
}
