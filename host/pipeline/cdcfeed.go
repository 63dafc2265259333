package pipeline

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// A change feed as the source of AUTO CDC says itself what Spark's bridge reads
// from it: old images are no changes, a delete is one, and the version of the
// commit is the order. Its own columns are none of the target's.

// feedColumns are the columns that a change feed adds.
var feedColumns = []string{delta.ChangeTypeColumn, delta.CommitVersionColumn, delta.CommitTimestampColumn}

// origin gives the input that the rows of a stream come from, through views;
// nil when none is streamed.
func (f *flow) origin() *input {
	in := f.body.streamInput()
	for in != nil && in.dataset != nil && in.dataset.isView() && len(in.dataset.flows) > 0 {
		in = in.dataset.query().streamInput()
	}
	return in
}

// readsFeed tells whether the rows of a flow come from a change feed.
func (f *flow) readsFeed() bool {
	in := f.origin()
	return in != nil && in.files == nil && stream.ReadsChangeFeed(in.options)
}

// defaultFeed fills in what the flow leaves to its source.
func (c *changes) defaultFeed() {
	if c.sequenceBy.Text == "" {
		c.sequenceBy = sql.Expression{Text: delta.CommitVersionColumn}
	}
	if c.deleteWhen.Text == "" {
		c.deleteWhen = sql.Expression{Text: delta.ChangeTypeColumn + " = 'delete'"}
	}
}

// takeFeed does so over the columns that came through the views on the way.
func (c *changes) takeFeed(source *arrow.Schema) error {
	for _, need := range []struct {
		text   string
		column string
		what   string
	}{
		{c.deleteWhen.Text, delta.ChangeTypeColumn, "which rows are deletes; they would be taken for updates"},
		{c.sequenceBy.Text, delta.CommitVersionColumn, "which change is the later one"},
	} {
		if _, ok := fieldFold(source, need.column); need.text == "" && !ok {
			return fault.New("UNRESOLVED_COLUMN", "the source is a change feed without its column %s, so that nothing says %s", need.column, need.what).
				WithHint("Let the view pass the column on: the target does not get it. Or say it in APPLY AS DELETE WHEN and SEQUENCE BY")
		}
	}
	c.defaultFeed()
	return nil
}

// byVersion tells whether a flow is sequenced by the version of the feed's commits.
func (c *changes) byVersion() bool {
	return strings.EqualFold(strings.Trim(strings.TrimSpace(c.sequenceBy.Text), "`"), delta.CommitVersionColumn)
}

// withoutOldImages is the step that takes the old images of updates out of a
// change feed: they say what a row was before a change, and have its sequence.
func withoutOldImages(engine *lazyEngine) *sqlStep {
	return &sqlStep{engine: engine, from: "source", query: sql.Query{
		Text: "SELECT * FROM source WHERE " + delta.ChangeTypeColumn + " <> 'update_preimage'", Stream: "source",
	}}
}

// feedNotices tells what follows from a change feed that AUTO CDC reads, without
// having been said.
func (g *graph) feedNotices() (out []Notice) {
	for _, d := range g.sorted() {
		for _, f := range d.flows {
			if f.kind != autoCDCFlow || !f.readsFeed() {
				continue
			}
			text := fmt.Sprintf("flow %s of %s reads the change feed of %s: old images (update_preimage) are left out", f.name, d.id, f.origin().id())
			if f.cdc.deleteWhen.Text == "" {
				text += ", rows of type delete are deletes"
			}
			if f.cdc.sequenceBy.Text == "" {
				text += ", the sequence is " + delta.CommitVersionColumn
			}
			out = append(out, Notice{Code: "CHANGE_FEED_SOURCE", Setting: f.name, Line: int(f.place.Line), Message: text})
		}
	}
	return out
}
