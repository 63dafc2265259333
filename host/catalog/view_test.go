package catalog

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// countingStore counts the objects that are replaced.
type countingStore struct {
	storage.Store
	puts int
	fail error
}

func (s *countingStore) Put(ctx context.Context, name string, data []byte) error {
	s.puts++
	if s.fail != nil {
		return s.fail
	}
	return s.Store.Put(ctx, name, data)
}

// covers A117
func TestAViewIsReadAsItWasPublished(t *testing.T) {
	ctx := t.Context()
	store := &countingStore{Store: dir(t)}
	c := Open(store)
	name := Name{Catalog: "dev", Schema: "silver", Table: "open orders"}
	if _, found, err := c.View(ctx, name); found || err != nil {
		t.Fatal(found, err)
	}
	v := View{PipelineID: "p", Query: "SELECT 1 AS one FROM t", Sources: []Source{{Alias: "t", Name: "dev.silver.t"}}, Comment: "c"}
	if err := c.Publish(ctx, name, v); err != nil {
		t.Fatal(err)
	}
	first, found, err := c.View(ctx, name)
	if !found || err != nil {
		t.Fatal(found, err)
	}
	v.Format, v.View, v.Published = 1, name.String(), first.Published
	if !reflect.DeepEqual(first, v) || first.Published.IsZero() {
		t.Errorf("%+v", first)
	}
	if err := c.Publish(ctx, name, v); err != nil || store.puts != 1 {
		t.Errorf("published again it was written %d times (%v)", store.puts, err)
	}
	v.Query = "SELECT 2 AS two FROM t"
	if err := c.Publish(ctx, name, v); err != nil {
		t.Fatal(err)
	}
	if second, _, err := c.View(ctx, name); err != nil || second.Query != v.Query {
		t.Errorf("%+v, %v", second, err)
	}
	store.fail = errors.New("disk full")
	v.Comment = ""
	if err := c.Publish(ctx, name, v); fault.CodeOf(err) != "CATALOG_UNAVAILABLE" {
		t.Error(err)
	}
	if err := store.Store.Put(ctx, viewPath(name), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.View(ctx, name); fault.CodeOf(err) != "CATALOG_CORRUPT" {
		t.Error(err)
	}
}
