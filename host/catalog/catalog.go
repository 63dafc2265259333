package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Catalog is the names of one storage root. It keeps nothing in memory.
type Catalog struct {
	store storage.Store
	clock func() time.Time
}

// Open gives the catalog of a storage root.
func Open(store storage.Store) *Catalog { return &Catalog{store: store, clock: time.Now} }

// Table gives the store rooted at a table.
func (c *Catalog) Table(name Name) storage.Store { return storage.Sub(c.store, name.Path()) }

// Owner is the record that a pipeline owns a table.
type Owner struct {
	Format     int       `json:"format"`
	Table      string    `json:"table"`
	PipelineID string    `json:"pipeline_id"`
	Claimed    time.Time `json:"claimed"`
}

func ownerPath(name Name) string { return "_weir/_catalog/" + name.Path() + ".json" }

// Claim makes the pipeline the table's owner. Claiming again is no error and
// writes nothing; claiming what another pipeline owns is
// [TABLE_OWNED_BY_ANOTHER_PIPELINE].
func (c *Catalog) Claim(ctx context.Context, name Name, pipelineID string) error {
	owner, owned, err := c.Owner(ctx, name)
	if err == nil && !owned {
		owner, err = c.claim(ctx, name, pipelineID)
	}
	if err != nil {
		return fault.Place(err, "CATALOG_UNAVAILABLE", fault.Where{Dataset: name.String()})
	}
	if owner.PipelineID == pipelineID {
		return nil
	}
	return fault.New("TABLE_OWNED_BY_ANOTHER_PIPELINE", "the table belongs to pipeline %s since %s", owner.PipelineID, owner.Claimed.Format(time.RFC3339)).
		WithHint("A table has one owner: rename the dataset here, or remove %s once the other pipeline is gone", ownerPath(name)).
		At(fault.Where{Dataset: name.String()})
}

// claim records the pipeline as the owner and gives whoever is it then: another
// one may have been faster, and a put whose answer was lost may be our own.
func (c *Catalog) claim(ctx context.Context, name Name, pipelineID string) (Owner, error) {
	mine := Owner{Format: 1, Table: name.String(), PipelineID: pipelineID, Claimed: c.now()}
	record, err := encode(mine)
	if err != nil {
		return Owner{}, err
	}
	err = c.store.PutIfAbsent(ctx, ownerPath(name), record)
	if err == nil {
		return mine, nil
	}
	if !errors.Is(err, storage.ErrExist) {
		return Owner{}, fault.Wrap(err, "CATALOG_UNAVAILABLE", "cannot claim the table")
	}
	owner, owned, err := c.Owner(ctx, name)
	if err == nil && !owned {
		err = fault.New("CATALOG_UNAVAILABLE", "the record of the owner vanished while it was read").Retryable()
	}
	return owner, err
}

// Owner tells who owns a table, and false when nobody does.
func (c *Catalog) Owner(ctx context.Context, name Name) (Owner, bool, error) {
	var o Owner
	ok, err := c.load(ctx, ownerPath(name), &o)
	return o, ok, err
}

// Identity is the record that gives a pipeline its id.
type Identity struct {
	Format     int       `json:"format"`
	PipelineID string    `json:"pipeline_id"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created"`
}

func identityPath(pipeline string) string { return "_weir/" + pipeline + "/pipeline.json" }

// Identify gives the identity of the pipeline of that name, and makes one at
// its first run.
func (c *Catalog) Identify(ctx context.Context, pipeline string) (Identity, error) {
	if id, ok, err := c.Identity(ctx, pipeline); err != nil || ok {
		return id, err
	}
	fresh := Identity{Format: 1, PipelineID: uuid.NewString(), Name: pipeline, Created: c.now()}
	record, err := encode(fresh)
	if err != nil {
		return Identity{}, err
	}
	err = c.store.PutIfAbsent(ctx, identityPath(pipeline), record)
	if err == nil {
		return fresh, nil
	}
	if !errors.Is(err, storage.ErrExist) {
		return Identity{}, fault.Wrap(err, "CATALOG_UNAVAILABLE", "cannot record the pipeline %q", pipeline)
	}
	id, ok, err := c.Identity(ctx, pipeline)
	if err == nil && !ok {
		err = fault.New("CATALOG_UNAVAILABLE", "the record of pipeline %q vanished while it was read", pipeline).Retryable()
	}
	return id, err
}

// Identity gives the identity of a pipeline, and false when it never ran.
func (c *Catalog) Identity(ctx context.Context, pipeline string) (Identity, bool, error) {
	var id Identity
	ok, err := c.load(ctx, identityPath(pipeline), &id)
	return id, ok, err
}

func (c *Catalog) load(ctx context.Context, path string, into any) (bool, error) {
	data, err := c.store.Get(ctx, path)
	if errors.Is(err, storage.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(err, "CATALOG_UNAVAILABLE", "cannot read %s", path)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fault.Wrap(err, "CATALOG_CORRUPT", "%s is not a catalog record", path)
	}
	return true, nil
}

func (c *Catalog) now() time.Time { return c.clock().UTC().Truncate(time.Microsecond) }

// encode gives a record as the catalog writes it: JSON and a line end.
func encode(record any) ([]byte, error) {
	data, err := json.Marshal(record)
	if err != nil {
		return nil, fault.Wrap(err, "CATALOG_CORRUPT", "cannot encode a catalog record")
	}
	return append(data, '\n'), nil
}
