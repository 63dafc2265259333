package pipeline

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/stream"
)

// changesInput is table_changes(…): the change data feed of a table, up to the
// version that the batch pins.
type changesInput struct {
	in      *input
	schemas schemaOf
}

func (c *changesInput) schema(ctx context.Context) (*arrow.Schema, error) {
	return c.schemas(ctx, c.in)
}

func (c *changesInput) open(ctx context.Context, t *stream.Task) (array.RecordReader, error) {
	return t.OpenSideChanges(ctx, c.in.id(), *c.in.changes)
}

func (c *changesInput) version(t *stream.Task) string {
	pin, ok := t.Side[c.in.id()]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s@%d %+v", pin.TableID, pin.Version, *c.in.changes)
}

// feed gives the columns that an input has of a table with these: those of its
// change data feed, when the input reads that.
func (in *input) feed(table *arrow.Schema) (*arrow.Schema, error) {
	if in.changes == nil || table == nil {
		return table, nil
	}
	return stream.FeedColumns(table)
}
