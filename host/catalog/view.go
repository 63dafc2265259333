package catalog

import (
	"context"
	"reflect"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// View is the definition of a persistent view: a SELECT whose relations are
// tables and views under their full names. Whoever reads it computes it.
type View struct {
	Format     int       `json:"format"`
	View       string    `json:"view"`
	PipelineID string    `json:"pipeline_id"`
	Query      string    `json:"query"`
	Sources    []Source  `json:"sources"`
	Comment    string    `json:"comment,omitempty"`
	Published  time.Time `json:"published"`
}

// Source is a relation of a view's query: its name there, and what it names.
type Source struct {
	Alias string `json:"alias"`
	Name  string `json:"name"`
}

func viewPath(name Name) string { return "_weir/_catalog/" + name.Path() + ".view.json" }

// View reads the definition of a view; false when there is none of that name.
func (c *Catalog) View(ctx context.Context, name Name) (View, bool, error) {
	var v View
	found, err := c.load(ctx, viewPath(name), &v)
	return v, found, err
}

// Publish writes the definition of a view that the pipeline has claimed. The
// same one again writes nothing.
func (c *Catalog) Publish(ctx context.Context, name Name, v View) error {
	v.Format, v.View = 1, name.String()
	old, found, err := c.View(ctx, name)
	if err != nil {
		return err
	}
	v.Published = old.Published
	if found && reflect.DeepEqual(old, v) {
		return nil
	}
	v.Published = c.now()
	record, err := encode(v)
	if err != nil {
		return err
	}
	if err := c.store.Put(ctx, viewPath(name), record); err != nil {
		return fault.Wrap(err, "CATALOG_UNAVAILABLE", "cannot publish the view").At(fault.Where{Dataset: name.String()})
	}
	return nil
}
